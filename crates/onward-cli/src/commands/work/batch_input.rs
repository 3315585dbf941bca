//! The input of a command.

use bytes::Bytes;
use onward::{Context, Failure, TaskRecord};
use serde_json::{Map, Value};

use crate::output::bytes_field;

/// Returns the payload of a task. For a batch, returns a line of JSON for each item, the oldest
/// first.
pub(super) async fn stdin(context: &Context) -> Result<Bytes, Failure> {
    if context.item_count() == 0 {
        return Ok(context.payload().clone());
    }
    let lines: Vec<String> = context.items().await?.iter().map(line).collect();
    Ok(lines.concat().into())
}

fn line(item: &TaskRecord) -> String {
    let mut object = Map::new();
    object.insert("task".to_owned(), item.id.0.into());
    bytes_field(&mut object, "payload", item.payload.as_deref());
    format!("{}\n", Value::Object(object))
}
