//! A value of a file, with its place.

use std::sync::Arc;

use serde_json::Number;

use super::super::source::Span;

/// A value and its place. Clones share lists, maps and texts.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// A value as JSON knows it; maps keep the order of the file.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(Arc<str>),
    List(Arc<Vec<Node>>),
    Map(Arc<Vec<Entry>>),
    /// A value whose error is already reported. It causes no further error.
    Broken,
}

/// A key of a map, with its place and value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Arc<str>,
    pub(crate) span: Span,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn new(span: Span, value: Value) -> Self {
        Self { span, value }
    }

    /// Makes a text.
    pub(crate) fn text(span: Span, text: &str) -> Self {
        Self::new(span, Value::Text(text.into()))
    }

    /// Returns the entries of a map, or an empty slice for any other value.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list, or an empty slice for any other value.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the entry of a key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| &*entry.key == key)
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value as JSON. A broken value is null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null | Value::Broken => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => (&**text).into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.to_string(), entry.value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl Value {
    /// Returns the type of the value, as an error names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Broken => "an error",
        }
    }
}
