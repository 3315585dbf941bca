//! The transition log: the changes of tasks, one compact row for each commit.
//!
//! A change is a code, the sub-queue, the task and up to two numbers, each as a variable-length
//! integer (LEB128, as in DWARF 5, section 7.6).

use std::time::Duration;

use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::task::{TaskId, TaskState};

/// Changes of one commit, not yet written.
#[derive(Debug, Default, Clone)]
pub(in crate::sqlite) struct LogBuffer {
    /// The encoded changes.
    bytes: Vec<u8>,
}

impl LogBuffer {
    /// Appends a change.
    pub(in crate::sqlite) fn push(&mut self, task: TaskId, sub_queue: i64, change: Change) {
        let (code, first, second) = encode(change);
        self.bytes.push(code);
        put(&mut self.bytes, sub_queue.unsigned_abs());
        put(&mut self.bytes, task.0.unsigned_abs());
        for number in [first, second].into_iter().flatten() {
            put(&mut self.bytes, number);
        }
    }

    /// Returns true if there is no change.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the encoded changes.
    pub(in crate::sqlite) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the position for [`undo_to`](Self::undo_to).
    pub(in crate::sqlite) fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the changes after a position.
    pub(super) fn undo_to(&mut self, position: usize) {
        self.bytes.truncate(position);
    }
}

/// A change as read from the log.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Logged {
    /// The task.
    pub(in crate::sqlite) task: TaskId,
    /// The task's sub-queue, from which its queue and kind follow.
    pub(in crate::sqlite) sub_queue: i64,
    /// The change.
    pub(in crate::sqlite) change: Change,
}

impl Logged {
    /// Returns true if the task ended with this change.
    pub(in crate::sqlite) fn is_end(&self) -> bool {
        end_state(self.change).is_some()
    }
}

/// Returns the state in which a change leaves an ended task.
fn end_state(change: Change) -> Option<TaskState> {
    match change {
        Change::Completed => Some(TaskState::Completed),
        Change::Failed => Some(TaskState::Failed),
        Change::Dead => Some(TaskState::Dead),
        Change::Cancelled => Some(TaskState::Cancelled),
        Change::Expired => Some(TaskState::Expired),
        _ => None,
    }
}

/// Returns the change with which a task enters an end state. The callers pass no live state.
pub(in crate::sqlite) fn end_change(state: TaskState) -> Change {
    match state {
        TaskState::Failed => Change::Failed,
        TaskState::Dead => Change::Dead,
        TaskState::Cancelled => Change::Cancelled,
        TaskState::Expired => Change::Expired,
        TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running | TaskState::Completed => {
            Change::Completed
        }
    }
}

/// Returns a change's code and numbers. Codes are part of the file format.
fn encode(change: Change) -> (u8, Option<u64>, Option<u64>) {
    match change {
        Change::Submitted => (0, None, None),
        Change::Started { attempt } => (1, Some(attempt.into()), None),
        Change::Completed => (2, None, None),
        Change::Retrying { attempt, after } => {
            (3, Some(attempt.into()), Some(u64::try_from(after.as_micros()).unwrap_or(u64::MAX)))
        }
        Change::Failed => (4, None, None),
        Change::Dead => (5, None, None),
        Change::CancelRequested => (6, None, None),
        Change::Cancelled => (7, None, None),
        Change::Expired => (8, None, None),
        Change::Released => (9, None, None),
        Change::LeaseLost => (10, None, None),
        Change::Retried => (11, None, None),
        Change::PriorityRaised => (12, None, None),
        Change::Purged => (13, None, None),
        Change::Unblocked => (20, None, None),
        Change::Blocked => (21, None, None),
        Change::Moved => (22, None, None),
        Change::Batched { batch } => (30, Some(batch.0.unsigned_abs()), None),
        Change::Published { position } => (31, Some(position), None),
    }
}

/// Reads the changes of one log row.
pub(in crate::sqlite) fn decode(mut bytes: &[u8]) -> Result<Vec<Logged>> {
    let mut changes = Vec::with_capacity(bytes.len() / 4);
    while let Some((&code, rest)) = bytes.split_first() {
        bytes = rest;
        let sub_queue = take(&mut bytes)?.cast_signed();
        let task = TaskId(take(&mut bytes)?.cast_signed());
        changes.push(Logged { task, sub_queue, change: decode_change(code, &mut bytes)? });
    }
    Ok(changes)
}

/// Decodes the change of a code, whose numbers follow in `bytes`.
fn decode_change(code: u8, bytes: &mut &[u8]) -> Result<Change> {
    let attempt = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(match code {
        0 => Change::Submitted,
        1 => Change::Started { attempt: attempt(take(bytes)?) },
        2 => Change::Completed,
        3 => Change::Retrying { attempt: attempt(take(bytes)?), after: Duration::from_micros(take(bytes)?) },
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
        30 => Change::Batched { batch: TaskId(take(bytes)?.cast_signed()) },
        31 => Change::Published { position: take(bytes)? },
        _ => return Err(damaged()),
    })
}

/// Appends a number: seven bits a byte, the lowest first, with the high bit set on all but the
/// last.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number as u8) | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number off the front of the bytes.
fn take(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(damaged)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged())
}

/// The error for a log row that cannot be decoded.
#[cold]
fn damaged() -> Error {
    Error::corrupt("a row of the store's log cannot be read; the file is damaged; restore a backup")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_logged_is_read_back(task in 0i64..=i64::MAX, sub_queue in 0i64..1_000_000, attempt: u32, after: u64) {
            let changes = [
                Change::Started { attempt },
                Change::Retrying { attempt, after: Duration::from_micros(after) },
                Change::Purged,
                Change::Published { position: after },
            ];
            let mut buffer = LogBuffer::default();
            for change in changes {
                buffer.push(TaskId(task), sub_queue, change);
            }
            let read = decode(buffer.bytes()).unwrap();
            prop_assert_eq!(read.iter().map(|logged| logged.change).collect::<Vec<_>>(), changes);
            prop_assert!(read.iter().all(|logged| logged.task == TaskId(task) && logged.sub_queue == sub_queue));
        }

        #[test]
        fn damaged_bytes_are_refused_or_read_and_never_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}
