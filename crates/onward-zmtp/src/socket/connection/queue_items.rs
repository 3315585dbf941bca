//! The items in the queues between a socket and a connection.

use std::collections::{HashMap, VecDeque};
use std::mem;

use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::protocol::{Message, MessageRun};
use crate::socket::queue::items::{Amount, Items, QueueItem};

/// An item that a socket gives to the driver of a connection.
#[derive(Debug, Clone)]
pub(in crate::socket) enum Outgoing {
    Message(Message),
    /// The first message to a peer. It is for this peer only and does not count towards the
    /// high-water mark.
    Hello(Message),
    /// Short messages that were encoded when they were sent.
    Run(MessageRun),
    Subscribe(Bytes),
    Cancel(Bytes),
}

impl QueueItem for Outgoing {
    #[inline]
    fn size(&self) -> Amount {
        match self {
            Self::Message(message) => message.size(),
            Self::Run(run) => run.size(),
            Self::Hello(_) | Self::Subscribe(_) | Self::Cancel(_) => Amount::default(),
        }
    }

    #[inline]
    fn spare_memory(&self) -> usize {
        if let Self::Run(run) = self { run.memory() } else { 0 }
    }

    fn keep_last(&mut self) {
        if let Self::Run(run) = self {
            run.keep_last();
        }
    }

    /// Removes pairs of subscriptions and cancellations that undo each other.
    ///
    /// A socket alternates between subscribing to a topic and cancelling it, so at most one item of
    /// each topic is left. This bounds the list by the topics of the socket and those that the peer
    /// knows, even if the peer never reads.
    fn compact(list: &mut VecDeque<Self>) {
        let mut turns: HashMap<Bytes, usize, RandomState> = HashMap::default();
        for topic in list.iter().filter_map(Self::topic) {
            *turns.entry(topic.clone()).or_default() += 1;
        }
        list.retain(|item| {
            let Some(left) = item.topic().and_then(|topic| turns.get_mut(topic)) else { return true };
            // The items of a topic alternate, so an odd number has the same effect as its first.
            mem::replace(left, 0) % 2 == 1
        });
    }
}

impl Outgoing {
    /// Returns the topic that is subscribed to or cancelled.
    fn topic(&self) -> Option<&Bytes> {
        match self {
            Self::Subscribe(topic) | Self::Cancel(topic) => Some(topic),
            Self::Message(_) | Self::Hello(_) | Self::Run(_) => None,
        }
    }
}

/// An item that the driver of a connection gives to a socket.
#[derive(Debug)]
pub(in crate::socket) enum Incoming {
    Message(Message),
    /// Short messages that are decoded when they are read.
    Run(MessageRun),
}

impl QueueItem for Incoming {
    #[inline]
    fn size(&self) -> Amount {
        match self {
            Self::Message(message) => message.size(),
            Self::Run(run) => run.size(),
        }
    }

    #[inline]
    fn spare_memory(&self) -> usize {
        if let Self::Run(run) = self { run.memory() } else { 0 }
    }

    fn keep_last(&mut self) {
        if let Self::Run(run) = self {
            run.keep_last();
        }
    }

    fn join(&mut self, next: &mut Self) -> bool {
        match (self, next) {
            (Self::Run(run), Self::Run(next)) => run.join(next),
            _ => false,
        }
    }
}

impl QueueItem for Message {
    #[inline]
    fn size(&self) -> Amount {
        Amount { messages: 1, bytes: self.byte_len() }
    }
}

impl QueueItem for MessageRun {
    #[inline]
    fn size(&self) -> Amount {
        Amount { messages: self.messages(), bytes: self.bytes() }
    }
}

impl Items<Outgoing> {
    /// Adds a message. It is taken out of `message` only if it is not encoded. The caller drops
    /// what is left there after it has released the lock, because a drop may run user code.
    #[inline]
    pub(super) fn add(&mut self, message: &mut Message, encodes: bool) {
        match MessageRun::payload(message).filter(|_| encodes) {
            Some(payload) => self.add_short(payload),
            None => self.list.push_back(Outgoing::Message(mem::take(message))),
        }
    }

    pub(super) fn add_copy(&mut self, message: &Message, encodes: bool) {
        match MessageRun::payload(message).filter(|_| encodes) {
            Some(payload) => self.add_short(payload),
            None => self.list.push_back(Outgoing::Message(message.clone())),
        }
    }

    #[inline]
    fn add_short(&mut self, payload: &[u8]) {
        match self.list.back_mut() {
            Some(Outgoing::Run(run)) if run.has_room() => run.push(payload),
            _ => self.begin_run(payload),
        }
    }

    fn begin_run(&mut self, payload: &[u8]) {
        let mut run = MessageRun::in_buffer(mem::take(&mut self.spare));
        run.push(payload);
        self.list.push_back(Outgoing::Run(run));
    }
}

impl<T> Items<T> {
    /// Keeps the buffer of a finished run for the next one, if it is larger than the spare buffer.
    pub(super) fn keep(&mut self, run: MessageRun) {
        let buffer = run.into_buffer();
        if (self.spare.capacity() + 1..=MessageRun::MEMORY).contains(&buffer.capacity()) {
            self.spare = buffer;
        }
    }
}
