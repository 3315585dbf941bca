//! Records as programs read them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use onward_store::TaskRecord;
use serde_json::{Map, Value};

/// Puts bytes under `name` as text, or under `name_base64` where they are not UTF-8. Leaves out what is not there.
pub(crate) fn bytes_field(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return };
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// A task as a JSON object: the fields of [`TaskRecord`], with payload and result as text (or `…_base64`).
pub(crate) fn task_json(mut task: TaskRecord) -> serde_json::Result<Value> {
    let (payload, result) = (task.payload.take(), task.result.take());
    let mut value = serde_json::to_value(&task)?;
    if let Value::Object(object) = &mut value {
        object.remove("payload");
        object.remove("result");
        bytes_field(object, "payload", payload.as_ref().map(Bytes::as_ref));
        bytes_field(object, "result", result.as_ref().map(Bytes::as_ref));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_base64() {
        let mut object = Map::new();
        bytes_field(&mut object, "result", Some(&[0xff, 0x00]));
        assert_eq!(Value::Object(object), serde_json::json!({ "result_base64": "/wA=" }));
    }
}
