//! Short messages in a row, as they are on the wire.

use std::{iter, mem};

use bytes::Bytes;

use super::frame::{SHORT_BODY, SHORT_MESSAGE};
use super::limits::RUN_BYTES;
use super::message::Message;

/// Messages of one short frame each, one after the other, encoded. They need no allocation each,
/// and are moved all at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    wire: Vec<u8>,
    /// Where the first that was not taken begins.
    start: usize,
    messages: usize,
}

/// What memory a run has at least, in bytes.
const LEAST_MEMORY: usize = 1024;

impl Run {
    /// What memory one has at most, in bytes: it has room until there is no more, and then one
    /// message more.
    pub(crate) const MEMORY: usize = RUN_BYTES + 2 + SHORT_BODY;

    /// An empty one, in memory that was another's.
    pub(crate) fn in_buffer(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { wire: buffer, start: 0, messages: 0 }
    }

    /// Its memory, for another.
    pub(crate) fn into_buffer(mut self) -> Vec<u8> {
        self.wire.clear();
        self.wire
    }

    /// The payload of a message that may be in a run: of one frame, which is short.
    #[inline]
    pub(crate) fn payload(message: &Message) -> Option<&[u8]> {
        match message.frames() {
            [frame] if frame.len() <= SHORT_BODY => Some(frame),
            _ => None,
        }
    }

    /// Whether one more is to be added.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// For how many bytes more there is room, of which the last message may take more.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        RUN_BYTES.saturating_sub(self.wire.len())
    }

    /// Adds a [payload](Self::payload).
    #[inline]
    pub(crate) fn push(&mut self, payload: &[u8]) {
        self.reserve(2 + payload.len());
        self.wire.extend_from_slice(&[SHORT_MESSAGE, payload.len() as u8]);
        self.wire.extend_from_slice(payload);
        self.messages += 1;
    }

    #[inline]
    fn reserve(&mut self, bytes: usize) {
        if self.wire.capacity() - self.wire.len() < bytes {
            self.grow(bytes);
        }
    }

    /// Takes twice as much memory, but not more than [`Run::MEMORY`] if that will do.
    #[cold]
    fn grow(&mut self, bytes: usize) {
        let twice = (2 * self.wire.capacity()).clamp(LEAST_MEMORY, Self::MEMORY);
        self.wire.reserve_exact(bytes.max(twice.saturating_sub(self.wire.len())));
    }

    /// Adds messages that are encoded already, of which there are so many.
    pub(crate) fn extend(&mut self, wire: &[u8], messages: usize) {
        self.reserve(wire.len());
        self.wire.extend_from_slice(wire);
        self.messages += messages;
    }

    /// Adds all of another, which has none any more, if there is room.
    pub(crate) fn join(&mut self, other: &mut Self) -> bool {
        if other.wire().len() > self.room() {
            return false;
        }
        self.extend(other.wire(), other.messages);
        *other = Self::in_buffer(mem::take(&mut other.wire));
        true
    }

    /// Takes the first message out, into memory of its own.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Message> {
        let [_, length, rest @ ..] = &self.wire[self.start..] else { return None };
        let payload = Bytes::copy_from_slice(rest.get(..usize::from(*length))?);
        self.start += 2 + payload.len();
        self.messages -= 1;
        Some(Message::from(payload))
    }

    /// Takes the first messages out, at most `limit`, and appends them. Each is made where it is to
    /// be: they are small, and to move them costs as much.
    #[inline]
    pub(crate) fn pop_into(&mut self, messages: &mut Vec<Message>, limit: usize) {
        let (first, count) = (messages.len(), self.messages.min(limit));
        messages.resize_with(first + count, Message::new);
        let mut rest = &self.wire[self.start..];
        for message in &mut messages[first..] {
            let [_, length, behind @ ..] = rest else { break };
            let Some((payload, next)) = behind.split_at_checked(usize::from(*length)) else { break };
            message.push(Bytes::copy_from_slice(payload));
            rest = next;
        }
        self.start = self.wire.len() - rest.len();
        self.messages -= count;
    }

    /// Drops all messages but the last.
    pub(crate) fn keep_last(&mut self) {
        while self.messages > 1 {
            drop(self.pop());
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// The payload of all, in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.wire.len() - self.start - 2 * self.messages
    }

    /// The payloads, in order.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.wire();
        iter::from_fn(move || {
            let [_, length, behind @ ..] = rest else { return None };
            let (payload, next) = behind.split_at_checked(usize::from(*length))?;
            rest = next;
            Some(payload)
        })
    }

    /// All of them, as they are on the wire.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.wire[self.start..]
    }

    /// Gives its memory for `other`, which is empty, if it is whole. What it has is in there then,
    /// and it has none any more.
    pub(crate) fn swap_wire(&mut self, other: &mut Vec<u8>) -> bool {
        if self.start > 0 || !other.is_empty() {
            return false;
        }
        mem::swap(&mut self.wire, other);
        self.messages = 0;
        true
    }
}

impl Iterator for Run {
    type Item = Message;

    #[inline]
    fn next(&mut self) -> Option<Message> {
        self.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(payloads: &[&'static str]) -> Run {
        let mut run = Run::default();
        payloads.iter().for_each(|payload| run.push(payload.as_bytes()));
        run
    }

    #[test]
    fn what_goes_in_comes_out_in_order_and_counts_while_it_is_there() {
        let mut run = run(&["one", "", "three"]);
        assert_eq!((run.messages(), run.bytes()), (3, 8));
        assert_eq!(run.pop(), Some(Message::from("one")));
        assert_eq!((run.messages(), run.bytes()), (2, 5));
        assert_eq!(run.wire(), b"\x00\x00\x00\x05three");
        assert_eq!(run.by_ref().collect::<Vec<_>>(), [Message::from(""), Message::from("three")]);
        assert_eq!((run.messages(), run.bytes(), run.pop()), (0, 0, None));
    }

    #[test]
    fn a_long_frame_and_more_than_one_are_nothing_for_it() {
        assert_eq!(Run::payload(&Message::from(vec![1; 255])).map(<[u8]>::len), Some(255));
        assert_eq!(Run::payload(&Message::from(vec![1; 256])), None);
        assert_eq!(Run::payload(&Message::from_iter(["a", "b"])), None);
        assert_eq!(Run::payload(&Message::new()), None);
    }

    #[test]
    fn its_memory_is_given_away_only_while_it_is_whole() {
        let mut arena = Vec::new();
        let mut whole = run(&["one"]);
        assert!(whole.swap_wire(&mut arena));
        assert_eq!((arena.as_slice(), whole.messages()), (b"\x00\x03one".as_slice(), 0));
        let mut begun = run(&["one", "two"]);
        begun.pop();
        assert!(!begun.swap_wire(&mut Vec::new()));
        assert!(!run(&["two"]).swap_wire(&mut arena));
        assert_eq!(arena, b"\x00\x03one");
    }
}
