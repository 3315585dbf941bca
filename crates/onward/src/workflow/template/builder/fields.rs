//! The fields of a file in their order, including duplicates.

use std::time::Duration;

use serde_json::Value;

/// The fields of a map.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, Node)>);

/// A value of a field.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Value(Value),
    Fields(Fields),
    List(Vec<Value>),
}

impl Fields {
    /// Adds a field. A field that is given twice is an error of the file.
    pub(super) fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.to_owned(), Node::Value(value.into())));
    }

    /// Adds a map.
    pub(super) fn add_fields(&mut self, name: &str, fields: Fields) {
        self.0.push((name.to_owned(), Node::Fields(fields)));
    }

    /// Adds a field to the map of a name, which is made if it is missing.
    pub(super) fn add_below(&mut self, name: &str, key: &str, value: impl Into<Value>) {
        match self.find(name) {
            Some(Node::Fields(fields)) => fields.add(key, value),
            _ => {
                let mut fields = Self::default();
                fields.add(key, value);
                self.add_fields(name, fields);
            }
        }
    }

    /// Adds an item to the list of a name, which is made if it is missing.
    pub(super) fn add_item(&mut self, name: &str, item: impl Into<Value>) {
        match self.find(name) {
            Some(Node::List(items)) => items.push(item.into()),
            _ => self.0.push((name.to_owned(), Node::List(vec![item.into()]))),
        }
    }

    fn find(&mut self, name: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    /// Writes the fields as JSON, which is YAML too, with a field on each line.
    pub(super) fn write(&self, text: &mut String, indent: usize) {
        if self.0.is_empty() {
            text.push_str("{}");
            return;
        }
        text.push_str("{\n");
        for (place, (name, node)) in self.0.iter().enumerate() {
            text.push_str(&" ".repeat(indent + 2));
            text.push_str(&format!("{}: ", Value::from(name.as_str())));
            match node {
                Node::Value(value) => text.push_str(&value.to_string()),
                Node::List(items) => text.push_str(&Value::from(items.clone()).to_string()),
                Node::Fields(fields) => fields.write(text, indent + 2),
            }
            text.push_str(if place + 1 < self.0.len() { ",\n" } else { "\n" });
        }
        text.push_str(&" ".repeat(indent));
        text.push('}');
    }
}

/// Returns a duration as a file has it, in whole milliseconds.
pub(super) fn duration(time: Duration) -> String {
    let milliseconds = time.as_millis();
    if milliseconds.is_multiple_of(1000) { format!("{}s", milliseconds / 1000) } else { format!("{milliseconds}ms") }
}
