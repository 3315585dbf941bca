//! The transition log: the changes of tasks, one compact row for each commit.
//!
//! A change is a code, the sub-queue, the task and up to two numbers, each as a variable-length
//! integer (LEB128, as in DWARF 5, section 7.6).

use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::task::{TaskId, TaskState};
use crate::rules::change_code::{ChangeCode, change_of, code_of};

/// Changes of one commit, not yet written.
#[derive(Debug, Default, Clone)]
pub(in crate::sqlite) struct LogBuffer {
    /// The encoded changes.
    bytes: Vec<u8>,
}

impl LogBuffer {
    /// Appends a change.
    pub(in crate::sqlite) fn push(&mut self, task: TaskId, sub_queue: i64, change: Change) {
        let ChangeCode { code, first, second } = code_of(change);
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

/// Reads the changes of one log row.
pub(in crate::sqlite) fn decode(mut bytes: &[u8]) -> Result<Vec<Logged>> {
    let mut changes = Vec::with_capacity(bytes.len() / 4);
    while let Some((&code, rest)) = bytes.split_first() {
        bytes = rest;
        let sub_queue = take(&mut bytes)?.cast_signed();
        let task = TaskId(take(&mut bytes)?.cast_signed());
        let change = change_of(code, || take(&mut bytes))?.ok_or_else(damaged)?;
        changes.push(Logged { task, sub_queue, change });
    }
    Ok(changes)
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
    use std::time::Duration;

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
