//! What is to be written.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};
use zeroize::Zeroize;

use super::frame::{COMMAND, Header, MORE};
use super::limits::{IDLE_WRITE_BUFFER_BYTES, WRITE_BATCH_BYTES, WRITE_BUFFER_KEPT_BYTES};
#[cfg(feature = "tokio")]
use super::run::Run;

/// When so much of the arena has been written and more than half of it, the rest moves to the front.
const COMPACT_BYTES: usize = 64 * 1024;

/// The bytes that a connection wants to have written, in order.
///
/// Headers and small payloads are copied into one arena; large payloads stay where they are, with a reference. It is a
/// [`Buf`], so that `write_buf` and `write_all_buf` of tokio write it with vectored writes; for others there is [`Output::slices`].
#[derive(Debug, Default)]
pub struct Output {
    arena: Vec<u8>,
    /// How much of the arena has been written.
    written: usize,
    /// Payloads by reference, each with the end of what stands before it in the arena.
    gathered: VecDeque<(usize, Bytes)>,
    /// How many bytes of `gathered` are left.
    gathered_bytes: usize,
    gather_from: usize,
    /// How many bytes have been written in all.
    total: u64,
    /// Whether the handshake goes on, so that what was written must be wiped.
    is_secret: bool,
}

impl Output {
    pub(crate) fn new(gather_from: usize) -> Self {
        Self { gather_from, is_secret: true, ..Self::default() }
    }

    /// Whether so much waits to be written ([`WRITE_BATCH_BYTES`]) that no message should be added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.remaining() >= WRITE_BATCH_BYTES
    }

    /// Fills `slices` from the front with what is to be written next and answers how many it filled. After writing, call
    /// [`Buf::advance`] with the number of bytes that were taken.
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

    /// All that waits to be written, if it is in one piece.
    #[cfg(feature = "tokio")]
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.gathered.is_empty().then(|| &self.arena[self.written..])
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

    /// How many bytes have been written since the connection began.
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
            self.gathered_bytes += payload.len();
            self.gathered.push_back((self.arena.len(), payload.clone()));
        }
    }

    /// Adds messages that are encoded already, and takes their memory for it if nothing else is to be written.
    #[cfg(feature = "tokio")]
    pub(crate) fn push_run(&mut self, run: &mut Run) {
        if !self.gathered.is_empty() || !run.swap_wire(&mut self.arena) {
            self.arena.extend_from_slice(run.wire());
        }
    }

    /// Adds a command: its name and what follows it.
    pub(crate) fn push_command(&mut self, name: &str, data: &[u8]) {
        Header::write(COMMAND, 1 + name.len() + data.len(), &mut self.arena);
        push_command_body(&mut self.arena, name, data);
    }

    /// Adds a frame whose body is written in place by `fill`, which gets it zeroed.
    pub(crate) fn push_frame_with<T>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        Header::write(0, length, &mut self.arena);
        let start = self.arena.len();
        self.arena.resize(start + length, 0);
        fill(&mut self.arena[start..])
    }

    /// The handshake is over: from now on what was written need not be wiped.
    pub(crate) fn end_of_secrets(&mut self) {
        self.arena[..self.written].zeroize();
        self.is_secret = false;
    }

    /// There is nothing to be written: what only a busy peer needs is given back.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.has_memory_to_spare() {
            self.arena = Vec::new();
        }
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn has_memory_to_spare(&self) -> bool {
        self.arena.capacity() > IDLE_WRITE_BUFFER_BYTES && self.arena.is_empty()
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

/// A command's body: the length of its name, its name, its data.
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

    /// Takes away what was written. More than there is counts as all there is.
    fn advance(&mut self, mut count: usize) {
        self.total += count.min(self.remaining()) as u64;
        while let Some((end, payload)) = self.gathered.front_mut() {
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
