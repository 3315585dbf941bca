//! The facts of an orchestration that its task does not contain, for people and for programs.

use std::fmt::Write as _;

use bytes::Bytes;
use onward_store::{Hold, InstanceRecord, TaskRecord};
use serde_json::{Map, Value, json};

use super::json::{bytes_field, task_json};
use super::record::size_text;
use super::text::{counted, one_line};

/// The number of columns of a value that are shown; `--json` has all of it.
const SHOWN_COLUMNS: usize = 400;

/// Returns one fact per line, in the format of a task. For an orchestration that has ended,
/// includes the number of unread messages.
pub(crate) fn show_instance(instance: &InstanceRecord, unread: Option<u64>) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    if instance.generation > 0 {
        fact("continued", counted(instance.generation.into(), "time"));
    }
    fact("history", format!("{}, {}", counted(instance.length, "event"), size_text(instance.bytes)));
    let left = unread.map_or_else(|| format!("{} wait", instance.waiting), |unread| format!("{unread} unread"));
    fact("messages", format!("{left}, of {} received", instance.received));
    match instance.hold {
        Hold::None => {}
        Hold::Paused | Hold::PausedDue => fact("paused", "until it is resumed".to_owned()),
        Hold::Unstarted => {
            fact("unstarted", "it keeps messages to its key until an orchestration starts with it".to_owned())
        }
    }
    if let Some(status) = &instance.status {
        fact("status", one_line(&written_value(status), SHOWN_COLUMNS));
    }
    for (key, value) in kept_values(instance) {
        fact("value", format!("{key}={}", one_line(&written_value(value), SHOWN_COLUMNS)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns a value that an orchestration has written, as text.
pub(crate) fn written_value(bytes: &Bytes) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("{} bytes that are not text (--json shows them as base64)", bytes.len()),
    }
}

/// Returns an orchestration as a JSON object: the fields of its task, and under `instance` the
/// facts that its task does not contain.
pub(crate) fn orchestration_json(task: TaskRecord, instance: &InstanceRecord) -> serde_json::Result<Value> {
    let mut value = task_json(task)?;
    let InstanceRecord { generation, length, bytes, received, waiting, .. } = instance;
    let mut kept = Map::new();
    kept.insert("generation".to_owned(), json!(generation));
    kept.insert("events".to_owned(), json!(length));
    kept.insert("bytes".to_owned(), json!(bytes));
    kept.insert("received".to_owned(), json!(received));
    kept.insert("waiting".to_owned(), json!(waiting));
    add_instance_fields(&mut kept, instance);
    value["instance"] = Value::Object(kept);
    Ok(value)
}

/// Adds the hold, the status and the values of an orchestration to an object. Values that are JSON
/// stay JSON; others become text or base64.
pub(crate) fn add_instance_fields(object: &mut Map<String, Value>, instance: &InstanceRecord) {
    if instance.hold != Hold::None {
        object.insert("hold".to_owned(), json!(instance.hold));
    }
    if let Some(status) = &instance.status {
        put(object, "status", status);
    }
    let mut values = Map::new();
    for (key, value) in kept_values(instance) {
        put(&mut values, key, value);
    }
    object.insert("values".to_owned(), Value::Object(values));
}

/// Returns the values that the code of an orchestration keeps, without those of the engine (replies
/// to updates).
pub(crate) fn kept_values(instance: &InstanceRecord) -> impl Iterator<Item = (&String, &Bytes)> {
    instance.values.iter().filter(|(key, _)| !key.starts_with("onward."))
}

fn put(object: &mut Map<String, Value>, name: &str, bytes: &Bytes) {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            object.insert(name.to_owned(), value);
        }
        Err(_) => bytes_field(object, name, Some(bytes)),
    }
}
