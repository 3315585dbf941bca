//! The log's entries: the changes of one call's tasks as text.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer as _};

use crate::api::error::{Error, Result};
use crate::api::event::{Change, Event, EventCursor};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::model::LoggedChange;

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
    let (code, first, second) = code(logged.change);
    let (kind, queue) = (logged.kind.clone(), logged.queue.clone());
    ChangeRow(logged.at.as_microseconds(), logged.task.0, kind, queue, code, first, second)
}

/// Returns a change's code and numbers; [`decode`] is the inverse.
fn code(change: Change) -> (u8, u64, u64) {
    match change {
        Change::Submitted => (0, 0, 0),
        Change::Started { attempt } => (1, attempt.into(), 0),
        Change::Completed => (2, 0, 0),
        Change::Retrying { attempt, after } => (3, attempt.into(), microseconds(after)),
        Change::Failed => (4, 0, 0),
        Change::Dead => (5, 0, 0),
        Change::CancelRequested => (6, 0, 0),
        Change::Cancelled => (7, 0, 0),
        Change::Expired => (8, 0, 0),
        Change::Released => (9, 0, 0),
        Change::LeaseLost => (10, 0, 0),
        Change::Retried => (11, 0, 0),
        Change::PriorityRaised => (12, 0, 0),
        Change::Purged => (13, 0, 0),
        Change::Unblocked => (20, 0, 0),
        Change::Blocked => (21, 0, 0),
        Change::Moved => (22, 0, 0),
        Change::Batched { batch } => (30, batch.0.unsigned_abs(), 0),
        Change::Published { position } => (31, position, 0),
    }
}

/// Returns a duration as a number of the row.
fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Decodes the changes of one entry of the log.
pub(crate) fn read_changes(text: &str) -> Result<Vec<ChangeRow>> {
    serde_json::from_str(text)
        .map_err(|error| Error::corrupt(format!("the log of the store cannot be read: {error}; restore a backup")))
}

/// Returns the event for a change.
pub(crate) fn decode(row: ChangeRow, cursor: EventCursor) -> Result<Event> {
    let ChangeRow(at, task, kind, queue, code, first, second) = row;
    let attempt = u32::try_from(first).unwrap_or(u32::MAX);
    let change = match code {
        0 => Change::Submitted,
        1 => Change::Started { attempt },
        2 => Change::Completed,
        3 => Change::Retrying { attempt, after: Duration::from_micros(second) },
        4 => Change::Failed,
        5 => Change::Dead,
        6 => Change::CancelRequested,
        7 => Change::Cancelled,
        8 => Change::Expired,
        9 => Change::Released,
        10 => Change::LeaseLost,
        11 => Change::Retried,
        12 => Change::PriorityRaised,
        13 => Change::Purged,
        20 => Change::Unblocked,
        21 => Change::Blocked,
        22 => Change::Moved,
        30 => Change::Batched { batch: TaskId(first.cast_signed()) },
        31 => Change::Published { position: first },
        _ => return Err(Error::corrupt(format!("the log of the store has a change {code}; restore a backup"))),
    };
    Ok(Event { cursor, at: Timestamp::from_microseconds(at), task: TaskId(task), kind, queue, change })
}
