//! Messages for an orchestration, which arrive between its turns.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// A message that waits for the next turn of an orchestration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The number of the message: counted from 1, without gaps, over the whole life of the
    /// orchestration.
    pub number: u64,
    /// The time at which the message arrived.
    pub at: Timestamp,
    /// The content.
    pub body: MessageBody,
}

/// The end of a task, as it is reported to its orchestration.
#[derive(Debug, Clone)]
pub(crate) struct EndReport {
    pub(crate) reference: u64,
    pub(crate) task: TaskId,
    pub(crate) state: TaskState,
    pub(crate) result: Option<Bytes>,
    /// The last error of the task.
    pub(crate) error: Option<String>,
    /// The number of claims of the task.
    pub(crate) claims: u32,
}

impl EndReport {
    /// Returns the message. A completed task reports its result unless that is too large; any other
    /// task reports its last error.
    pub(crate) fn into_body(self) -> MessageBody {
        let Self { reference, task, state, result, error, claims } = self;
        let completed = state == TaskState::Completed;
        let result = result.filter(|_| completed);
        let omitted = result.as_ref().map(Bytes::len).filter(|size| *size > bounds::REPORTED_RESULT);
        MessageBody::Ended {
            reference,
            task,
            state,
            result: result.filter(|_| omitted.is_none()),
            error: error.filter(|_| !completed),
            attempts: claims,
            omitted: omitted.map(|size| size as u64),
        }
    }
}

impl Message {
    /// Returns the approximate size: the bytes of results, errors and payloads. An omitted result
    /// counts, because the reader gets it for the same turn.
    fn bytes(&self) -> usize {
        match &self.body {
            MessageBody::Ended { result, error, omitted, .. } => {
                let omitted = omitted.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
                let result = result.as_ref().map_or(omitted, Bytes::len);
                result.saturating_add(error.as_ref().map_or(0, String::len))
            }
            MessageBody::Signal { payload, .. } => payload.len(),
            MessageBody::NotStarted { .. } | MessageBody::Cancel => 0,
        }
    }
}

/// The messages that one turn receives: a limited number with a limited size, but always the first
/// one.
#[derive(Debug, Default)]
pub(crate) struct TurnIntake {
    messages: usize,
    bytes: usize,
}

impl TurnIntake {
    /// Counts the next message, and returns whether it still fits.
    pub(crate) fn takes(&mut self, message: &Message) -> bool {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(message.bytes());
        self.messages == 1 || self.messages <= bounds::TURN_MESSAGES && self.bytes <= bounds::TURN_MESSAGE_BYTES
    }
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "message")]
pub enum MessageBody {
    /// A task that the orchestration submitted with a [reference](crate::NewTask::report) has
    /// ended.
    Ended {
        /// The reference.
        reference: u64,
        /// The task.
        task: TaskId,
        /// The state in which the task ended.
        state: TaskState,
        /// The result, if the task completed and the result is not omitted.
        result: Option<Bytes>,
        /// The last error, if the task did not complete.
        error: Option<String>,
        /// The number of attempts that began: the claims of the task, including claims that were
        /// released. If it is 0, the task had no effect.
        attempts: u32,
        /// The size in bytes of a result that is larger than
        /// [`bounds::REPORTED_RESULT`](crate::bounds::REPORTED_RESULT). The reader gets such a
        /// result from the task.
        omitted: Option<u64>,
    },
    /// A task that the orchestration submitted with a reference was not inserted, because another
    /// task has its key.
    NotStarted {
        /// The reference.
        reference: u64,
        /// The task that has the key.
        existing: TaskId,
    },
    /// A caller sent a [`Signal`].
    Signal {
        /// The name of the signal.
        name: Name,
        /// The payload.
        payload: Bytes,
    },
    /// A caller requested the cancellation of the orchestration, or its parent ended without
    /// completing.
    Cancel,
}

/// The recipient of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipient {
    /// The orchestration with this number.
    Task(TaskId),
    /// The active orchestration of a kind that has this key.
    Key {
        /// The kind.
        kind: Name,
        /// The key.
        key: String,
    },
    /// The active orchestration of a kind that has this key. If there is none, the signal is kept
    /// for the orchestration that is submitted with the key.
    KeyOrStart {
        /// The kind.
        kind: Name,
        /// The key.
        key: String,
        /// The shortest time for which the signal and all others that are kept for the key stay
        /// kept; more than zero, at most [`bounds::UNSTARTED_KEPT`](crate::bounds::UNSTARTED_KEPT).
        keep_for: Duration,
    },
}

/// A signal: a named payload for an orchestration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The recipient.
    pub to: Recipient,
    /// The name by which the orchestration's code waits for the signal.
    pub name: Name,
    /// The payload; at most as large as that of a task.
    pub payload: Bytes,
}
