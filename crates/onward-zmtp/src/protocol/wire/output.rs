//! The bytes to be written.

use std::collections::VecDeque;
use std::io::IoSlice;
#[cfg(feature = "tokio")]
use std::mem;

use bytes::{Buf, Bytes};
use zeroize::Zeroize;

#[cfg(feature = "tokio")]
use super::super::bounds::{GATHER_BYTES, JOIN_BYTES};
use super::super::bounds::{IDLE_WRITE_BUFFER_BYTES, WRITE_BATCH_BYTES, WRITE_BUFFER_KEPT_BYTES};
use super::frame::{COMMAND, Header, MORE};
#[cfg(feature = "tokio")]
use super::message_run::MessageRun;

/// The number of written bytes in the arena from which the rest may move to the front. More than
/// half of the arena must be written, too.
const COMPACT_BYTES: usize = 64 * 1024;

/// The bytes that a connection wants to write, in order.
///
/// Headers and small payloads are copied into one arena. Large payloads stay where they are and are
/// referred to. The output is a [`Buf`], so tokio's `write_buf` and `write_all_buf` write it with
/// vectored writes. Other writers use [`Output::slices`].
#[derive(Debug, Default)]
pub struct Output {
    arena: Vec<u8>,
    /// The number of bytes of the arena that have been written.
    written: usize,
    /// Payloads by reference, each with the end of the arena's bytes that come before it.
    gathered: VecDeque<(usize, Bytes)>,
    /// The number of bytes in `gathered` that are not written.
    gathered_bytes: usize,
    gather_from: usize,
    /// The number of bytes written in all.
    total: u64,
    /// Set during the handshake, when written bytes must be wiped.
    is_secret: bool,
}

impl Output {
    /// The largest number of bytes that are joined: a full output, and the end of the last payload.
    #[cfg(feature = "tokio")]
    pub(crate) const JOINED_BYTES: usize = WRITE_BATCH_BYTES + GATHER_BYTES;

    pub(crate) fn new(gather_from: usize) -> Self {
        Self { gather_from, is_secret: true, ..Self::default() }
    }

    /// Returns whether at least [`WRITE_BATCH_BYTES`] wait to be written, so that no message should
    /// be added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.remaining() >= WRITE_BATCH_BYTES
    }

    /// Fills `slices` from the front with the next bytes to be written, and returns how many slices
    /// it filled. After the write, call [`Buf::advance`] with the number of bytes that were
    /// written.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut pieces = self.pieces();
        let mut count = 0;
        for slot in slices {
            let Some(piece) = pieces.next() else { break };
            *slot = IoSlice::new(piece);
            count += 1;
        }
        count
    }

    /// Returns all waiting bytes, if they are in one piece.
    #[cfg(feature = "tokio")]
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.gathered.is_empty().then(|| &self.arena[self.written..])
    }

    /// Returns whether the waiting bytes are in many small pieces, which are better
    /// [joined](Self::join).
    #[cfg(feature = "tokio")]
    pub(crate) fn has_small_pieces(&self) -> bool {
        self.gathered_bytes < self.gathered.len().saturating_mul(self.gather_from)
    }

    /// Copies one batch of waiting bytes, from the front, to the end of a buffer.
    #[cfg(feature = "tokio")]
    pub(crate) fn join(&self, buffer: &mut Vec<u8>) {
        let mut start = self.written;
        for (end, payload) in &self.gathered {
            append(buffer, &self.arena[start..*end]);
            append(buffer, payload);
            start = *end;
            if buffer.len() >= WRITE_BATCH_BYTES {
                return;
            }
        }
        append(buffer, &self.arena[start..]);
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(self.written).chain(self.gathered.iter().map(|(end, _)| *end));
        let gathered = self.gathered.iter().map(|(end, payload)| (*end, &payload[..]));
        let last = std::iter::once((self.arena.len(), &[][..]));
        starts
            .zip(gathered.chain(last))
            .flat_map(|(start, (end, payload))| [&self.arena[start..end], payload])
            .filter(|piece| !piece.is_empty())
    }

    /// Returns the number of bytes written since the connection began.
    pub(crate) fn total_written(&self) -> u64 {
        self.total
    }

    /// Adds octets as they are.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.arena.extend_from_slice(bytes);
    }

    /// Adds a frame of a message.
    #[inline]
    pub(crate) fn push_frame(&mut self, more: bool, payload: &Bytes) {
        Header::write(if more { MORE } else { 0 }, payload.len(), &mut self.arena);
        if payload.len() < self.gather_from {
            self.arena.extend_from_slice(payload);
        } else {
            self.gather(payload.clone());
        }
    }

    /// Adds a frame of a message, and takes its payload unless that is small enough to be copied at
    /// once. Payloads of a size between [`JOIN_BYTES`] and `gather_from` are to be
    /// [joined](Self::join).
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn push_frame_taking(&mut self, more: bool, payload: &mut Bytes) {
        Header::write(if more { MORE } else { 0 }, payload.len(), &mut self.arena);
        if payload.len() < self.gather_from.min(JOIN_BYTES) {
            self.arena.extend_from_slice(payload);
        } else {
            self.gather(mem::take(payload));
        }
    }

    #[inline]
    fn gather(&mut self, payload: Bytes) {
        self.gathered_bytes += payload.len();
        self.gathered.push_back((self.arena.len(), payload));
    }

    /// Adds encoded messages. It takes their memory if nothing else waits to be written.
    #[cfg(feature = "tokio")]
    pub(crate) fn push_run(&mut self, run: &mut MessageRun) {
        if !self.gathered.is_empty() || !run.swap_wire(&mut self.arena) {
            self.arena.extend_from_slice(run.wire());
        }
    }

    /// Adds a command: its name and its data.
    pub(crate) fn push_command(&mut self, name: &str, data: &[u8]) {
        Header::write(COMMAND, 1 + name.len() + data.len(), &mut self.arena);
        push_command_body(&mut self.arena, name, data);
    }

    /// Adds a frame whose body `fill` writes in place. `fill` gets the body zeroed.
    pub(crate) fn push_frame_with<T>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        Header::write(0, length, &mut self.arena);
        let start = self.arena.len();
        self.arena.resize(start + length, 0);
        fill(&mut self.arena[start..])
    }

    /// Ends the handshake: bytes written from now on need not be wiped.
    pub(crate) fn end_of_secrets(&mut self) {
        self.arena[..self.written].zeroize();
        self.is_secret = false;
    }

    /// Releases the memory that only a busy peer needs. Nothing is waiting to be written.
    #[inline]
    pub(crate) fn shrink_idle(&mut self) {
        if self.can_shrink() {
            (self.arena, self.gathered) = (Vec::new(), VecDeque::new());
        }
    }

    /// Returns whether [`shrink_idle`](Self::shrink_idle) would release memory.
    #[inline]
    pub(crate) fn can_shrink(&self) -> bool {
        let kept = self.arena.capacity() + self.gathered.capacity() * size_of::<(usize, Bytes)>();
        kept > IDLE_WRITE_BUFFER_BYTES && self.arena.is_empty() && self.gathered.is_empty()
    }

    fn recycle(&mut self) {
        if self.written == self.arena.len() && self.gathered.is_empty() {
            if self.is_secret {
                self.arena.zeroize();
            }
            self.arena.clear();
            self.arena.shrink_to(WRITE_BUFFER_KEPT_BYTES);
            self.written = 0;
        } else if self.written >= COMPACT_BYTES && self.written > self.arena.len() / 2 {
            self.arena.drain(..self.written);
            for (end, _) in &mut self.gathered {
                *end -= self.written;
            }
            self.written = 0;
        }
    }
}

/// Appends as much of `piece` as fits in one batch.
#[cfg(feature = "tokio")]
#[inline]
fn append(buffer: &mut Vec<u8>, piece: &[u8]) {
    let room = Output::JOINED_BYTES.saturating_sub(buffer.len());
    buffer.extend_from_slice(&piece[..piece.len().min(room)]);
}

/// Appends the body of a command: the length of its name, its name, its data.
pub(crate) fn push_command_body(buffer: &mut Vec<u8>, name: &str, data: &[u8]) {
    buffer.push(name.len() as u8);
    buffer.extend_from_slice(name.as_bytes());
    buffer.extend_from_slice(data);
}

impl Buf for Output {
    fn remaining(&self) -> usize {
        self.arena.len() - self.written + self.gathered_bytes
    }

    fn chunk(&self) -> &[u8] {
        self.pieces().next().unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.slices(slices)
    }

    /// Drops written bytes. A count beyond the end drops all bytes.
    fn advance(&mut self, mut count: usize) {
        let remaining = self.remaining();
        self.total += count.min(remaining) as u64;
        // Everything is written, so no piece needs a visit.
        if count >= remaining {
            self.gathered.clear();
            self.gathered_bytes = 0;
            self.written = self.arena.len();
            return self.recycle();
        }
        while let Some((end, payload)) = self.gathered.front_mut() {
            // The bytes of the arena up to `end` come before this payload.
            let before = count.min(*end - self.written);
            self.written += before;
            count -= before;
            let taken = count.min(payload.len());
            payload.advance(taken);
            self.gathered_bytes -= taken;
            count -= taken;
            if self.written < *end || !payload.is_empty() {
                break;
            }
            self.gathered.pop_front();
        }
        if self.gathered.is_empty() {
            self.written = (self.written + count).min(self.arena.len());
        }
        self.recycle();
    }
}

#[cfg(test)]
#[cfg(feature = "tokio")]
mod tests {
    use super::*;

    fn payload(size: usize) -> Bytes {
        (0..size).map(|index| (index % 251) as u8).collect()
    }

    /// Returns the wire bytes of frames of these sizes, and an output that copies them only when it
    /// writes.
    fn filled(sizes: &[usize]) -> (Vec<u8>, Output) {
        let (mut copied, mut joined) = (Output::new(usize::MAX), Output::new(GATHER_BYTES));
        for size in sizes {
            copied.push_frame(false, &payload(*size));
            joined.push_frame_taking(false, &mut payload(*size));
        }
        let wire = copied.whole().unwrap().to_vec();
        (wire, joined)
    }

    #[test]
    fn what_is_joined_is_what_would_have_been_copied_however_much_of_it_is_written() {
        let sizes = [10, JOIN_BYTES, 0, 4096, JOIN_BYTES - 1, GATHER_BYTES - 1, 300, GATHER_BYTES, 4096].repeat(9);
        for step in [1000, 9000, 100_000, usize::MAX] {
            let (wire, mut output) = filled(&sizes);
            let mut written = Vec::new();
            while output.has_remaining() {
                let mut joined = Vec::new();
                output.join(&mut joined);
                joined.truncate(step);
                output.advance(joined.len());
                written.extend(joined);
            }
            assert!(written == wire, "in steps of {step}");
            assert_eq!(output.total_written(), wire.len() as u64);
        }
    }

    #[test]
    fn one_batch_is_joined_and_no_more() {
        for (size, count) in [(4096, 100), (100, 10_000), (JOIN_BYTES, 1000), (GATHER_BYTES - 1, 100)] {
            let (wire, output) = filled(&vec![size; count]);
            let mut joined = Vec::new();
            output.join(&mut joined);
            assert!((WRITE_BATCH_BYTES..=Output::JOINED_BYTES).contains(&joined.len()), "{} of {size}", joined.len());
            assert!(wire.starts_with(&joined));
        }
    }

    #[test]
    fn payloads_are_joined_only_where_most_of_it_is_in_small_ones() {
        assert!(!filled(&[]).1.has_small_pieces());
        assert!(!filled(&[JOIN_BYTES - 1, 10]).1.has_small_pieces());
        assert!(filled(&[JOIN_BYTES]).1.has_small_pieces());
        assert!(filled(&[4096, GATHER_BYTES, 4096]).1.has_small_pieces());
        assert!(!filled(&[4096, 10 * GATHER_BYTES, 4096]).1.has_small_pieces());
        assert!(!filled(&[GATHER_BYTES]).1.has_small_pieces());
    }

    #[test]
    fn a_payload_that_waits_to_be_joined_is_not_copied_before() {
        let mut shared = payload(4096);
        let place = shared.as_ptr();
        let mut output = Output::new(GATHER_BYTES);
        output.push_frame_taking(false, &mut shared);
        assert!(shared.is_empty());
        assert!(output.pieces().any(|piece| piece.as_ptr() == place));
    }
}
