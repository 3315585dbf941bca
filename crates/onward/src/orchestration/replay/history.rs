//! The events of a history and their encoding.

use std::collections::HashSet;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Decoder, Encode};
use onward_store::{HistoryChunk, TaskState};

use super::compatibility_flags::CompatibilityFlags;
use crate::error::{Error, Result};

/// An event of an orchestration, or an action of its code. The numbers of variants and fields are
/// part of the file format and are never reused.
///
/// A history begins with [`Started`](Self::Started). Each arrival from outside (the end of a task,
/// a timer, a signal, …) is followed by the actions of the code in their order.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[non_exhaustive]
pub enum HistoryEvent {
    /// The orchestration began, or began again.
    #[n(1)]
    Started {
        /// The time, in microseconds since 1970.
        #[n(0)]
        at: i64,
        /// The seed of its random numbers.
        #[n(1)]
        seed: u64,
        /// The [version](crate::orchestration::OrchestrationOptions::version) of the code that
        /// began it; `None` is 0.
        #[n(2)]
        version: Option<u32>,
        /// The behaviour of the engine that began it; `None` is no flag.
        #[n(3)]
        flags: Option<CompatibilityFlags>,
    },
    /// A turn began. This is the time that the code sees.
    #[n(2)]
    TurnBegan {
        /// The time, in microseconds since 1970.
        #[n(0)]
        at: i64,
    },
    /// The code submitted a task: an activity, or another orchestration.
    #[n(3)]
    TaskSubmitted {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
        /// The kind of the task.
        #[n(1)]
        kind: String,
    },
    /// A task ended.
    #[n(4)]
    TaskEnded {
        /// The number of the operation that submitted it.
        #[n(0)]
        operation: u64,
        /// The end of the task.
        #[n(1)]
        end: TaskEnd,
    },
    /// The code waits for a moment.
    #[n(5)]
    TimerStarted {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
        /// The moment, in microseconds since 1970.
        #[n(1)]
        until: i64,
    },
    /// The moment has come.
    #[n(6)]
    TimerFired {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
    },
    /// A signal arrived.
    #[n(7)]
    SignalReceived {
        /// The name of the signal.
        #[n(0)]
        name: String,
        /// The payload.
        #[n(1)]
        payload: ByteVec,
    },
    /// A step that ran in the turn ended.
    #[n(8)]
    StepEnded {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
        /// The name of the step.
        #[n(1)]
        name: String,
        /// The result of the step.
        #[n(2)]
        end: StepEnd,
        /// The time, in microseconds since 1970. The code sees this time from then on.
        #[n(3)]
        at: Option<i64>,
    },
    /// The code dropped an operation: a task is cancelled, a timer is forgotten.
    #[n(9)]
    OperationCancelled {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
    },
    /// The code submitted a task without waiting for it.
    #[n(10)]
    TaskDetached {
        /// The kind of the task.
        #[n(0)]
        kind: String,
    },
    /// Cancellation was requested.
    #[n(11)]
    CancelRequested,
    /// A signal that arrives without a poll of the code. It came before the code began or began
    /// again, or together with later signals when the code was about to end.
    #[n(13)]
    SignalCarried {
        /// The name of the signal.
        #[n(0)]
        name: String,
        /// The payload.
        #[n(1)]
        payload: ByteVec,
    },
    /// The events before were taken over from another orchestration. The tasks that ran then are
    /// submitted again.
    #[n(14)]
    Forked {
        /// The id of that orchestration's task.
        #[n(0)]
        from: i64,
    },
    /// The number of updates that the code replied to before it began again. Their replies may not
    /// have been read yet.
    #[n(15)]
    RepliesCarried {
        /// The number.
        #[n(0)]
        replies: u64,
    },
    /// Cancellation was requested before the orchestration began again, and the code had not seen
    /// the request.
    #[n(16)]
    CancelCarried,
    /// The code set a tag of the orchestration.
    #[n(17)]
    TagSet {
        /// The key.
        #[n(0)]
        key: String,
        /// The value.
        #[n(1)]
        value: String,
        /// The earlier value of the key, or `None`.
        #[n(2)]
        before: Option<String>,
    },
    /// The code removed a tag of the orchestration.
    #[n(18)]
    TagRemoved {
        /// The key.
        #[n(0)]
        key: String,
        /// The earlier value of the key, or `None`.
        #[n(1)]
        before: Option<String>,
    },
    /// The code ended without taking signals: the last `count` of this name.
    #[n(19)]
    SignalsUnread {
        /// The name of the signals.
        #[n(0)]
        name: String,
        /// The number of signals.
        #[n(1)]
        count: u64,
    },
    /// The code took the branch of a patch.
    #[n(12)]
    Patched {
        /// The name of the patch.
        #[n(0)]
        patch: String,
    },
}

impl HistoryEvent {
    /// Returns the operation that the event is about, if any.
    pub(in crate::orchestration) fn operation(&self) -> Option<u64> {
        match self {
            Self::TaskSubmitted { operation, .. }
            | Self::TaskEnded { operation, .. }
            | Self::TimerStarted { operation, .. }
            | Self::TimerFired { operation }
            | Self::StepEnded { operation, .. }
            | Self::OperationCancelled { operation } => Some(*operation),
            _ => None,
        }
    }
}

/// Returns the version of the code that began a history, or `None` if no code has begun: the
/// history then has only signals that were sent before.
pub(in crate::orchestration) fn version_of(events: &[HistoryEvent]) -> Option<u32> {
    let started = |event: &HistoryEvent| {
        if let HistoryEvent::Started { version, .. } = event { Some(version.unwrap_or(0)) } else { None }
    };
    events.iter().find_map(started)
}

/// Returns true if a history leaves a task or a timer for which the code waits.
pub(in crate::orchestration) fn has_open_operation(events: &[HistoryEvent]) -> bool {
    let mut open = HashSet::new();
    for event in events {
        match event {
            HistoryEvent::TaskSubmitted { operation, .. } | HistoryEvent::TimerStarted { operation, .. } => {
                open.insert(*operation);
            }
            HistoryEvent::TaskEnded { operation, .. }
            | HistoryEvent::TimerFired { operation }
            | HistoryEvent::OperationCancelled { operation } => {
                open.remove(operation);
            }
            _ => {}
        }
    }
    !open.is_empty()
}

/// The end of a task for which an orchestration waited.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskEnd {
    /// The task completed.
    #[n(1)]
    Completed {
        /// The result.
        #[n(0)]
        result: Option<ByteVec>,
    },
    /// The task ended in another way.
    #[n(2)]
    Failed {
        /// The state, by the number that a store keeps.
        #[n(0)]
        state: i64,
        /// The last error.
        #[n(1)]
        error: Option<String>,
    },
    /// The task was never started: another task has its key.
    #[n(3)]
    NotStarted {
        /// The other task.
        #[n(0)]
        existing: i64,
    },
}

impl TaskEnd {
    pub(crate) fn state(&self) -> TaskState {
        match self {
            Self::Completed { .. } => TaskState::Completed,
            Self::Failed { state, .. } => TaskState::from_code(*state).unwrap_or(TaskState::Failed),
            Self::NotStarted { .. } => TaskState::Cancelled,
        }
    }
}

/// The result of a step that ran in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum StepEnd {
    /// The step succeeded.
    #[n(1)]
    Done {
        /// The result, as JSON or as its codec writes it.
        #[n(0)]
        result: ByteVec,
    },
    /// The step failed.
    #[n(2)]
    Failed {
        /// The error text.
        #[n(0)]
        error: String,
    },
}

/// Encodes events as bytes, one after the other.
pub(crate) fn encode(events: &[HistoryEvent]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(events.len() * 32);
    for event in events {
        minicbor::encode(event, &mut bytes)
            .map_err(|error| Error::invalid(format!("an event of a history cannot be written: {error}")))?;
    }
    Ok(bytes)
}

/// Decodes the events of a chunk, in order.
///
/// # Errors
/// An error if the bytes are not a history, or were written by a newer version.
pub fn decode_history(chunk: &HistoryChunk) -> Result<Vec<HistoryEvent>> {
    let mut decoder = Decoder::new(&chunk.chunk);
    let mut events = Vec::new();
    while decoder.position() < chunk.chunk.len() {
        let place = chunk.first + events.len() as u64;
        let event = decoder.decode().map_err(|error| {
            Error::invalid(format!(
                "event {place} of the history cannot be read: {error}; use the version that wrote it, or restore a backup"
            ))
        })?;
        events.push(event);
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let events = vec![
            HistoryEvent::Started { at: 5, seed: u64::MAX, version: None, flags: None },
            HistoryEvent::TaskSubmitted { operation: 1, kind: "charge".into() },
            HistoryEvent::TaskEnded { operation: 1, end: TaskEnd::Completed { result: Some(b"10".to_vec().into()) } },
            HistoryEvent::StepEnded {
                operation: 2,
                name: "id".into(),
                end: StepEnd::Failed { error: "no".into() },
                at: Some(9),
            },
            HistoryEvent::CancelRequested,
            HistoryEvent::TagSet { key: "stage".into(), value: "sent".into(), before: Some("packing".into()) },
            HistoryEvent::TagRemoved { key: "stage".into(), before: None },
        ];
        let chunk = HistoryChunk { first: 0, events: 7, chunk: encode(&events).unwrap().into() };
        assert_eq!(decode_history(&chunk).unwrap(), events);
    }

    #[test]
    fn what_is_no_history_is_refused_with_its_place() {
        let chunk = HistoryChunk { first: 7, events: 1, chunk: vec![0xff, 0x00].into() };
        let error = decode_history(&chunk).unwrap_err().to_string();
        assert!(error.contains("event 7 of the history"), "{error}");
    }
}
