//! Types of Rust for JSON Schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::names::{pascal, snake, unique};

/// The traits of each generated type.
const DERIVES: &str = "#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n";

/// The types of a file. Equal schemas have one type.
#[derive(Default)]
pub(super) struct RustTypes {
    /// The declarations, in their order.
    declared: Vec<String>,
    by_schema: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl RustTypes {
    /// Returns the declarations.
    pub(super) fn declarations(&self) -> String {
        self.declared.join("\n")
    }

    /// Takes a name for a type that is declared elsewhere.
    pub(super) fn take(&mut self, name: &str) -> String {
        unique(pascal(name), &mut self.taken)
    }

    /// Declares a structure of its own for a schema: one field for each property, or one unnamed
    /// field for any other schema. Returns its name.
    pub(super) fn own(&mut self, schema: &Value, name: &str, doc: &str) -> String {
        if let Some(properties) = properties(schema) {
            return self.structure(schema, properties, name, doc);
        }
        let name = self.take(name);
        let inner = self.of(schema, &format!("{name} value"), doc);
        self.declared
            .push(format!("{}{DERIVES}#[serde(transparent)]\npub struct {name}(pub {inner});\n", docs("", doc)));
        name
    }

    /// Returns the type of a schema, and declares what it needs. What cannot be expressed is any
    /// value. `name` is for a new type.
    pub(super) fn of(&mut self, schema: &Value, name: &str, doc: &str) -> String {
        if let Some(inner) = nullable(schema) {
            let inner = self.of(&inner, name, doc);
            return if inner == "Value" || inner.starts_with("Option<") { inner } else { format!("Option<{inner}>") };
        }
        if let Some(known) = self.by_schema.get(&schema.to_string()) {
            return known.clone();
        }
        if let Some(choices) = choices(schema) {
            return self.enumeration(schema, &choices, name, doc);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => "String".to_owned(),
            Some("integer") => "i64".to_owned(),
            Some("number") => "f64".to_owned(),
            Some("boolean") => "bool".to_owned(),
            Some("array") => match schema.get("items") {
                Some(items) => format!("Vec<{}>", self.of(items, &format!("{name} item"), doc)),
                None => "Vec<Value>".to_owned(),
            },
            Some("object") => self.object(schema, name, doc),
            _ => "Value".to_owned(),
        }
    }

    fn object(&mut self, schema: &Value, name: &str, doc: &str) -> String {
        if let Some(properties) = properties(schema) {
            return self.structure(schema, properties, name, doc);
        }
        match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => {
                let values = self.of(values, &format!("{name} value"), doc);
                format!("BTreeMap<String, {values}>")
            }
            None => "Value".to_owned(),
        }
    }

    fn structure(&mut self, schema: &Value, properties: &Map<String, Value>, name: &str, doc: &str) -> String {
        let name = self.take(name);
        self.by_schema.insert(schema.to_string(), name.clone());
        // Types that the fields need are declared behind this one.
        let place = self.declared.len();
        self.declared.push(String::new());
        let required: BTreeSet<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let doc = description(schema).unwrap_or_else(|| doc.to_owned());
        let mut text = format!("{}{DERIVES}pub struct {name} {{\n", docs("", &doc));
        let mut fields = BTreeSet::new();
        for (property, schema) in properties {
            let field = unique(snake(property), &mut fields);
            let kind = self.of(schema, &format!("{name} {property}"), &format!("A value of `{property}`."));
            let doc = description(schema).unwrap_or_else(|| format!("`{property}`."));
            text.push_str(&docs("    ", &doc));
            text.push_str(&field_attribute(property, &field, required.contains(property.as_str())));
            let is_optional = !required.contains(property.as_str()) && !kind.starts_with("Option<");
            let kind = if is_optional { format!("Option<{kind}>") } else { kind };
            let _ = writeln!(text, "    pub {field}: {kind},");
        }
        text.push_str("}\n");
        if let Some(declared) = self.declared.get_mut(place) {
            *declared = text;
        }
        name
    }

    fn enumeration(&mut self, schema: &Value, choices: &[&str], name: &str, doc: &str) -> String {
        let name = self.take(name);
        self.by_schema.insert(schema.to_string(), name.clone());
        let mut text = format!("{}{DERIVES}pub enum {name} {{\n", docs("", doc));
        let mut variants = BTreeSet::new();
        for choice in choices {
            let variant = unique(pascal(choice), &mut variants);
            let _ = write!(
                text,
                "{}    #[serde(rename = {choice:?})]\n    {variant},\n",
                docs("    ", &format!("`{choice}`."))
            );
        }
        text.push_str("}\n");
        self.declared.push(text);
        name
    }
}

/// Returns the properties of a schema of objects that are described.
fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    schema.get("properties").filter(|_| is_object)?.as_object().filter(|properties| !properties.is_empty())
}

/// Returns the texts of a schema of a few texts.
fn choices(schema: &Value) -> Option<Vec<&str>> {
    let choices = schema.get("enum")?.as_array().filter(|choices| !choices.is_empty())?;
    choices.iter().map(Value::as_str).collect()
}

/// Returns the schema without null, if it allows null beside one other type.
fn nullable(schema: &Value) -> Option<Value> {
    let is_null = |kind: &Value| kind == "null" || kind.get("type").is_some_and(|kind| kind == "null");
    for part in ["type", "anyOf", "oneOf"] {
        let Some([one, other]) = schema.get(part).and_then(Value::as_array).map(Vec::as_slice) else { continue };
        let kept = match (is_null(one), is_null(other)) {
            (true, false) => other,
            (false, true) => one,
            _ => continue,
        };
        if part != "type" {
            return Some(kept.clone());
        }
        let mut schema = schema.clone();
        schema.as_object_mut()?.insert("type".to_owned(), kept.clone());
        return Some(schema);
    }
    None
}

/// Returns the attribute of a field whose name differs or that may be missing.
fn field_attribute(property: &str, field: &str, is_required: bool) -> String {
    let mut parts = Vec::new();
    if field.trim_start_matches("r#") != property {
        parts.push(format!("rename = {property:?}"));
    }
    if !is_required {
        parts.push("default, skip_serializing_if = \"Option::is_none\"".to_owned());
    }
    if parts.is_empty() { String::new() } else { format!("    #[serde({})]\n", parts.join(", ")) }
}

fn description(schema: &Value) -> Option<String> {
    schema.get("description")?.as_str().map(str::to_owned).filter(|text| !text.trim().is_empty())
}

/// Returns a text as documentation, one line for each of its lines.
pub(super) fn docs(indent: &str, text: &str) -> String {
    text.trim().lines().fold(String::new(), |mut docs, line| {
        let _ = writeln!(docs, "{}", format!("{indent}/// {}", line.trim()).trim_end());
        docs
    })
}
