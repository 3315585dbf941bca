//! The messages of the gateway.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::decimal::{Fence, Id};
use crate::error::{Code, Error, Result};
use crate::header::{Header, at_most, entries, index, name, text, unsupported, within};
use crate::task_fence::TaskFence;

/// A message of the gateway.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum GatewayMessage {
    /// The worker is accepted.
    Welcome(Welcome),
    /// Tasks to run.
    Tasks(Tasks),
    /// The reply to a beat.
    Alive(Alive),
    /// Ends that are durable.
    Ack(Ack),
    /// An attempt that should stop.
    Stop(Stop),
    /// The reply to a submit or a read.
    Reply(Box<Reply>),
    /// The gateway stops.
    Drain(Drain),
    /// An error.
    Error(ErrorMessage),
}

/// The terms of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both sides speak.
    pub protocol: u32,
    /// The name of the session.
    pub session: String,
    /// The time for which the session lives after a message of the worker.
    pub lease_ms: u64,
    /// The longest time between two beats.
    pub heartbeat_ms: u64,
    /// The largest payload, in bytes.
    #[serde(default = "default_max_payload")]
    pub max_payload: u64,
    /// The features that both sides have.
    #[serde(default)]
    pub features: Vec<String>,
    /// The name and version of the gateway.
    #[serde(default)]
    pub gateway: String,
}

fn default_max_payload() -> u64 {
    bounds::PAYLOAD_BYTES as u64
}

impl Welcome {
    fn check(&self) -> Result<()> {
        text("session", Some(&self.session), 1, bounds::NAME_BYTES)?;
        within("lease_ms", Some(self.lease_ms), 100, bounds::INTEGER)?;
        within("heartbeat_ms", Some(self.heartbeat_ms), 10, self.lease_ms / 2)?;
        within("max_payload", Some(self.max_payload), 1, bounds::INTEGER)?;
        at_most("features", self.features.len(), bounds::FEATURES)
    }
}

/// Tasks to run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tasks {
    /// The number of payloads of the message.
    #[serde(default)]
    pub payloads: usize,
    /// The tasks.
    pub tasks: Vec<Task>,
}

impl Tasks {
    fn check(&self) -> Result<()> {
        entries("tasks", self.tasks.len())?;
        for task in &self.tasks {
            name("kind", Some(&task.kind))?;
            within("attempt", Some(task.attempt.into()), 1, bounds::INTEGER)?;
            index("payload", task.payload, self.payloads)?;
            index("checkpoint", task.checkpoint, self.payloads)?;
            for events in task.turn.iter().flat_map(|turn| std::iter::once(&turn.events).chain(&turn.more)) {
                index("turn.events", Some(*events), self.payloads)?;
            }
        }
        Ok(())
    }
}

/// An attempt to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The task.
    pub task: Id,
    /// The fence of the attempt.
    pub fence: Fence,
    /// The kind.
    pub kind: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The payload index; none for an empty payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<usize>,
    /// The payload index of the checkpoint of an earlier attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<usize>,
    /// The queue; none for `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority; none for 128.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The time until the attempt is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The longest time between two heartbeats of this attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Id>,
    /// The tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The time for which a schedule submitted the task, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<String>,
    /// The number of items of a batch; none for a task that is no batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
    /// The history, if the task is a turn of an orchestration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

/// A turn of an orchestration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The payload index of the events: those of the history, then the new ones.
    pub events: usize,
    /// The payload indexes of further events, which follow those in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<usize>,
    /// The number of events of the history. The events from this index on are new.
    pub position: u64,
    /// The number of times that the orchestration has continued as new.
    pub generation: u32,
    /// True if only the new events were sent: the worker has kept the code after the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_only: bool,
}

/// The reply to a beat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Alive {
    /// The number of the beat.
    pub n: u64,
    /// The tasks of the beat that the worker no longer holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Id>,
    /// The checkpoints that were not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedCheckpoint>,
}

/// A checkpoint that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCheckpoint {
    /// The task.
    pub task: Id,
    /// The reason.
    pub why: String,
}

/// Ends that are durable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ack {
    /// The ends.
    pub ends: Vec<AckEnd>,
}

/// The result of writing an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckEnd {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: TaskFence,
    /// The result.
    pub result: AckResult,
    /// The reason of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The result of writing an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckResult {
    /// Committed.
    Ok,
    /// The lease has passed on; nothing changed.
    Stale,
    /// Nothing changed, and the task is still the worker's.
    Refused,
}

/// An attempt that should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: TaskFence,
    /// The reason.
    pub why: StopReason,
    /// The time after which a handler that still runs is reported as stuck.
    #[serde(default)]
    pub grace_ms: u64,
}

/// The reason why an attempt should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The task was cancelled.
    Cancelled,
    /// The lease has passed on.
    Lost,
    /// More urgent work waits, or the gateway stops.
    Preempted,
    /// A time limit or a heartbeat limit is over.
    Timeout,
}

/// The reply to a submit or a read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The number of the request.
    pub request: u64,
    /// The number of payloads of the message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub payloads: usize,
    /// The error, if the request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorMessage>,
    /// The results of a submit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<SubmittedTask>>,
    /// The state of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The payload index of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<usize>,
    /// The text of its last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    /// The children of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Relative>>,
    /// The items of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Relative>>,
    /// The value of `after` for the following page, if more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Id>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The result of the submit of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedTask {
    /// The task.
    pub task: Id,
    /// The effect of its key: `inserted` and others.
    pub result: String,
}

/// A child of a task, or an item of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relative {
    /// The task.
    pub task: Id,
    /// The kind, of a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The state, of a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The payload index of its result, or of the item's payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<usize>,
    /// The text of its last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
}

/// The gateway stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// The reason, for logs.
    #[serde(default)]
    pub why: String,
    /// The time after which the gateway closes the connection.
    pub within_ms: u64,
}

/// An error, of either side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// The code.
    pub code: Code,
    /// The text, which names the thing, the value and the bound.
    #[serde(default)]
    pub text: String,
    /// The remedy.
    #[serde(default)]
    pub remedy: String,
    /// True if the sender closes the connection after this message.
    #[serde(default)]
    pub fatal: bool,
}

impl From<&Error> for ErrorMessage {
    fn from(error: &Error) -> Self {
        let mut text = error.text.clone();
        text.truncate(text.floor_char_boundary(bounds::ERROR_BYTES));
        Self { code: error.code, text, remedy: error.code.remedy().to_owned(), fatal: error.code.is_fatal() }
    }
}

impl GatewayMessage {
    /// Reads a message from its frames. The payloads stay in the frames after the first.
    ///
    /// # Errors
    /// Returns the first violation; [`Code::Unsupported`] for an unknown type.
    pub fn read(frames: &[Bytes]) -> Result<Self> {
        let header = Header::read(frames)?;
        match &*header.kind {
            "welcome" => {
                let welcome: Welcome = header.fields()?;
                welcome.check().map(|()| Self::Welcome(welcome))
            }
            "tasks" => {
                let tasks: Tasks = header.fields()?;
                tasks.check().map(|()| Self::Tasks(tasks))
            }
            "alive" => header.fields().map(Self::Alive),
            "ack" => header.fields().map(Self::Ack),
            "stop" => header.fields().map(Self::Stop),
            "reply" => header.fields().map(Self::Reply),
            "drain" => header.fields().map(Self::Drain),
            "error" => header.fields().map(Self::Error),
            other => Err(unsupported(other)),
        }
    }
}
