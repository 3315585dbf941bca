//! The decisions of a worker about a turn.

use serde::{Deserialize, Serialize};

use super::data::Data;
use crate::bounds;
use crate::error::{Error, Result};
use crate::header::{at_most, name, within};
use crate::worker::NewTask;

/// The decisions of the code in a turn, in the order in which it made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnReply {
    /// The number of new events that the code read.
    pub read: u64,
    /// The decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// The names of the signals for which the code waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// The state of the code after the turn.
    pub end: TurnEnd,
    /// The number of events of the history after the turn, if the worker keeps the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// One decision. `after` is the index of the new event that led to it, counted from 0, and never
/// goes down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Decision {
    /// Submit a task, or start another orchestration.
    Task {
        /// The new event that led to it.
        after: u64,
        /// The number of the operation: one more than that of the operation before.
        operation: u64,
        /// The task.
        #[serde(flatten)]
        task: Box<NewChild>,
    },
    /// Wait for a time.
    Timer {
        /// The new event that led to it.
        after: u64,
        /// The number of the operation.
        operation: u64,
        /// The time, in microseconds since 1970.
        until_us: u64,
    },
    /// Cancel an operation that has not ended.
    Cancel {
        /// The new event that led to it.
        after: u64,
        /// The number of the operation.
        operation: u64,
    },
}

/// A task of an orchestration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NewChild {
    /// The fields of a new task, without `payload`.
    #[serde(flatten)]
    pub task: NewTask,
    /// The payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// True if it is an orchestration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orchestration: bool,
}

/// A signal that the code did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalSent {
    /// The name.
    pub name: String,
    /// The payload.
    pub payload: Data,
}

/// The state of the code after a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The code waits.
    Wait,
    /// The orchestration is completed.
    Complete {
        /// The result.
        result: Data,
    },
    /// The orchestration failed.
    Fail {
        /// The error.
        error: String,
    },
    /// The orchestration was cancelled on request.
    Cancelled,
    /// The orchestration begins again with another payload and an empty history.
    ContinueAsNew {
        /// The payload.
        payload: Data,
        /// The signals that the code did not take, in the order of their arrival.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signals: Vec<SignalSent>,
        /// True if the code has not seen a request to cancel.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cancel: bool,
    },
}

impl TurnReply {
    /// Reads the payload of an `end` with the outcome `turn`.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let reply: Self = serde_json::from_slice(bytes)
            .map_err(|error| Error::field(format!("the payload of `turn` is not a reply: {error}")))?;
        reply.check().map(|()| reply)
    }

    fn check(&self) -> Result<()> {
        at_most("decisions", self.decisions.len(), bounds::DECISIONS)?;
        at_most("waits", self.waits.len(), bounds::ENTRIES)?;
        self.waits.iter().try_for_each(|waited| name("waits", Some(waited)))?;
        within("length", self.length, 0, bounds::INTEGER)?;
        let mut earliest = 0;
        for decision in &self.decisions {
            let after = decision.after();
            if after < earliest || after >= self.read {
                let read = self.read;
                return Err(Error::field(format!("`after` is {after}; it must be from {earliest} to below {read}")));
            }
            earliest = after;
            decision.check()?;
        }
        Ok(())
    }
}

impl Decision {
    /// Returns the index of the new event that led to it.
    #[must_use]
    pub fn after(&self) -> u64 {
        match self {
            Self::Task { after, .. } | Self::Timer { after, .. } | Self::Cancel { after, .. } => *after,
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Task { operation, task, .. } => {
                within("operation", Some(*operation), 1, bounds::INTEGER)?;
                task.task.check(0)
            }
            Self::Timer { operation, until_us, .. } => {
                within("operation", Some(*operation), 1, bounds::INTEGER)?;
                within("until_us", Some(*until_us), 0, bounds::INTEGER)
            }
            Self::Cancel { operation, .. } => within("operation", Some(*operation), 1, bounds::INTEGER),
        }
    }
}
