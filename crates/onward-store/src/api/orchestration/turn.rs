//! The write of a turn, and the record of an orchestration.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::hold::Hold;
use super::message::Message;
use crate::api::name::Name;
use crate::api::outcome::Submitted;
use crate::api::task::{Lease, NewTask, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::AfterFailure;

/// The result of one turn of an orchestration, as its engine writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The lease of the turn.
    pub lease: Lease,
    /// The number of events in the history before the turn.
    pub length: u64,
    /// The number of events that the turn appends.
    pub events: u64,
    /// The appended events, as the caller encodes them; empty if, and only if, there are none. At
    /// most [`bounds::TURN_BYTES`](crate::bounds::TURN_BYTES).
    pub chunk: Bytes,
    /// The number of the last message that the turn consumed. Messages up to it are discarded.
    pub consumed: u64,
    /// The published status, for readers; `None` leaves it unchanged. At most as large as a
    /// payload.
    pub status: Option<Bytes>,
    /// Published values by key, for readers; `None` removes a key. A key has 1 to 512 bytes, and a
    /// value is at most as large as a payload. An orchestration keeps at most
    /// [`bounds::VALUES`](crate::bounds::VALUES).
    pub values: Vec<(String, Option<Bytes>)>,
    /// Changes of the tags; `None` removes a key. If a key occurs several times, its last change
    /// applies. At most [`bounds::TURN_TAGS`](crate::bounds::TURN_TAGS).
    pub tags: Vec<(String, Option<String>)>,
    /// The version of the code that began the orchestration; `None` leaves it unchanged.
    /// [`StoreReads::why`](crate::StoreReads::why) uses it to report whether a worker has the code.
    pub version: Option<u32>,
    /// The names of the events for which the orchestration waits from now on, for
    /// [`StoreReads::why`](crate::StoreReads::why). At most
    /// [`bounds::AWAITED_NAMES`](crate::bounds::AWAITED_NAMES).
    /// [`bounds::AWAITED_CANCELLATION`](crate::bounds::AWAITED_CANCELLATION) stands for a request
    /// to cancel.
    pub awaits: Vec<Name>,
    /// The tasks to submit, at most [`bounds::TURN_TASKS`](crate::bounds::TURN_TASKS). A task has
    /// no parent, or the orchestration as its parent. It cannot have dependencies or an
    /// aggregation.
    pub submits: Vec<NewTask>,
    /// The tasks to cancel, after the submits. Tasks that have ended, and tasks that are not its
    /// children, are unchanged.
    pub cancels: Vec<ChildTask>,
    /// The tasks to cancel if no attempt of them has begun, after the
    /// [cancels](Self::cancels). A task that was ever claimed is unchanged, even if the claim was
    /// released.
    pub withdraws: Vec<ChildTask>,
    /// The positions, in ascending order, of appended events that are published: the stream of
    /// events has a [`Change::Published`](crate::Change::Published) for each. At most
    /// [`bounds::TURN_PUBLISHED`](crate::bounds::TURN_PUBLISHED).
    pub publishes: Vec<u64>,
    /// True if the turn may end the orchestration although messages wait that its code was not
    /// offered. They are kept and count as [waiting](InstanceRecord::waiting).
    pub leaves_unread: bool,
    /// The continuation.
    pub next: AfterTurn,
}

impl Turn {
    /// Creates a turn without events or other effects.
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
            withdraws: Vec::new(),
            publishes: Vec::new(),
            leaves_unread: false,
            next,
        }
    }
}

/// A task that an orchestration submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildTask {
    /// The task with this number.
    Task(TaskId),
    /// The live tasks that were submitted with this [reference](NewTask::report).
    Reference(u64),
}

impl From<TaskId> for ChildTask {
    fn from(task: TaskId) -> Self {
        Self::Task(task)
    }
}

/// The end of an attempt, and the turn to which its report leads: a worker that holds the
/// orchestration in memory plans the turn before the report is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct EndWithTurn {
    /// The lease of the attempt.
    pub lease: Lease,
    /// The end of the attempt.
    pub end: AttemptEnd,
    /// The turn that consumes the report and everything before it. Its lease names the
    /// orchestration; the store sets the session and the claim, and
    /// [`consumed`](Turn::consumed).
    pub turn: Turn,
    /// The [generation](ClaimedInstance::generation) in which the turn was planned.
    pub generation: u32,
    /// The number of messages that the orchestration had received before the report.
    pub received: u64,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnd {
    /// The end of [`Write::Complete`](crate::Write::Complete).
    Complete {
        /// The result of the handler; at most as large as a payload.
        result: Option<Bytes>,
    },
    /// The end of [`Write::Fail`](crate::Write::Fail).
    Fail {
        /// The error message; cut at 8 KiB.
        error: String,
        /// The effect on the task.
        next: AfterFailure,
    },
    /// The end of [`Write::ConfirmCancel`](crate::Write::ConfirmCancel).
    ConfirmCancel {
        /// The reason, which becomes the last error of the task; cut at 8 KiB.
        reason: String,
    },
}

impl AttemptEnd {
    /// Returns the state in which the task ends; `None` if it is to be retried.
    #[must_use]
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Complete { .. } => Some(TaskState::Completed),
            Self::Fail { next: AfterFailure::Dead, .. } => Some(TaskState::Dead),
            Self::Fail { next: AfterFailure::Fail, .. } => Some(TaskState::Failed),
            Self::Fail { next: AfterFailure::Retry { .. }, .. } => None,
            Self::ConfirmCancel { .. } => Some(TaskState::Cancelled),
        }
    }
}

/// The result of an [`EndWithTurn`].
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The state of the task after the end of the attempt.
    pub state: TaskState,
    /// The lease of the next attempt, if the session keeps the task.
    pub lease: Option<Lease>,
    /// The result of the turn; `None` if it was not written.
    pub turned: Option<Turned>,
}

/// The continuation of an orchestration after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterTurn {
    /// The session keeps the orchestration, and another turn follows.
    Continue,
    /// The orchestration is parked: it waits for a message, or until a time if that comes first. If
    /// messages already wait, it waits for a claim.
    Park {
        /// The time; `None` waits for a message only.
        until: Option<Timestamp>,
    },
    /// The orchestration completes.
    Complete {
        /// The result; at most as large as a payload.
        result: Option<Bytes>,
    },
    /// The orchestration fails.
    Fail {
        /// The error message; cut at 8 KiB.
        error: String,
    },
    /// The orchestration cannot continue and becomes a dead letter. An operator corrects the cause
    /// and retries it. It then continues with its history.
    Dead {
        /// The error message; cut at 8 KiB.
        error: String,
    },
    /// The orchestration ends as cancelled.
    Cancelled {
        /// The reason, which becomes the last error; cut at 8 KiB.
        reason: String,
    },
    /// The orchestration starts again with another payload and a new history. Waiting messages,
    /// status, values and tags are kept.
    ContinueAsNew {
        /// The payload; at most as large as that of a new task.
        payload: Bytes,
        /// The number of events with which the new history begins.
        events: u64,
        /// These events: consumed messages that the new history needs. At most
        /// [`bounds::TURN_BYTES`](crate::bounds::TURN_BYTES).
        chunk: Bytes,
    },
}

/// The result of writing a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turned {
    /// The lease of the turn. It holds for the next turn, if the session keeps the orchestration.
    pub lease: Lease,
    /// The new state of the orchestration.
    pub state: TaskState,
    /// The results of the submits, in order.
    pub submitted: Vec<Submitted>,
    /// The messages for the next turn, if the session keeps the orchestration. Otherwise empty.
    pub messages: Vec<Message>,
}

/// The part of an orchestration that a claim returns with its task.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedInstance {
    /// The number of times that the orchestration started again
    /// ([`ContinueAsNew`](AfterTurn::ContinueAsNew)).
    pub generation: u32,
    /// The number of events in its history.
    pub length: u64,
    /// The number of messages that have arrived so far.
    pub received: u64,
    /// The messages for the turn, oldest first: at most
    /// [`bounds::TURN_MESSAGES`](crate::bounds::TURN_MESSAGES), with at most
    /// [`bounds::TURN_MESSAGE_BYTES`](crate::bounds::TURN_MESSAGE_BYTES), but always the first.
    pub messages: Vec<Message>,
}

/// A chunk of a history: the events that one turn appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryChunk {
    /// The position of its first event, counted from 0.
    pub first: u64,
    /// The number of events.
    pub events: u64,
    /// The events, as the caller encoded them.
    pub chunk: Bytes,
}

/// The record of an orchestration: everything that a store keeps in addition to its task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// The number of times that it started again ([`ContinueAsNew`](AfterTurn::ContinueAsNew)).
    pub generation: u32,
    /// The number of events in its history.
    pub length: u64,
    /// The size of its history, in bytes.
    pub bytes: u64,
    /// The number of messages that have arrived so far.
    pub received: u64,
    /// The number of messages that wait for the next turn. After the end, the number that the code
    /// was never offered.
    pub waiting: u64,
    /// The version of the code that began it, as its turns stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The names of the events for which it waits, as its last turn stated.
    /// [`bounds::AWAITED_CANCELLATION`](crate::bounds::AWAITED_CANCELLATION) stands for a request
    /// to cancel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Name>,
    /// The hold that prevents its turns.
    #[serde(default, skip_serializing_if = "Hold::is_none")]
    pub hold: Hold,
    /// The published status.
    pub status: Option<Bytes>,
    /// The published values.
    pub values: BTreeMap<String, Bytes>,
}
