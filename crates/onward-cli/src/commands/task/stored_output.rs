//! Reading the output of tasks.

use bytes::Bytes;
use onward_store::{OutputPiece, OutputStream, Store, StoreReads, TaskId, TaskOutput};
use serde_json::{Map, Value};

use crate::output::bytes_field;

/// The bytes that are read at a time.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// The bytes at the end of a stream in which its last lines are searched, where a few are shown.
const END_BYTES: u64 = 8 * 1024;

/// A part of a stream behind what was read before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of bytes before it that are not kept.
    pub(super) gap: u64,
    /// The offset of its bytes.
    pub(super) at: u64,
    pub(super) bytes: Bytes,
}

/// Returns the parts of pieces behind the offset `at`.
pub(super) fn parts(pieces: &[OutputPiece], mut at: u64) -> Vec<Part> {
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if piece.end() <= at {
            continue;
        }
        let read = usize::try_from(at.saturating_sub(piece.at)).unwrap_or(usize::MAX).min(piece.bytes.len());
        let gap = piece.at.saturating_sub(at);
        parts.push(Part { gap, at: at.max(piece.at), bytes: piece.bytes.slice(read..) });
        at = piece.end();
    }
    parts
}

/// Returns the offset at which the last `lines` lines of a stream begin, as far as they are kept
/// without a gap.
pub(super) fn offset_of_last_lines(output: &TaskOutput, lines: usize) -> u64 {
    let (mut start, mut found) = (output.end, 0);
    if lines == 0 {
        return start;
    }
    for piece in output.pieces.iter().rev() {
        if piece.end() != start {
            break;
        }
        start = piece.at;
        for (index, _) in piece.bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let behind = piece.at + index as u64 + 1;
            // The last line feed ends the last line.
            found += usize::from(behind != output.end);
            if found == lines {
                return behind;
            }
        }
    }
    start
}

/// Reads the last lines of a stream. Returns an empty text if there is none.
pub(crate) async fn last_lines(
    store: &dyn Store,
    task: TaskId,
    stream: OutputStream,
    lines: usize,
) -> onward_store::Result<String> {
    let Some(TaskOutput { end, .. }) = store.task_output(task, stream, u64::MAX, 0).await?.filter(|it| it.end > 0)
    else {
        return Ok(String::new());
    };
    let from = end.saturating_sub(END_BYTES);
    let Some(output) = store.task_output(task, stream, from, READ_BYTES).await? else { return Ok(String::new()) };
    let start = offset_of_last_lines(&output, lines).max(from);
    let bytes: Vec<u8> = parts(&output.pieces, start).into_iter().flat_map(|part| part.bytes).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a part as a JSON object.
pub(super) fn part_json(task: TaskId, attempt: u32, stream: OutputStream, part: &Part) -> Value {
    let mut object = Map::new();
    object.insert("task".to_owned(), task.0.into());
    object.insert("attempt".to_owned(), attempt.into());
    object.insert("stream".to_owned(), stream.as_str().into());
    object.insert("at".to_owned(), part.at.into());
    bytes_field(&mut object, "text", Some(&part.bytes));
    Value::Object(object)
}

/// Returns the notice about bytes that are not kept.
pub(super) fn gap_text(stream: OutputStream, gap: u64) -> String {
    format!("({gap} bytes of {} are not kept)", stream.as_str())
}

#[cfg(test)]
mod tests {
    use onward_store::OutputStream::Stdout;

    use super::*;

    fn output(pieces: &[(u64, &'static str)]) -> TaskOutput {
        let pieces: Vec<_> =
            pieces.iter().map(|(at, text)| OutputPiece::new(Stdout, *at, text.as_bytes().to_vec())).collect();
        let end = pieces.last().map_or(0, OutputPiece::end);
        TaskOutput { claim: 1, attempt: 1, end, cut: 0, pieces }
    }

    #[test]
    fn parts_begin_behind_what_was_read_and_state_gaps() {
        let found = parts(&output(&[(0, "abc"), (3, "def"), (9, "x")]).pieces, 4);
        let found: Vec<_> = found.iter().map(|part| (part.gap, part.at, &part.bytes[..])).collect();
        assert_eq!(found, [(0, 4, &b"ef"[..]), (3, 9, &b"x"[..])]);
    }

    #[test]
    fn the_last_lines_may_begin_in_an_earlier_piece() {
        let output = output(&[(0, "a\nb"), (3, "b\nc\n")]);
        assert_eq!([0, 1, 2, 3, 9].map(|lines| offset_of_last_lines(&output, lines)), [7, 5, 2, 0, 0]);
    }

    #[test]
    fn a_last_line_without_a_line_feed_is_a_line() {
        assert_eq!(offset_of_last_lines(&output(&[(0, "a\nb")]), 1), 2);
    }

    #[test]
    fn last_lines_do_not_reach_over_a_gap() {
        assert_eq!(offset_of_last_lines(&output(&[(0, "a\n"), (8, "b\n")]), 2), 8);
    }
}
