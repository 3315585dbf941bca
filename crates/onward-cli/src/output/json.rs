//! Records as JSON.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use onward_store::TaskRecord;
use serde_json::{Map, Value};

/// Adds bytes under `name` as text, or under `name_base64` if they are not UTF-8. Adds nothing for
/// `None`.
pub(crate) fn bytes_field(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return };
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// Returns a task as a JSON object: the fields of [`TaskRecord`], with payload and result as text
/// (or `…_base64`), and durations in seconds.
pub(crate) fn task_json(mut task: TaskRecord) -> serde_json::Result<Value> {
    let (payload, result) = (task.payload.take(), std::mem::take(&mut task.result).into_bytes());
    let mut value = in_seconds(serde_json::to_value(&task)?);
    if let Value::Object(object) = &mut value {
        object.remove("payload");
        object.remove("result");
        bytes_field(object, "payload", payload.as_ref().map(Bytes::as_ref));
        bytes_field(object, "result", result.as_ref().map(Bytes::as_ref));
    }
    Ok(value)
}

/// Returns a value with every duration in it converted to seconds, at any depth. All commands write
/// durations in this form.
pub(crate) fn in_seconds(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(in_seconds).collect(),
        Value::Object(fields) => {
            match (fields.get("secs").and_then(Value::as_u64), fields.get("nanos").and_then(Value::as_u64)) {
                (Some(secs), Some(nanos)) if fields.len() == 2 => {
                    (Duration::from_secs(secs) + Duration::from_nanos(nanos)).as_secs_f64().into()
                }
                _ => Value::Object(fields.into_iter().map(|(name, value)| (name, in_seconds(value))).collect()),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_pass_are_seconds_wherever_they_are() {
        let wait = serde_json::to_value(Duration::from_millis(1500)).unwrap();
        let value = serde_json::json!({ "waits": [wait], "secs": 7, "text": "5" });
        assert_eq!(in_seconds(value), serde_json::json!({ "waits": [1.5], "secs": 7, "text": "5" }));
    }

    #[test]
    fn bytes_that_are_not_text_are_base64() {
        let mut object = Map::new();
        bytes_field(&mut object, "result", Some(&[0xff, 0x00]));
        assert_eq!(Value::Object(object), serde_json::json!({ "result_base64": "/wA=" }));
    }
}
