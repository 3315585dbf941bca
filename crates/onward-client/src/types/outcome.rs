//! The ends of tasks.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::is_ended;
use crate::error::{Error, Result};

/// A task's state, and its result or error if it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskOutcome {
    /// The id of the task.
    pub task: String,
    /// The state.
    pub state: String,
    /// The result of a completed task, byte for byte; empty if it has none. `None` in other states.
    pub result: Option<Bytes>,
    /// The last error, if there was one.
    pub error: Option<String>,
}

impl TaskOutcome {
    /// Returns whether the task has ended, in any way.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        is_ended(&self.state)
    }

    /// Reads the result as JSON. A completed task without a result has the result `null`.
    ///
    /// # Errors
    /// Returns an error if the task is not completed ([`Error::is_task_failure`]), or the result is
    /// of another type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let Some(result) = &self.result else {
            return Err(Error::task_failed(&self.task, &self.state, self.error.clone()));
        };
        let bytes: &[u8] = if result.is_empty() { b"null" } else { result };
        serde_json::from_slice(bytes)
            .map_err(|error| Error::unreadable(format!("the result of task {} cannot be read: {error}", self.task)))
    }
}

/// The effect of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancellation {
    /// The task has ended.
    Ended,
    /// The task runs and was asked to stop.
    Requested,
}
