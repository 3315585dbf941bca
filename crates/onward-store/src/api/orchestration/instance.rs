//! The state of an orchestration between turns, in memory.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::hold::Hold;
use super::message::{Message, MessageBody, TurnIntake};
use super::turn::{ClaimedInstance, HistoryChunk, InstanceRecord, Turn};
use crate::api::name::Name;
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// An orchestration between two turns.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Instance {
    pub(crate) generation: u32,
    /// The number of events in the history.
    pub(crate) length: u64,
    pub(crate) bytes: u64,
    /// The number of messages that have arrived so far.
    pub(crate) received: u64,
    /// The number of the last message that a turn consumed. Messages with higher numbers wait.
    pub(crate) taken: u64,
    /// The number of the last message that requested a cancellation; 0 for none.
    pub(crate) cancel: u64,
    pub(crate) status: Option<Bytes>,
    pub(crate) values: BTreeMap<String, Bytes>,
    /// The version of the code that began the orchestration, as its turns stated.
    pub(crate) version: Option<u32>,
    /// The events for which it waits, as its last turn stated.
    pub(crate) awaits: Vec<Name>,
    pub(crate) hold: Hold,
    /// Waiting messages, oldest first. For an instance that a store loaded from elsewhere: the
    /// first few of them, and those that arrived since.
    pub(crate) mailbox: VecDeque<Message>,
    /// The history. For an instance that a store loaded from elsewhere: the chunks appended since.
    pub(crate) chunks: Vec<HistoryChunk>,
}

impl Instance {
    /// Appends a message to the mailbox and gives it the next number. The number of the last
    /// request to cancel is recorded too.
    pub(crate) fn receive(&mut self, body: MessageBody, at: Timestamp) {
        self.received += 1;
        if body == MessageBody::Cancel {
            self.cancel = self.received;
        }
        self.mailbox.push_back(Message { number: self.received, at, body });
    }

    /// Returns whether a request to cancel waits for the next turn.
    pub(crate) fn is_cancel_waiting(&self) -> bool {
        self.cancel > self.taken
    }

    /// Returns the number of waiting messages.
    pub(crate) fn waiting(&self) -> u64 {
        self.received.saturating_sub(self.taken)
    }

    /// Returns whether the next turn needs a message that is not loaded.
    pub(crate) fn lacks_messages(&self) -> bool {
        let wanted = self.waiting().min(bounds::TURN_MESSAGES as u64);
        let here = self.mailbox.iter().take_while(|message| message.number <= self.taken + wanted);
        (here.count() as u64) < wanted
    }

    /// Applies the parts of a turn that concern the instance.
    pub(crate) fn take(&mut self, turn: &Turn) {
        if turn.events > 0 {
            let (first, events, chunk) = (self.length, turn.events, turn.chunk.clone());
            self.chunks.push(HistoryChunk { first, events, chunk });
        }
        self.length += turn.events;
        self.bytes += turn.chunk.len() as u64;
        self.taken = self.taken.max(turn.consumed);
        self.mailbox.retain(|message| message.number > self.taken);
        self.awaits.clone_from(&turn.awaits);
        self.version = turn.version.or(self.version);
        if turn.status.is_some() {
            self.status.clone_from(&turn.status);
        }
        for (key, value) in &turn.values {
            match value {
                Some(value) => drop(self.values.insert(key.clone(), value.clone())),
                None => drop(self.values.remove(key)),
            }
        }
    }

    /// Discards all waiting messages.
    pub(crate) fn empty_mailbox(&mut self) {
        self.taken = self.received;
        self.mailbox.clear();
    }

    /// Starts again with the first events of a new history.
    pub(crate) fn begin_again(&mut self, events: u64, chunk: Bytes) {
        self.generation += 1;
        self.version = None;
        self.length = events;
        self.bytes = chunk.len() as u64;
        self.chunks.clear();
        if events > 0 {
            self.chunks.push(HistoryChunk { first: 0, events, chunk });
        }
    }

    /// Returns the messages for the next turn.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut handful = TurnIntake::default();
        self.mailbox.iter().take_while(|message| handful.takes(message)).cloned().collect()
    }

    /// Returns the part of the state that a claim passes to the worker.
    pub(crate) fn claimed(&self) -> ClaimedInstance {
        let (generation, length, received) = (self.generation, self.length, self.received);
        ClaimedInstance { generation, length, received, messages: self.messages() }
    }

    /// Returns the state as reads show it, without history and messages.
    pub(crate) fn record(&self) -> InstanceRecord {
        InstanceRecord {
            generation: self.generation,
            length: self.length,
            bytes: self.bytes,
            received: self.received,
            waiting: self.waiting(),
            version: self.version,
            awaits: self.awaits.clone(),
            hold: self.hold,
            status: self.status.clone(),
            values: self.values.clone(),
        }
    }
}
