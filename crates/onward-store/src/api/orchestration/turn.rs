//! What a turn writes, and what is kept of an orchestration.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use super::hold::Hold;
use super::message::Message;
use crate::api::name::Name;
use crate::api::outcome::Submitted;
use crate::api::task::{Lease, NewTask, TaskId, TaskState};
use crate::api::timestamp::Timestamp;

/// What one turn of an orchestration has come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The right to do it.
    pub lease: Lease,
    /// How many events the history had before.
    pub length: u64,
    /// How many events it has more now.
    pub events: u64,
    /// These events, as the caller encodes them.
    pub chunk: Bytes,
    /// Up to which message it has taken in what came; those are forgotten.
    pub consumed: u64,
    /// What it says of itself, for whoever looks; `None` leaves it as it was.
    pub status: Option<Bytes>,
    /// Values that it keeps for whoever looks; `None` removes one.
    pub values: Vec<(String, Option<Bytes>)>,
    /// Tags that it gives itself; `None` removes one. Of several for a key the last counts; at most
    /// [`bounds::TURN_TAGS`](crate::bounds::TURN_TAGS).
    pub tags: Vec<(String, Option<String>)>,
    /// The version of the code that began the orchestration, so that [`why`](crate::Store::why) can
    /// say whether a worker has it; `None` leaves it as it was.
    pub version: Option<u32>,
    /// The names of the events that it waits for from now on, for whoever asks why it stands; at
    /// most [`bounds::AWAITED_NAMES`](crate::bounds::AWAITED_NAMES).
    pub awaits: Vec<Name>,
    /// Tasks that it submits: its children, or strangers.
    pub submits: Vec<NewTask>,
    /// Tasks that it wants cancelled; those that have ended are left as they are.
    pub cancels: Vec<TaskId>,
    /// Ends the orchestration although messages wait that its code was not offered. They are kept
    /// with it, and count as [waiting](InstanceRecord::waiting).
    pub leaves_unread: bool,
    /// How it goes on.
    pub next: AfterTurn,
}

impl Turn {
    /// A turn that does nothing but go on as said.
    #[must_use]
    pub fn new(lease: Lease, length: u64, next: AfterTurn) -> Self {
        Self {
            lease,
            length,
            events: 0,
            chunk: Bytes::new(),
            consumed: 0,
            status: None,
            values: Vec::new(),
            tags: Vec::new(),
            version: None,
            awaits: Vec::new(),
            submits: Vec::new(),
            cancels: Vec::new(),
            leaves_unread: false,
            next,
        }
    }
}

/// How an orchestration goes on after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterTurn {
    /// The session keeps it, and another turn follows.
    Continue,
    /// It waits for a message; or for a moment, if that comes first. Where messages wait already,
    /// it waits for a claim.
    Park {
        /// The moment.
        until: Option<Timestamp>,
    },
    /// It has ended well.
    Complete {
        /// What it answers, at most as large as a payload may be.
        result: Option<Bytes>,
    },
    /// It has ended with an error.
    Fail {
        /// What went wrong; cut at 8 KiB.
        error: String,
    },
    /// It cannot go on as it is: it is a dead letter until somebody has mended what is wrong and
    /// tries it again, which goes on with the history that it has.
    Dead {
        /// What went wrong; cut at 8 KiB.
        error: String,
    },
    /// It has ended because somebody asked for it.
    Cancelled {
        /// What it says of why; cut at 8 KiB.
        reason: String,
    },
    /// It begins again with another payload and another history. Messages that wait, its status,
    /// its values and its tags stay.
    ContinueAsNew {
        /// The payload.
        payload: Bytes,
        /// How many events the new history begins with.
        events: u64,
        /// These events: what it has taken in and is to be known there, too.
        chunk: Bytes,
    },
}

/// What a turn did.
#[derive(Debug, Clone, PartialEq)]
pub struct Turned {
    /// Where the orchestration stands now.
    pub state: TaskState,
    /// What became of the tasks that it submitted, in order.
    pub submitted: Vec<Submitted>,
    /// What came meanwhile, where the session keeps it.
    pub messages: Vec<Message>,
}

/// What a claim hands out of an orchestration beside its task.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedInstance {
    /// How often it has begun again.
    pub generation: u32,
    /// How many events its history has.
    pub length: u64,
    /// What came for it, oldest first; at most
    /// [`bounds::TURN_MESSAGES`](crate::bounds::TURN_MESSAGES), and with at most
    /// [`bounds::TURN_MESSAGE_BYTES`](crate::bounds::TURN_MESSAGE_BYTES) unless the first has more.
    pub messages: Vec<Message>,
}

/// Some events of a history, as they were appended by one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryChunk {
    /// The place of its first event, counted from 0.
    pub first: u64,
    /// How many events there are.
    pub events: u64,
    /// The events, as the caller encoded them.
    pub chunk: Bytes,
}

/// What is kept of an orchestration beside its task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct InstanceRecord {
    /// How often it has begun again.
    pub generation: u32,
    /// How many events its history has.
    pub length: u64,
    /// How many bytes these have.
    pub bytes: u64,
    /// How many messages have come for it so far.
    pub received: u64,
    /// The number of them that wait for its next turn; after its end, the number that its code was
    /// never offered.
    pub waiting: u64,
    /// The version of the code that began it, as its turns said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The names of the events that it waits for, as its last turn said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Name>,
    /// Whether it goes on.
    #[serde(skip_serializing_if = "Hold::is_none")]
    pub hold: Hold,
    /// What it says of itself.
    pub status: Option<Bytes>,
    /// The values that it keeps.
    pub values: BTreeMap<String, Bytes>,
}
