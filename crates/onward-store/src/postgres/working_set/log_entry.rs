//! The log's entries: the changes of one call's tasks as text.

use serde::{Deserialize, Serialize, Serializer as _};

use crate::api::error::{Error, Result};
use crate::api::event::{Event, EventCursor};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::model::LoggedChange;
use crate::rules::change_code::{ChangeCode, change_of, code_of};

/// The usual size of a change, in bytes.
const CHANGE_BYTES: usize = 64;

/// A change: time, task, kind, queue, code, and up to two numbers. The order of the fields and the
/// codes are part of the schema.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChangeRow(i64, i64, Name, Name, u8, u64, u64);

/// Encodes the changes of one entry.
pub(crate) fn encode(changes: &[LoggedChange]) -> Result<String> {
    let unwritten =
        |error: &dyn std::fmt::Display| Error::io(format!("the log of the store cannot be written: {error}"));
    // One allocation for the whole text, which is long; growing would copy it.
    let mut text = Vec::with_capacity(changes.len().saturating_mul(CHANGE_BYTES));
    let mut serializer = serde_json::Serializer::new(&mut text);
    serializer.collect_seq(changes.iter().map(row)).map_err(|error| unwritten(&error))?;
    String::from_utf8(text).map_err(|error| unwritten(&error))
}

/// Returns the row of a change.
fn row(logged: &LoggedChange) -> ChangeRow {
    let ChangeCode { code, first, second } = code_of(logged.change);
    let (kind, queue) = (logged.kind.clone(), logged.queue.clone());
    ChangeRow(logged.at.as_microseconds(), logged.task.0, kind, queue, code, first.unwrap_or(0), second.unwrap_or(0))
}

/// Decodes the changes of one entry of the log.
pub(crate) fn read_changes(text: &str) -> Result<Vec<ChangeRow>> {
    serde_json::from_str(text)
        .map_err(|error| Error::corrupt(format!("the log of the store cannot be read: {error}; restore a backup")))
}

/// Returns the event for a change.
pub(crate) fn decode(row: ChangeRow, cursor: EventCursor) -> Result<Event> {
    let ChangeRow(at, task, kind, queue, code, first, second) = row;
    let mut numbers = [first, second].into_iter();
    // No change has more than the two numbers of a row.
    let change = change_of(code, || Ok::<_, Error>(numbers.next().unwrap_or(0)))?;
    let change =
        change.ok_or_else(|| Error::corrupt(format!("the log of the store has a change {code}; restore a backup")))?;
    Ok(Event { cursor, at: Timestamp::from_microseconds(at), task: TaskId(task), kind, queue, change })
}
