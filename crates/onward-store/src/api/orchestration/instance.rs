//! What the memory store keeps of an orchestration beside its task.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::hold::Hold;
use super::message::{Handful, Message, MessageBody};
use super::turn::{ClaimedInstance, HistoryChunk, InstanceRecord, Turn};
use crate::api::name::Name;
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// An orchestration between two turns.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Instance {
    pub(crate) generation: u32,
    /// How many events its history has.
    pub(crate) length: u64,
    pub(crate) bytes: u64,
    /// How many messages have come so far.
    pub(crate) received: u64,
    /// How many of them turns have taken in: those numbered higher wait.
    pub(crate) taken: u64,
    /// The number of the last message that asked it to stop; 0 for none.
    pub(crate) cancel: u64,
    pub(crate) status: Option<Bytes>,
    pub(crate) values: BTreeMap<String, Bytes>,
    /// The version of the code that began it, as its turns said.
    pub(crate) version: Option<u32>,
    /// The events that it waits for, as its last turn said.
    pub(crate) awaits: Vec<Name>,
    pub(crate) hold: Hold,
    /// Messages that wait, oldest first; of an instance that was loaded from elsewhere, the first
    /// few and what came since.
    pub(crate) mailbox: VecDeque<Message>,
    /// Its history; of an instance that was loaded from elsewhere, what was appended since.
    pub(crate) chunks: Vec<HistoryChunk>,
}

impl Instance {
    pub(crate) fn receive(&mut self, body: MessageBody, at: Timestamp) {
        self.received += 1;
        if body == MessageBody::Cancel {
            self.cancel = self.received;
        }
        self.mailbox.push_back(Message { number: self.received, at, body });
    }

    /// Whether it was asked to stop and does not know yet.
    pub(crate) fn is_cancel_waiting(&self) -> bool {
        self.cancel > self.taken
    }

    /// How many messages wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.received.saturating_sub(self.taken)
    }

    /// Whether its next turn is to take in a message that is not here.
    pub(crate) fn lacks_messages(&self) -> bool {
        let wanted = self.waiting().min(bounds::TURN_MESSAGES as u64);
        let here = self.mailbox.iter().take_while(|message| message.number <= self.taken + wanted);
        (here.count() as u64) < wanted
    }

    /// Takes in what a turn says of it.
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

    /// Forgets what waits.
    pub(crate) fn empty_mailbox(&mut self) {
        self.taken = self.received;
        self.mailbox.clear();
    }

    /// Begins again, with the first events of a new history.
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

    /// What its next turn is to take in.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut handful = Handful::default();
        self.mailbox.iter().take_while(|message| handful.takes(message)).cloned().collect()
    }

    pub(crate) fn claimed(&self) -> ClaimedInstance {
        ClaimedInstance { generation: self.generation, length: self.length, messages: self.messages() }
    }

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
