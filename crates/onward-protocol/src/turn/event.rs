//! The events of a history, as a worker reads them.

use serde::{Deserialize, Serialize};

use super::data::Data;
use crate::decimal::Id;
use crate::error::{Error, Result};

/// The state in which a task of an orchestration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It has a result.
    Completed,
    /// It failed, and no retry helps.
    Failed,
    /// It failed in every attempt.
    Dead,
    /// It was cancelled.
    Cancelled,
    /// It did not start in time.
    Expired,
    /// It was never started: another task has its key.
    NotStarted,
}

/// An event of a history. Times are in microseconds since 1970, and operations are numbered from 1
/// in the order in which the code began them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
pub enum Event {
    /// The code began.
    Started {
        /// The time that the code sees.
        at_us: u64,
        /// The seed of its random numbers: 64 bits, decimal.
        seed: String,
    },
    /// A turn began.
    Turn {
        /// The time that the code sees from here on.
        at_us: u64,
    },
    /// The code submitted a task, or started another orchestration.
    TaskSubmitted {
        /// The number of the operation.
        operation: u64,
        /// The kind.
        kind: String,
    },
    /// A task ended.
    TaskEnded {
        /// The number of the operation.
        operation: u64,
        /// The state.
        state: TaskState,
        /// The result of a completed task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Data>,
        /// The last error of a task that did not complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The task that has the key, if the task was not started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        existing: Option<Id>,
    },
    /// The code waits for a time.
    TimerStarted {
        /// The number of the operation.
        operation: u64,
        /// The time.
        until_us: u64,
    },
    /// The time of a timer has come.
    TimerFired {
        /// The number of the operation.
        operation: u64,
    },
    /// The code waits no longer for an operation.
    OperationCancelled {
        /// The number of the operation.
        operation: u64,
    },
    /// A signal arrived.
    Signal {
        /// The name.
        name: String,
        /// The payload.
        payload: Data,
    },
    /// A signal that arrived before the code began. The code runs only at the next event.
    SignalCarried {
        /// The name.
        name: String,
        /// The payload.
        payload: Data,
    },
    /// Cancellation was requested.
    CancelRequested,
    /// Cancellation was requested before the code began; `cancel_requested` follows.
    CancelCarried,
}

/// Reads a list of events.
///
/// # Errors
/// [`Code::BadField`](crate::Code::BadField) with the first fault.
pub fn read_events(bytes: &[u8]) -> Result<Vec<Event>> {
    serde_json::from_slice(bytes).map_err(|error| Error::field(format!("the history is not a list of events: {error}")))
}
