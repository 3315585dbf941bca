//! What the memory store keeps of an orchestration beside its task.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::hold::Hold;
use super::message::{Handful, Message, MessageBody};
use super::turn::{ClaimedInstance, HistoryChunk, InstanceRecord, Turn};
use crate::name::Name;
use crate::timestamp::Timestamp;

/// An orchestration between two turns.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Instance {
    pub(crate) generation: u32,
    /// How many events its history has.
    pub(crate) length: u64,
    pub(crate) bytes: u64,
    /// How many messages have come so far.
    pub(crate) received: u64,
    pub(crate) status: Option<Bytes>,
    pub(crate) values: BTreeMap<String, Bytes>,
    /// The events that it waits for, as its last turn said.
    pub(crate) awaits: Vec<Name>,
    pub(crate) hold: Hold,
    /// Messages that were not taken in, oldest first.
    pub(crate) mailbox: VecDeque<Message>,
    /// Its history; of an instance that was loaded from elsewhere, what was appended since.
    pub(crate) chunks: Vec<HistoryChunk>,
}

impl Instance {
    pub(crate) fn receive(&mut self, body: MessageBody, at: Timestamp) {
        self.received += 1;
        self.mailbox.push_back(Message { number: self.received, at, body });
    }

    /// Whether it was asked to stop and does not know yet.
    pub(crate) fn is_cancel_waiting(&self) -> bool {
        self.mailbox.iter().any(|message| message.body == MessageBody::Cancel)
    }

    /// Takes in what a turn says of it.
    pub(crate) fn take(&mut self, turn: &Turn) {
        if turn.events > 0 {
            let (first, events, chunk) = (self.length, turn.events, turn.chunk.clone());
            self.chunks.push(HistoryChunk { first, events, chunk });
        }
        self.length += turn.events;
        self.bytes += turn.chunk.len() as u64;
        self.mailbox.retain(|message| message.number > turn.consumed);
        self.awaits.clone_from(&turn.awaits);
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

    /// Begins again, with the first events of a new history.
    pub(crate) fn begin_again(&mut self, events: u64, chunk: Bytes) {
        self.generation += 1;
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
            waiting: self.mailbox.len() as u64,
            awaits: self.awaits.clone(),
            hold: self.hold,
            status: self.status.clone(),
            values: self.values.clone(),
        }
    }
}
