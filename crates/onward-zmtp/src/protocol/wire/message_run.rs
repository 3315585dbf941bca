//! Consecutive short messages, encoded as on the wire.

use std::{iter, mem};

use bytes::Bytes;

use super::super::bounds::RUN_BYTES;
use super::super::message::Message;
use super::frame::{SHORT_BODY, SHORT_MESSAGE};

/// Encoded messages of one short frame each, in order. They need no allocation each, and they move
/// all at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageRun {
    wire: Vec<u8>,
    /// The offset of the first message that was not taken.
    start: usize,
    messages: usize,
}

/// The smallest memory of a run, in bytes.
const LEAST_MEMORY: usize = 1024;

impl MessageRun {
    /// The largest memory of a run, in bytes. A run takes messages while it has room, and the last
    /// one may exceed the room.
    pub(crate) const MEMORY: usize = RUN_BYTES + 2 + SHORT_BODY;

    /// Returns an empty run in the memory of another.
    pub(crate) fn in_buffer(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { wire: buffer, start: 0, messages: 0 }
    }

    /// Returns the memory of the run, for another run.
    pub(crate) fn into_buffer(mut self) -> Vec<u8> {
        self.wire.clear();
        self.wire
    }

    /// Returns the payload of a message that fits in a run: a message of one short frame.
    #[inline]
    pub(crate) fn payload(message: &Message) -> Option<&[u8]> {
        match message.frames() {
            [frame] if frame.len() <= SHORT_BODY => Some(frame),
            _ => None,
        }
    }

    /// Returns whether one more message may be added.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Returns the room in bytes. The last message may exceed it.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        RUN_BYTES.saturating_sub(self.wire.len())
    }

    /// Adds the message with this [payload](Self::payload).
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

    /// Doubles the memory, but keeps it within [`MessageRun::MEMORY`] if that suffices.
    #[cold]
    fn grow(&mut self, bytes: usize) {
        let twice = (2 * self.wire.capacity()).clamp(LEAST_MEMORY, Self::MEMORY);
        self.wire.reserve_exact(bytes.max(twice.saturating_sub(self.wire.len())));
    }

    /// Adds `messages` encoded messages.
    pub(crate) fn extend(&mut self, wire: &[u8], messages: usize) {
        self.reserve(wire.len());
        self.wire.extend_from_slice(wire);
        self.messages += messages;
    }

    /// Moves all messages of another run into this one, if there is room.
    pub(crate) fn join(&mut self, other: &mut Self) -> bool {
        if other.wire().len() > self.room() {
            return false;
        }
        self.extend(other.wire(), other.messages);
        *other = Self::in_buffer(mem::take(&mut other.wire));
        true
    }

    /// Takes the first message out, into its own memory.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Message> {
        let [_, length, rest @ ..] = &self.wire[self.start..] else { return None };
        let payload = Bytes::copy_from_slice(rest.get(..usize::from(*length))?);
        self.start += 2 + payload.len();
        self.messages -= 1;
        Some(Message::from(payload))
    }

    /// Takes the first messages out, at most `limit`, and appends them. It makes each message in
    /// its final position, because moving such a small message costs as much as making it.
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

    /// Returns the memory of the run, in bytes.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.wire.capacity()
    }

    /// Returns the number of messages.
    #[inline]
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the payload of all messages, in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.wire.len() - self.start - 2 * self.messages
    }

    /// Returns the payloads, in order.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.wire();
        iter::from_fn(move || {
            let [_, length, behind @ ..] = rest else { return None };
            let (payload, next) = behind.split_at_checked(usize::from(*length))?;
            rest = next;
            Some(payload)
        })
    }

    /// Returns all messages, encoded as on the wire.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.wire[self.start..]
    }

    /// Swaps the memory with `other`, if `other` is empty and no message was taken from the run.
    /// The messages are then in `other`, and the run is empty.
    pub(crate) fn swap_wire(&mut self, other: &mut Vec<u8>) -> bool {
        if self.start > 0 || !other.is_empty() {
            return false;
        }
        mem::swap(&mut self.wire, other);
        self.messages = 0;
        true
    }
}

impl Iterator for MessageRun {
    type Item = Message;

    #[inline]
    fn next(&mut self) -> Option<Message> {
        self.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(payloads: &[&'static str]) -> MessageRun {
        let mut run = MessageRun::default();
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
        assert_eq!(MessageRun::payload(&Message::from(vec![1; 255])).map(<[u8]>::len), Some(255));
        assert_eq!(MessageRun::payload(&Message::from(vec![1; 256])), None);
        assert_eq!(MessageRun::payload(&Message::from_iter(["a", "b"])), None);
        assert_eq!(MessageRun::payload(&Message::new()), None);
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
