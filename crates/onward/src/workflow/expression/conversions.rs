//! Conversions between types, by the functions that are named after them.

use super::duration::{duration_text, parse_duration};
use super::functions::Function;
use super::number::{double_text, truncate_to_int, truncate_to_uint};
use super::shown::Described;
use super::timestamp;
use super::value::Value;

/// Converts a value by `int`, `uint`, `double`, `string`, `timestamp` or `duration`.
///
/// # Errors
/// If its type cannot be converted, or its value is beyond the type.
pub(super) fn convert(function: Function, value: &Value) -> Result<Value, String> {
    match function {
        Function::Int => to_int(value),
        Function::Uint => to_uint(value),
        Function::Double => to_double(value),
        Function::String => text(value).map(Value::from),
        Function::Timestamp => to_timestamp(value),
        Function::Duration => to_duration(value),
        _ => Err(format!("`{}` converts nothing", function.as_str())),
    }
}

fn to_int(value: &Value) -> Result<Value, String> {
    let int = match value {
        Value::Int(number) => Some(*number),
        Value::Uint(number) => i64::try_from(*number).ok(),
        Value::Double(number) => truncate_to_int(*number),
        Value::Text(text) if is_digits(text.strip_prefix('-').unwrap_or(text)) => text.parse().ok(),
        Value::Text(_) => return Err(format!("{} is not an integer", Described(value))),
        Value::Timestamp(moment) => Some(moment.as_second()),
        _ => return Err(refused("int", value, "a number, a text or a timestamp")),
    };
    int.map(Value::Int).ok_or_else(|| beyond(value, "an int (64 bits)"))
}

fn to_uint(value: &Value) -> Result<Value, String> {
    let uint = match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Uint(number) => Some(*number),
        Value::Double(number) => truncate_to_uint(*number),
        Value::Text(text) if is_digits(text) => text.parse().ok(),
        Value::Text(_) => return Err(format!("{} is not an integer from 0", Described(value))),
        _ => return Err(refused("uint", value, "a number or a text")),
    };
    uint.map(Value::Uint).ok_or_else(|| beyond(value, "a uint"))
}

fn to_double(value: &Value) -> Result<Value, String> {
    if let Some(double) = super::number::as_double(value) {
        return Ok(Value::Double(double));
    }
    let Value::Text(text) = value else { return Err(refused("double", value, "a number or a text")) };
    // The parser of the standard library also reads `inf` and `nan`, which are not numbers here.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let read = if is_number { text.parse().ok() } else { None };
    let double: f64 = read.ok_or_else(|| format!("{} is not a number", Described(value)))?;
    if double.is_finite() { Ok(Value::Double(double)) } else { Err(beyond(value, "a double")) }
}

/// Returns a value as the text that stands for it within another text.
///
/// # Errors
/// If it is null, a list or a map.
pub(super) fn text(value: &Value) -> Result<std::sync::Arc<str>, String> {
    Ok(match value {
        Value::Text(text) => text.clone(),
        Value::Bool(value) => if *value { "true" } else { "false" }.into(),
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) => number.to_string().into(),
        Value::Double(number) => double_text(*number).into(),
        Value::Timestamp(moment) => moment.to_string().into(),
        Value::Duration(duration) => duration_text(*duration).into(),
        Value::Null | Value::List(_) | Value::Map(_) => {
            return Err(format!("{} has no text; json(x) writes it as JSON", value.with_article()));
        }
    })
}

fn to_timestamp(value: &Value) -> Result<Value, String> {
    match value {
        Value::Text(text) => timestamp::parse_timestamp(text),
        Value::Int(seconds) => timestamp::from_seconds(*seconds),
        Value::Timestamp(_) => Ok(value.clone()),
        _ => Err(refused("timestamp", value, "a text or the seconds since 1970")),
    }
}

fn to_duration(value: &Value) -> Result<Value, String> {
    match value {
        Value::Text(text) => parse_duration(text).map(Value::Duration),
        Value::Duration(_) => Ok(value.clone()),
        _ => Err(refused("duration", value, "a text such as '1h30m'")),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn refused(name: &str, value: &Value, takes: &str) -> String {
    format!("`{name}` takes {takes}, and this is {}", value.with_article())
}

fn beyond(value: &Value, name: &str) -> String {
    format!("{} is beyond {name}", Described(value))
}
