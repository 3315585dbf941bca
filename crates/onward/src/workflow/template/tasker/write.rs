//! YAML of values in a given order.

use serde_json::Value;

use crate::workflow::template::yaml::written;

/// A value of the new file. Maps keep their order.
#[derive(Debug, Clone)]
pub(super) enum OutputValue {
    Json(Value),
    List(Vec<OutputValue>),
    Map(Vec<Pair>),
}

/// An entry of a map, with the text of the comment above it.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) comment: Option<String>,
    pub(super) value: OutputValue,
}

/// Returns an entry without a comment.
pub(super) fn pair(key: &str, value: impl Into<OutputValue>) -> Pair {
    Pair { key: key.to_owned(), comment: None, value: value.into() }
}

impl From<Value> for OutputValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) => Self::Map(fields.into_iter().map(|(key, value)| pair(&key, value)).collect()),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            other => Self::Json(other),
        }
    }
}

impl From<&str> for OutputValue {
    fn from(text: &str) -> Self {
        Self::Json(text.into())
    }
}

impl From<String> for OutputValue {
    fn from(text: String) -> Self {
        Self::Json(text.into())
    }
}

/// Returns a file with one map.
pub(super) fn file(pairs: &[Pair]) -> String {
    let mut text = String::new();
    map(&mut text, pairs, 0);
    text
}

fn map(text: &mut String, pairs: &[Pair], indent: usize) {
    let space = " ".repeat(indent);
    for Pair { key, comment, value } in pairs {
        for line in comment.iter().flat_map(|comment| comment.lines()) {
            text.push_str(&format!("{space}# {line}\n"));
        }
        text.push_str(&format!("{space}{}:", written(key)));
        after_key(text, value, indent);
    }
}

/// Writes a value behind a key: a scalar on its line, anything else below it.
fn after_key(text: &mut String, value: &OutputValue, indent: usize) {
    match value {
        OutputValue::Map(pairs) if !pairs.is_empty() => {
            text.push('\n');
            map(text, pairs, indent + 2);
        }
        OutputValue::List(items) if !items.is_empty() => {
            text.push('\n');
            list(text, items, indent + 2);
        }
        other => text.push_str(&format!(" {}\n", flow(other))),
    }
}

fn list(text: &mut String, items: &[OutputValue], indent: usize) {
    let space = " ".repeat(indent);
    for item in items {
        match item {
            OutputValue::Map(pairs) if !pairs.is_empty() => {
                let mut below = String::new();
                map(&mut below, pairs, indent + 2);
                // The first key stands behind the dash.
                text.push_str(&format!("{space}- {}", below.trim_start()));
            }
            OutputValue::List(items) if !items.is_empty() => {
                text.push_str(&format!("{space}-\n"));
                list(text, items, indent + 2);
            }
            other => text.push_str(&format!("{space}- {}\n", flow(other))),
        }
    }
}

/// Returns a scalar, or an empty list or map.
fn flow(value: &OutputValue) -> String {
    match value {
        OutputValue::Json(Value::String(text)) => written(text),
        OutputValue::Json(other) => other.to_string(),
        OutputValue::List(_) => "[]".to_owned(),
        OutputValue::Map(_) => "{}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workflow::template::read_yaml;

    #[test]
    fn a_file_reads_as_the_values_that_it_was_made_of() {
        let value = json!({
            "a": {"empty": {}, "none": [], "text": "yes: no", "line": "a\nb", "number": 1.5, "null": null},
            "list": [1, "two", {"x": [true, {"y": "- z"}]}, [], [[2]]],
        });
        let OutputValue::Map(pairs) = OutputValue::from(value.clone()) else { panic!("it is a map") };
        let text = file(&pairs);
        assert_eq!(read_yaml("a.yaml", &text).unwrap_or_else(|errors| panic!("{errors}\n{text}")), value, "{text}");
    }
}
