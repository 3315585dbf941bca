//! Types for JSON Schemas, in a form that languages with unions and literal types write down.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::names::{pascal, unique};

/// The deepest schema that is read; what is below is any value.
const DEPTH: usize = 64;

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Any,
    Null,
    Text,
    Integer,
    Number,
    Boolean,
    List(Box<Type>),
    /// An object whose fields have any names.
    Map(Box<Type>),
    /// One of some texts, integers, booleans, or null.
    Literals(Vec<Value>),
    Union(Vec<Type>),
    /// A declared type.
    Named(String),
}

/// A declaration: of an object with fields, or of another name for a type.
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) body: Body,
}

pub(super) enum Body {
    Fields(Vec<Field>),
    Alias(Type),
}

/// A property of an object.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) doc: Option<String>,
    pub(super) is_required: bool,
    pub(super) kind: Type,
}

/// The types of a file. Equal schemas have one type, and each is declared before its first use.
pub(super) struct Types {
    pub(super) declared: Vec<Declaration>,
    by_schema: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    depth: usize,
}

impl Types {
    /// Makes a set in which some names are taken.
    pub(super) fn new(taken: &[&str]) -> Self {
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        Self { declared: Vec::new(), by_schema: BTreeMap::new(), taken, depth: 0 }
    }

    /// Takes a name for a type that is declared elsewhere.
    pub(super) fn take(&mut self, name: &str) -> String {
        unique(pascal(name), &mut self.taken)
    }

    /// Declares a type of this name for a schema, and returns the name.
    pub(super) fn own(&mut self, schema: &Value, name: &str, doc: &str) -> Type {
        let kind = self.of(schema, name, doc);
        if kind == Type::Any || matches!(kind, Type::Named(_)) {
            return kind;
        }
        self.declare(name, doc.to_owned(), Body::Alias(kind))
    }

    /// Returns the type of a schema, and declares what it needs. What cannot be expressed is any
    /// value. `name` is for a new type.
    pub(super) fn of(&mut self, schema: &Value, name: &str, doc: &str) -> Type {
        if self.depth == DEPTH {
            return Type::Any;
        }
        if let Some(known) = self.by_schema.get(&schema.to_string()) {
            return Type::Named(known.clone());
        }
        self.depth += 1;
        let kind = self.unknown(schema, name, doc);
        self.depth -= 1;
        if let Type::Named(name) = &kind {
            self.by_schema.insert(schema.to_string(), name.clone());
        }
        kind
    }

    fn unknown(&mut self, schema: &Value, name: &str, doc: &str) -> Type {
        if let Some(value) = schema.get("const") {
            return literals(std::slice::from_ref(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty()) {
            let kind = literals(values);
            let is_named = values.len() > 1 && matches!(kind, Type::Literals(_));
            return if is_named { self.declare(name, doc.to_owned(), Body::Alias(kind)) } else { kind };
        }
        for part in ["anyOf", "oneOf"] {
            if let Some(parts) = schema.get(part).and_then(Value::as_array) {
                return self.union(parts, name, doc);
            }
        }
        match schema.get("type") {
            Some(Value::Array(kinds)) => {
                let of_kind = |kind: &Value| {
                    let mut schema = schema.clone();
                    schema["type"] = kind.clone();
                    schema
                };
                self.union(&kinds.iter().map(of_kind).collect::<Vec<_>>(), name, doc)
            }
            Some(Value::String(kind)) => self.of_kind(kind, schema, name, doc),
            _ if properties(schema).is_some() => self.object(schema, name, doc),
            _ => Type::Any,
        }
    }

    fn of_kind(&mut self, kind: &str, schema: &Value, name: &str, doc: &str) -> Type {
        match kind {
            "null" => Type::Null,
            "string" => Type::Text,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "array" => {
                let items = schema.get("items").map(|items| self.of(items, &format!("{name} item"), doc));
                Type::List(Box::new(items.unwrap_or(Type::Any)))
            }
            "object" => self.object(schema, name, doc),
            _ => Type::Any,
        }
    }

    fn union(&mut self, schemas: &[Value], name: &str, doc: &str) -> Type {
        let mut parts = Vec::new();
        for schema in schemas {
            match self.of(schema, name, doc) {
                Type::Any => return Type::Any,
                Type::Union(inner) => parts.extend(inner),
                part => parts.push(part),
            }
        }
        let mut kept: Vec<Type> = Vec::new();
        for part in parts {
            if !kept.contains(&part) {
                kept.push(part);
            }
        }
        match kept.len() {
            0 => Type::Any,
            1 => kept.swap_remove(0),
            _ => Type::Union(kept),
        }
    }

    fn object(&mut self, schema: &Value, name: &str, doc: &str) -> Type {
        if let Some(properties) = properties(schema) {
            return self.structure(schema, properties, name, doc);
        }
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        let values = values.map(|values| self.of(values, &format!("{name} value"), doc));
        Type::Map(Box::new(values.unwrap_or(Type::Any)))
    }

    fn structure(&mut self, schema: &Value, properties: &Map<String, Value>, name: &str, doc: &str) -> Type {
        // The name is taken before those of the fields' types, which are declared first.
        let name = self.take(name);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        let mut fields = Vec::new();
        for (property, schema) in properties {
            let kind = self.of(schema, &format!("{name} {property}"), &format!("A value of `{property}`."));
            let is_required = required.contains(property.as_str());
            fields.push(Field { name: property.clone(), doc: description(schema), is_required, kind });
        }
        let doc = description(schema).unwrap_or_else(|| doc.to_owned());
        self.declared.push(Declaration { name: name.clone(), doc, body: Body::Fields(fields) });
        Type::Named(name)
    }

    fn declare(&mut self, name: &str, doc: String, body: Body) -> Type {
        let name = self.take(name);
        self.declared.push(Declaration { name: name.clone(), doc, body });
        Type::Named(name)
    }
}

/// Returns the type of some values; any value if one of them has no literal type.
fn literals(values: &[Value]) -> Type {
    let has_literal = |value: &Value| value.is_string() || value.is_boolean() || value.is_null() || value.is_i64();
    if values.iter().all(has_literal) { Type::Literals(values.to_vec()) } else { Type::Any }
}

/// Returns the properties of a schema of objects that are described.
fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())
}

fn description(schema: &Value) -> Option<String> {
    schema.get("description")?.as_str().map(str::to_owned).filter(|text| !text.trim().is_empty())
}

/// Returns a text in quotes that both Python and TypeScript read. Characters that do not show, or
/// that change the direction of text, are escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            _ if is_hidden(character) => quoted.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the lines of a text for a comment, without characters that do not show.
pub(super) fn comment_lines(text: &str) -> Vec<String> {
    let lines = text.trim().lines();
    lines.map(|line| line.trim().replace(is_hidden, " ")).collect()
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
