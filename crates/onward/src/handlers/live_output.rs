//! The output of a running task that is not saved yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use onward_store::bounds::OUTPUT_APPEND_BYTES;
use onward_store::{OutputPiece, OutputStream};

use crate::bounds::{OUTPUT_BUFFER_BYTES, OUTPUT_UNSAVED_PIECES};

/// The output of one attempt. Appending never waits for the store. If output comes faster than it
/// is saved, its middle is dropped.
#[derive(Debug, Default)]
pub(crate) struct LiveOutput(OnceLock<Box<Mutex<Streams>>>);

/// The buffers of both streams. Most attempts have none.
#[derive(Debug, Default)]
struct Streams {
    buffers: [Buffer; 2],
    /// Pieces that could not be saved.
    unsaved: VecDeque<OutputPiece>,
}

/// The bytes of one stream since it was last saved: the first ones, and the last ones.
#[derive(Debug, Default)]
struct Buffer {
    /// The offset of the first byte.
    at: u64,
    first: Vec<u8>,
    last: VecDeque<u8>,
    /// The offset behind the last byte.
    end: u64,
}

impl LiveOutput {
    /// Appends bytes. Returns true if there are any.
    pub(crate) fn append(&self, stream: OutputStream, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return false;
        }
        let mut streams = lock(self.0.get_or_init(Box::default));
        streams.buffers[position(stream)].append(bytes);
        true
    }

    /// Removes and returns the unsaved output, in the order in which it is to be appended.
    pub(crate) fn take(&self) -> Vec<OutputPiece> {
        let Some(streams) = self.0.get() else { return Vec::new() };
        let mut streams = lock(streams);
        let mut pieces = Vec::from(std::mem::take(&mut streams.unsaved));
        for stream in OutputStream::ALL {
            streams.buffers[position(stream)].take(stream, &mut pieces);
        }
        pieces
    }

    /// Returns true if there is unsaved output.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.0.get().is_some_and(|streams| {
            let streams = lock(streams);
            !streams.unsaved.is_empty() || streams.buffers.iter().any(|buffer| !buffer.first.is_empty())
        })
    }

    /// Takes back a piece that could not be saved. Beyond [`OUTPUT_UNSAVED_PIECES`] it is dropped,
    /// and readers see a gap.
    pub(crate) fn put_back(&self, piece: OutputPiece) {
        let mut streams = lock(self.0.get_or_init(Box::default));
        if streams.unsaved.len() < OUTPUT_UNSAVED_PIECES {
            streams.unsaved.push_back(piece);
        }
    }
}

impl Buffer {
    fn append(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let room = (OUTPUT_BUFFER_BYTES / 2).saturating_sub(self.first.len());
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.first.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(OUTPUT_BUFFER_BYTES / 2)..];
        let excess = (self.last.len() + rest.len()).saturating_sub(OUTPUT_BUFFER_BYTES / 2);
        self.last.drain(..excess);
        self.last.extend(rest);
    }

    fn take(&mut self, stream: OutputStream, pieces: &mut Vec<OutputPiece>) {
        let (first, last) = (std::mem::take(&mut self.first), Vec::from(std::mem::take(&mut self.last)));
        let behind = self.end - last.len() as u64;
        for (mut at, bytes) in [(self.at, Bytes::from(first)), (behind, Bytes::from(last))] {
            for start in (0..bytes.len()).step_by(OUTPUT_APPEND_BYTES) {
                let piece = bytes.slice(start..bytes.len().min(start + OUTPUT_APPEND_BYTES));
                let next = at + piece.len() as u64;
                pieces.push(OutputPiece::new(stream, at, piece));
                at = next;
            }
        }
        self.at = self.end;
    }
}

fn position(stream: OutputStream) -> usize {
    match stream {
        OutputStream::Stdout => 0,
        OutputStream::Stderr => 1,
    }
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use onward_store::OutputStream::{Stderr, Stdout};

    use super::*;

    /// Returns stream, offset and text of each piece.
    fn taken(output: &LiveOutput) -> Vec<(OutputStream, u64, String)> {
        let text = |piece: &OutputPiece| String::from_utf8_lossy(&piece.bytes).into_owned();
        output.take().iter().map(|piece| (piece.stream, piece.at, text(piece))).collect()
    }

    #[test]
    fn output_is_taken_once_and_continues_at_its_offset() {
        let output = LiveOutput::default();
        assert!(output.append(Stdout, b"one ") && output.append(Stderr, b"oops") && output.append(Stdout, b"two"));
        assert_eq!(taken(&output), [(Stdout, 0, "one two".into()), (Stderr, 0, "oops".into())]);
        assert!(!output.is_unsaved());
        output.append(Stdout, b"!");
        assert_eq!(taken(&output), [(Stdout, 7, "!".into())]);
    }

    #[test]
    fn of_output_that_comes_too_fast_the_beginning_and_the_end_are_kept() {
        let output = LiveOutput::default();
        (0..10).for_each(|_| _ = output.append(Stdout, &[b'a'; OUTPUT_BUFFER_BYTES / 4]));
        output.append(Stdout, b"end");
        let pieces = output.take();
        let kept: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let last = pieces.last().unwrap();
        assert_eq!((kept, pieces[0].at), (OUTPUT_BUFFER_BYTES, 0));
        assert_eq!(last.end(), 10 * (OUTPUT_BUFFER_BYTES / 4) as u64 + 3);
        assert!(last.bytes.ends_with(b"aend"));
    }

    #[test]
    fn a_piece_is_never_larger_than_the_store_accepts() {
        let output = LiveOutput::default();
        output.append(Stdout, &[b'a'; OUTPUT_BUFFER_BYTES]);
        assert!(output.take().iter().all(|piece| piece.bytes.len() <= OUTPUT_APPEND_BYTES));
    }

    #[test]
    fn a_piece_that_was_not_saved_comes_before_later_ones() {
        let output = LiveOutput::default();
        output.append(Stdout, b"one");
        output.take().into_iter().for_each(|piece| output.put_back(piece));
        output.append(Stdout, b"two");
        assert_eq!(taken(&output), [(Stdout, 0, "one".into()), (Stdout, 3, "two".into())]);
    }
}
