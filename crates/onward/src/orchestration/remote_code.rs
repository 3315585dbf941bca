//! The code of orchestrations that runs in another process, which replays the history itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use onward_store::{Name, NewTask, TaskId, Timestamp};

use super::replay::HistoryEvent;
use crate::handlers::EndReport;

/// The reply of code that runs in another process.
pub type RemoteFuture = Pin<Box<dyn Future<Output = RemoteReply> + Send>>;

/// The code of a kind of orchestrations that runs in another process. Each turn passes the whole
/// history, and the store accepts the reply only at its end.
pub trait RemoteCode: Send + Sync {
    /// Runs a turn.
    fn run(&self, turn: RemoteTurn) -> RemoteFuture;

    /// Reports whether the reply of a turn is durable, was dropped, or was refused.
    fn ended(&self, task: TaskId, claim: u32, report: EndReport);
}

/// A turn for code in another process.
#[derive(Debug, Clone)]
pub struct RemoteTurn {
    /// The orchestration.
    pub task: TaskId,
    /// The number of the claim.
    pub claim: u32,
    /// The kind.
    pub kind: Name,
    /// The queue.
    pub queue: Name,
    /// The payload.
    pub payload: Bytes,
    /// The number of times that the orchestration has continued as new.
    pub generation: u32,
    /// The events of the history. Operations are numbered from 1.
    pub history: Vec<HistoryEvent>,
    /// The new events, in order. The code reads them one after the other.
    pub arrivals: Vec<HistoryEvent>,
}

/// The reply to a turn.
#[derive(Debug)]
pub enum RemoteReply {
    /// The code has decided.
    Decided(Box<RemoteDecisions>),
    /// The code cannot continue, for this reason: the orchestration becomes a dead letter, and its
    /// messages are kept.
    Stuck(String),
    /// The turn did not take place, for this reason. It is tried again after the time.
    Released(std::time::Duration, String),
}

/// The decisions of the code in a turn.
#[derive(Debug)]
pub struct RemoteDecisions {
    /// The number of arrivals that the code has read.
    pub read: usize,
    /// The decisions in order, each with the index of the arrival that led to it. Indexes never go
    /// down.
    pub decisions: Vec<(usize, RemoteDecision)>,
    /// The names of the signals for which the code waits.
    pub awaits: Vec<Name>,
    /// The state of the code.
    pub end: RemoteEnd,
}

/// A decision of the code.
#[derive(Debug)]
pub enum RemoteDecision {
    /// Submit a task under the next number of an operation.
    Task(u64, Box<NewTask>),
    /// Wait for a time under the next number of an operation.
    Timer(u64, Timestamp),
    /// Cancel an operation that has not ended.
    Cancel(u64),
}

/// The state of the code after a turn.
#[derive(Debug)]
pub enum RemoteEnd {
    /// The code waits.
    Wait,
    /// The code has returned a result.
    Complete(Bytes),
    /// The code has failed.
    Fail(String),
    /// The code has stopped at a request to cancel.
    Cancelled,
    /// The code begins again.
    ContinueAsNew {
        /// The payload.
        payload: Bytes,
        /// The signals that the code did not take.
        signals: Vec<(Name, Bytes)>,
        /// True if the code has not seen a request to cancel.
        cancel: bool,
    },
}

/// The registered code of a kind.
#[derive(Clone)]
pub(crate) struct RemoteRegistration {
    pub(super) kind: String,
    pub(super) code: Arc<dyn RemoteCode>,
}

impl fmt::Debug for RemoteRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteRegistration").field("kind", &self.kind).finish_non_exhaustive()
    }
}
