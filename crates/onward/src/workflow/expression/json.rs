//! Values as JSON.
//!
//! A value read from JSON is written as the same JSON again, its types included: 100 is not 100.0.
//! Timestamps and durations are written as their texts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Number;

use super::duration::duration_text;
use super::value::Value;

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => number_value(number),
            serde_json::Value::String(text) => Self::from(text.as_str()),
            serde_json::Value::Array(items) => items.iter().map(Self::from).collect(),
            serde_json::Value::Object(entries) => {
                entries.iter().map(|(key, value)| (Arc::from(key.as_str()), Self::from(value))).collect()
            }
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        Self::from(&json)
    }
}

/// Returns the value of a JSON number: an int where it fits, then a uint, then a double.
fn number_value(number: &Number) -> Value {
    if let Some(int) = number.as_i64() {
        return Value::Int(int);
    }
    number.as_u64().map_or_else(|| Value::Double(number.as_f64().unwrap_or_default()), Value::Uint)
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(number) => Self::Number((*number).into()),
            Value::Uint(number) => Self::Number((*number).into()),
            Value::Double(number) => Number::from_f64(*number).map_or(Self::Null, Self::Number),
            Value::Text(text) => Self::String(text.to_string()),
            Value::List(items) => items.iter().map(Self::from).collect(),
            Value::Map(entries) => entries.iter().map(|(key, value)| (key.to_string(), Self::from(value))).collect(),
            Value::Timestamp(moment) => Self::String(moment.to_string()),
            Value::Duration(duration) => Self::String(duration_text(*duration)),
        }
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Uint(number) => serializer.serialize_u64(*number),
            Self::Double(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items.iter()),
            Self::Map(entries) => serializer.collect_map(entries.iter()),
            Self::Timestamp(moment) => serializer.collect_str(moment),
            Self::Duration(duration) => serializer.serialize_str(&duration_text(*duration)),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Double(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items: Vec<Value> = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(items.into_iter().collect())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        while let Some((key, value)) = map.next_entry()? {
            entries.insert(key, value);
        }
        Ok(entries.into_iter().collect())
    }
}

/// Writes a value as JSON, or returns `None` if that takes more than `most` bytes.
pub(super) fn write_within(value: &Value, most: usize) -> Option<String> {
    let mut writer = Bounded { bytes: Vec::new(), keep: true, left: most };
    serde_json::to_writer(&mut writer, value).ok()?;
    String::from_utf8(writer.bytes).ok()
}

/// Returns the size of a value as JSON, or `None` if it is more than `most` bytes.
pub(super) fn length_within(value: &Value, most: usize) -> Option<usize> {
    let mut writer = Bounded { bytes: Vec::new(), keep: false, left: most };
    serde_json::to_writer(&mut writer, value).ok()?;
    Some(most - writer.left)
}

/// A writer that fails when it is given more bytes than it has room for.
struct Bounded {
    bytes: Vec<u8>,
    keep: bool,
    left: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if self.keep {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
