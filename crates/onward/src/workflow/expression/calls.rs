//! Evaluation of functions.

use super::conversions::convert;
use super::evaluate::{Evaluated, Evaluator, Fault};
use super::functions::Function;
use super::json::write_within;
use super::span::Span;
use super::syntax::Node;
use super::value::Value;

/// The bytes of JSON whose reading costs one operation. Elements have to be built, so they are
/// fewer than the bytes of a plain text.
const BYTES_PER_READ_ELEMENT: usize = 16;

impl Evaluator<'_> {
    pub(super) fn call(&mut self, function: Function, arguments: &[Node], span: Span) -> Evaluated {
        let arguments = self.values(arguments)?;
        self.called(function, &arguments).map_err(|fault| self.failed(fault, span))
    }

    fn called(&mut self, function: Function, arguments: &[Value]) -> Result<Value, Fault> {
        match (function, arguments) {
            (Function::Size, [value]) => self.size(value),
            (Function::Get, [map, key, default]) => {
                self.meter.charge_text(key.as_text().map_or(0, str::len))?;
                get(map, key, default)
            }
            (Function::Json, [value]) => self.json(value),
            (Function::ParseJson, [value]) => self.parse_json(value),
            (_, [value]) => {
                self.meter.charge_text(value.as_text().map_or(0, str::len))?;
                Ok(convert(function, value)?)
            }
            _ => Err(format!("`{}` takes other arguments", function.as_str()).into()),
        }
    }

    /// Returns the number of characters of a text, or of elements.
    pub(super) fn size(&mut self, value: &Value) -> Result<Value, Fault> {
        let size = match value {
            Value::Text(text) => {
                self.meter.charge_text(text.len())?;
                text.chars().count()
            }
            Value::List(items) => items.len(),
            Value::Map(map) => map.len(),
            _ => {
                return Err(
                    format!("`size` takes a text, a list or a map, and this is {}", value.with_article()).into()
                );
            }
        };
        Ok(Value::from(size as u64))
    }

    fn json(&mut self, value: &Value) -> Result<Value, Fault> {
        let Some(text) = write_within(value, self.meter.text_left()) else {
            self.meter.charge(u64::MAX)?;
            return Err("the value cannot be written as JSON".to_owned().into());
        };
        self.meter.charge_text(text.len())?;
        Ok(Value::from(text))
    }

    fn parse_json(&mut self, value: &Value) -> Result<Value, Fault> {
        let Value::Text(text) = value else {
            return Err(format!("`parse_json` takes a text, and this is {}", value.with_article()).into());
        };
        self.meter.charge_elements(text.len() / BYTES_PER_READ_ELEMENT)?;
        serde_json::from_str(text).map_err(|error| format!("the text is not JSON: {error}").into())
    }
}

/// Returns the value of a key, or the default if the map has none, or there is no map.
fn get(map: &Value, key: &Value, default: &Value) -> Result<Value, Fault> {
    let Value::Text(key) = key else {
        return Err(format!("the key of `get` has to be a text, and this is {}", key.with_article()).into());
    };
    match map {
        Value::Null => Ok(default.clone()),
        Value::Map(map) => Ok(map.get(key).unwrap_or(default).clone()),
        _ => Err(format!("`get` takes a map or null, and this is {}", map.with_article()).into()),
    }
}
