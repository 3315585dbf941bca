//! What comes for an orchestration between its turns.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// Something that came for an orchestration and waits for its next turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Counts the messages of this orchestration from 1, without gaps, over its whole life.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// What it says.
    pub body: MessageBody,
}

impl Message {
    /// How large it is, nearly.
    fn bytes(&self) -> usize {
        match &self.body {
            MessageBody::Ended { result, error, .. } => {
                result.as_ref().map_or(0, Bytes::len) + error.as_ref().map_or(0, String::len)
            }
            MessageBody::Signal { payload, .. } => payload.len(),
            MessageBody::NotStarted { .. } | MessageBody::Cancel => 0,
        }
    }
}

/// What a turn is given of a mailbox: up to a number of messages, and up to a number of bytes, but
/// always the first.
#[derive(Debug, Default)]
pub(crate) struct Handful {
    messages: usize,
    bytes: usize,
}

impl Handful {
    /// Whether the next message belongs to it.
    pub(crate) fn takes(&mut self, message: &Message) -> bool {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(message.bytes());
        self.messages == 1 || self.messages <= bounds::TURN_MESSAGES && self.bytes <= bounds::TURN_MESSAGE_BYTES
    }
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "message")]
pub enum MessageBody {
    /// A task that the orchestration submitted under a [reference](crate::NewTask::report) has
    /// ended.
    Ended {
        /// The reference.
        reference: u64,
        /// The task.
        task: TaskId,
        /// How it ended.
        state: TaskState,
        /// What it answered, if it completed.
        result: Option<Bytes>,
        /// Its last error, if it did not complete.
        error: Option<String>,
    },
    /// A task that the orchestration submitted under a reference was not taken, since another has
    /// its key.
    NotStarted {
        /// The reference.
        reference: u64,
        /// The task that has the key.
        existing: TaskId,
    },
    /// Somebody sent it something.
    Signal {
        /// Under which name.
        name: Name,
        /// What.
        payload: Bytes,
    },
    /// Somebody wants it cancelled.
    Cancel,
}

/// To whom a signal goes.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The active orchestration of a kind that has this key, or the one that starts with it within
    /// a time.
    KeyOrStart {
        /// The kind.
        kind: Name,
        /// The key.
        key: String,
        /// How long the signal, and what else is kept for the key, is kept at least; up to
        /// [`bounds::UNSTARTED_KEPT`](crate::bounds::UNSTARTED_KEPT).
        keep_for: Duration,
    },
}

/// Something to be sent to an orchestration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// To whom.
    pub to: Recipient,
    /// Under which name it waits for it.
    pub name: Name,
    /// What is sent, at most as large as a payload may be.
    pub payload: Bytes,
}
