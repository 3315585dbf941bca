//! What a history says, and how it is written down.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Decoder, Encode};
use onward_store::{HistoryChunk, TaskState};

use super::compatibility_flags::CompatibilityFlags;
use crate::error::{Error, Result};

/// One thing that happened to an orchestration, or that its code did. Numbers of variants and
/// fields are part of the file format: none is ever used for anything else.
///
/// A history begins with [`Started`](Self::Started). What came from outside (a task's end, a timer,
/// a signal, …) is followed by what the code did about it, in the order in which it did it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum HistoryEvent {
    /// It began, or began again.
    #[n(1)]
    Started {
        /// When, in microseconds since 1970.
        #[n(0)]
        at: i64,
        /// From which its random numbers follow.
        #[n(1)]
        seed: u64,
        /// The [version](crate::orchestration::OrchestrationOptions::version) of the code that
        /// began it; none is 0.
        #[n(2)]
        version: Option<u32>,
        /// How the engine behaves that began it; nothing is no flag.
        #[n(3)]
        flags: Option<CompatibilityFlags>,
    },
    /// A turn began; this is the time that the code sees.
    #[n(2)]
    TurnBegan {
        /// When, in microseconds since 1970.
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
    /// A task has ended.
    #[n(4)]
    TaskEnded {
        /// The number of the operation that submitted it.
        #[n(0)]
        operation: u64,
        /// How.
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
    /// Somebody sent something.
    #[n(7)]
    SignalReceived {
        /// Under which name.
        #[n(0)]
        name: String,
        /// What.
        #[n(1)]
        payload: ByteVec,
    },
    /// A step that was run in the turn has ended.
    #[n(8)]
    StepEnded {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
        /// Its name.
        #[n(1)]
        name: String,
        /// What came of it.
        #[n(2)]
        end: StepEnd,
        /// When, in microseconds since 1970; this is the time that the code sees from then on.
        #[n(3)]
        at: Option<i64>,
    },
    /// The code no longer waits for something: a task is cancelled, a timer forgotten.
    #[n(9)]
    OperationCancelled {
        /// The number of the operation.
        #[n(0)]
        operation: u64,
    },
    /// The code submitted a task and does not wait for it.
    #[n(10)]
    TaskDetached {
        /// The kind of the task.
        #[n(0)]
        kind: String,
    },
    /// Somebody wants it cancelled.
    #[n(11)]
    CancelRequested,
    /// A signal that is there before the code is polled next: it came before the code began or
    /// began again, or together with later signals when the code was about to end.
    #[n(13)]
    SignalCarried {
        /// Under which name.
        #[n(0)]
        name: String,
        /// What.
        #[n(1)]
        payload: ByteVec,
    },
    /// What is before was taken over from another orchestration; what was under way then is
    /// submitted again.
    #[n(14)]
    Forked {
        /// The task number of that.
        #[n(0)]
        from: i64,
    },
    /// How many updates it answered before it began again, whose answers may not have been read
    /// yet.
    #[n(15)]
    RepliesCarried {
        /// How many.
        #[n(0)]
        replies: u64,
    },
    /// Somebody wanted it cancelled before it began again, and the code had not heard it.
    #[n(16)]
    CancelCarried,
    /// The code gave the orchestration a tag.
    #[n(17)]
    TagSet {
        /// Its key.
        #[n(0)]
        key: String,
        /// Its value.
        #[n(1)]
        value: String,
        /// The value that the key had before; `None` if it had none.
        #[n(2)]
        before: Option<String>,
    },
    /// The code removed a tag of the orchestration.
    #[n(18)]
    TagRemoved {
        /// Its key.
        #[n(0)]
        key: String,
        /// The value that the key had; `None` if it had none.
        #[n(1)]
        before: Option<String>,
    },
    /// The code ended and had not taken signals: the last so many of this name.
    #[n(19)]
    SignalsUnread {
        /// Under which name they were sent.
        #[n(0)]
        name: String,
        /// How many.
        #[n(1)]
        count: u64,
    },
    /// The code took the way of a patch.
    #[n(12)]
    Patched {
        /// Its name.
        #[n(0)]
        patch: String,
    },
}

impl HistoryEvent {
    /// The operation that it is about, if it is about one.
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

/// The version of the code that began a history; `None` if none has, since what was sent before is
/// all that there is.
pub(in crate::orchestration) fn version_of(events: &[HistoryEvent]) -> Option<u32> {
    let started = |event: &HistoryEvent| {
        if let HistoryEvent::Started { version, .. } = event { Some(version.unwrap_or(0)) } else { None }
    };
    events.iter().find_map(started)
}

/// How a task ended for which an orchestration waited.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskEnd {
    /// Well.
    #[n(1)]
    Completed {
        /// What it answered.
        #[n(0)]
        result: Option<ByteVec>,
    },
    /// Otherwise.
    #[n(2)]
    Failed {
        /// Its state, by the number that a store keeps.
        #[n(0)]
        state: i64,
        /// Its last error.
        #[n(1)]
        error: Option<String>,
    },
    /// It never was: another task has its key.
    #[n(3)]
    NotStarted {
        /// That task.
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

/// What came of a step that was run in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum StepEnd {
    /// What it answered.
    #[n(1)]
    Done {
        /// As JSON, or as its codec writes.
        #[n(0)]
        result: ByteVec,
    },
    /// What went wrong.
    #[n(2)]
    Failed {
        /// In words.
        #[n(0)]
        error: String,
    },
}

/// Events as bytes, one behind the other.
pub(crate) fn encode(events: &[HistoryEvent]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(events.len() * 32);
    for event in events {
        minicbor::encode(event, &mut bytes)
            .map_err(|error| Error::invalid(format!("an event of a history cannot be written: {error}")))?;
    }
    Ok(bytes)
}

/// The events of a chunk, in order.
///
/// # Errors
/// If the bytes are not what an orchestration writes, or were written by a newer version.
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
