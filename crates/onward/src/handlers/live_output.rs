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
    /// True if the result of the attempt is its standard output.
    is_result: bool,
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

    /// Removes and returns the unsaved output of streams, in the order in which it is to be
    /// appended.
    pub(crate) fn take(&self, of: &[OutputStream]) -> Vec<OutputPiece> {
        let Some(streams) = self.0.get() else { return Vec::new() };
        let mut streams = lock(streams);
        let unsaved = std::mem::take(&mut streams.unsaved);
        let (pieces, kept): (Vec<_>, Vec<_>) = unsaved.into_iter().partition(|piece| of.contains(&piece.stream));
        streams.unsaved = kept.into();
        let mut pieces = pieces;
        for stream in of {
            streams.buffers[position(*stream)].take(*stream, &mut pieces);
        }
        pieces
    }

    /// Declares that the result of the attempt is its standard output.
    pub(crate) fn declare_result(&self) {
        lock(self.0.get_or_init(Box::default)).is_result = true;
    }

    /// Returns a piece that stands for the whole standard output, if `result` is declared to be
    /// that, and is as far as it can be compared. The unsaved output stays, because the store may
    /// reject the result.
    pub(crate) fn piece_of_result(&self, result: &[u8]) -> Option<OutputPiece> {
        let streams = lock(self.0.get()?);
        let length = u32::try_from(result.len()).ok().filter(|length| *length > 0)?;
        let is_same = streams.buffers[position(OutputStream::Stdout)].is(result);
        (streams.is_result && is_same).then(|| OutputPiece::of_result(OutputStream::Stdout, length))
    }

    /// Returns the length of the whole standard output if it is declared to be the result of the
    /// attempt, and `result` is another one.
    pub(crate) fn other_than_result(&self, result: &[u8]) -> Option<u64> {
        let streams = lock(self.0.get()?);
        let stdout = &streams.buffers[position(OutputStream::Stdout)];
        (streams.is_result && !stdout.is(result)).then_some(stdout.end)
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

    /// Returns true if the whole stream is `whole`, as far as it can be compared: it has the same
    /// length, and the first unsaved bytes at their offset.
    fn is(&self, whole: &[u8]) -> bool {
        let unsaved = usize::try_from(self.at).ok().and_then(|at| whole.get(at..));
        whole.len() as u64 == self.end && unsaved.is_some_and(|unsaved| unsaved.starts_with(&self.first))
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
        output.take(&OutputStream::ALL).iter().map(|piece| (piece.stream, piece.at, text(piece))).collect()
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
        let pieces = output.take(&OutputStream::ALL);
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
        assert!(output.take(&OutputStream::ALL).iter().all(|piece| piece.bytes.len() <= OUTPUT_APPEND_BYTES));
    }

    #[test]
    fn a_declared_result_stands_for_the_standard_output_if_it_is_that() {
        let output = LiveOutput::default();
        output.append(Stdout, b"one ");
        output.take(&[Stdout]);
        output.append(Stdout, b"two");
        assert_eq!(output.piece_of_result(b"one two"), None, "it is not declared");
        output.declare_result();
        let others = [&b"one too"[..], b"one two ", b"two", b""];
        assert_eq!(others.map(|other| output.piece_of_result(other)), [const { None }; 4]);
        assert_eq!(output.piece_of_result(b"one two"), Some(OutputPiece::of_result(Stdout, 7)));
        assert_eq!(taken(&output), [(Stdout, 4, "two".into())], "a store may reject the result");
    }

    #[test]
    fn a_wrong_declaration_is_noticed_with_the_length_of_the_output() {
        let output = LiveOutput::default();
        output.append(Stdout, b"one");
        assert_eq!(output.other_than_result(b""), None, "it is not declared");
        output.declare_result();
        assert_eq!([&b""[..], b"two", b"one"].map(|result| output.other_than_result(result)), [Some(3), Some(3), None]);
    }

    #[test]
    fn one_stream_is_taken_without_the_other() {
        let output = LiveOutput::default();
        output.append(Stdout, b"out");
        output.take(&[Stdout]).into_iter().for_each(|piece| output.put_back(piece));
        output.append(Stderr, b"err");
        assert_eq!(output.take(&[Stderr]).iter().map(|piece| piece.stream).collect::<Vec<_>>(), [Stderr]);
        assert_eq!(taken(&output), [(Stdout, 0, "out".into())]);
    }

    #[test]
    fn a_piece_that_was_not_saved_comes_before_later_ones() {
        let output = LiveOutput::default();
        output.append(Stdout, b"one");
        output.take(&OutputStream::ALL).into_iter().for_each(|piece| output.put_back(piece));
        output.append(Stdout, b"two");
        assert_eq!(taken(&output), [(Stdout, 0, "one".into()), (Stdout, 3, "two".into())]);
    }
}
