//! The inputs and outputs of a session.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_protocol::gateway::{AckEnd, Reply, StopReason, Task};
use onward_protocol::worker::{Ask, End, Hello, Progress, Submit};
use onward_protocol::{Error, GatewayMessage, TaskFence};

/// An attempt that the engine passes to the worker.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct Offer {
    /// The attempt.
    pub(in crate::gateway) attempt: TaskFence,
    /// Its description. The indexes of payloads are set when the message is written.
    pub(in crate::gateway) task: Task,
    /// The payload.
    pub(in crate::gateway) payload: Bytes,
    /// The checkpoint of an earlier attempt.
    pub(in crate::gateway) checkpoint: Option<Bytes>,
    /// The events in parts, if it is a turn of an orchestration.
    pub(in crate::gateway) events: Vec<Bytes>,
}

/// The result of writing the end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) enum EndOutcome {
    /// The end is durable.
    Durable,
    /// The lease has passed on.
    Stale,
    /// The store refused it, for this reason.
    Refused(String),
    /// Nothing is known, because the store does not reply. The worker keeps the end and sends it
    /// again.
    Unknown,
}

/// An event for a session: a message of the worker, a report of the engine, a change of the
/// connection, or the passing of time.
#[derive(Debug)]
pub(in crate::gateway) enum Input {
    /// A message of the worker.
    Message(Vec<Bytes>),
    /// Bytes of the worker that are no message.
    Malformed(Error),
    /// The engine of the worker runs, or the reason why it does not.
    Opened(Result<(), Error>),
    /// The engine started an attempt.
    Offered(Box<Offer>),
    /// The engine started an attempt that cannot be sent.
    NotOffered,
    /// The engine asks an attempt to stop.
    Stopping(TaskFence, StopReason),
    /// The end of an attempt of this session was written, dropped or refused.
    Ended(TaskFence, EndOutcome),
    /// The end of an attempt of another gateway was written, dropped or refused.
    ForeignEnded(TaskFence, EndOutcome),
    /// The end of an attempt has a value that the store would reject, for this reason. The attempt
    /// is still the worker's.
    Refused(TaskFence, String),
    /// A checkpoint of a beat is kept, or the reason why it is not.
    Checkpoint {
        /// The number of the beat.
        n: u64,
        /// The attempt.
        attempt: TaskFence,
        /// The reason why it is not kept.
        refused: Option<String>,
    },
    /// A submit or a read has its reply.
    Replied(Box<Reply>, Vec<Bytes>),
    /// Attempts that a worker brought from another gateway, and that are no longer its own.
    ResumedLost(Vec<TaskFence>),
    /// The gateway stops.
    Drain {
        /// The reason, for logs.
        why: &'static str,
        /// The time that the worker has.
        within: Duration,
    },
    /// The worker has connected again.
    Reattached(Box<Hello>),
    /// The connection is gone, for this reason.
    Disconnected(String),
    /// The worker is gone for good, for this reason.
    Gone(String),
    /// Time has passed.
    Tick,
}

/// The way in which the engine is to end an attempt.
#[derive(Debug, Clone)]
pub(in crate::gateway) enum EngineEnd {
    /// The end that the worker sent, with the payloads of its message.
    Worker(Box<End>, Arc<[Bytes]>),
    /// The worker has died; the text describes how.
    Crashed(String),
    /// The attempt did not take place.
    Released,
}

/// A command of a session for its driver.
#[derive(Debug)]
pub(in crate::gateway) enum Output {
    /// Send a message.
    Send(GatewayMessage, Vec<Bytes>),
    /// Send a task; neighbours share a message.
    Task(Box<Offer>),
    /// Send an acknowledgement; neighbours share a message.
    Ack(AckEnd),
    /// Start an engine for the worker.
    Open(Box<Hello>),
    /// Accept payloads from now on.
    AcceptPayloads,
    /// Lets the engine call this number of handlers over its whole life.
    Credit(usize),
    /// Leave tasks of these kinds to other engines.
    Skip(Vec<String>),
    /// End an attempt.
    End(TaskFence, EngineEnd),
    /// End an attempt that a session of another gateway has claimed, if that session holds it.
    EndForeign {
        /// The name of that session.
        session: String,
        /// The attempt.
        attempt: TaskFence,
        /// The end.
        end: EngineEnd,
    },
    /// Find out which of these attempts a session of another gateway still holds.
    CheckResumed {
        /// The name of that session.
        session: String,
        /// The attempts.
        attempts: Vec<TaskFence>,
    },
    /// Note a heartbeat of an attempt, and its progress.
    Beat(TaskFence, Option<Progress>),
    /// Keep a checkpoint.
    Checkpoint {
        /// The number of the beat.
        n: u64,
        /// The attempt.
        attempt: TaskFence,
        /// The checkpoint.
        bytes: Bytes,
    },
    /// Submit tasks.
    Submit(Submit, Arc<[Bytes]>),
    /// Read.
    Ask(Ask),
    /// Report that a worker does not stop an attempt.
    Stuck(TaskFence),
    /// Close the connection, but keep the session for a reconnection.
    Detach,
    /// End the session, with the reason for logs.
    Close(String),
}
