//! Output of running tasks: the pieces that are appended, and the pieces that are kept.

use crate::api::outcome::Refusal;
use crate::api::output::OutputPiece;
use crate::bounds::{OUTPUT_APPEND_BYTES, OUTPUT_ENCODED_BYTES, OUTPUT_END_BYTES};

/// Returns whether a piece must be appended to a stream that ends at `end`; false if it was
/// appended before. A piece that stands for the result is always appended, in place of the stream.
///
/// # Errors
/// If the piece is empty, too large or too far along the stream, or if only a part of it was
/// appended before. If it stands for a result that is shorter than the stream.
pub fn appends(piece: &OutputPiece, end: u64) -> Result<bool, Refusal> {
    let stream = piece.stream.as_str();
    if piece.is_of_result() {
        return if piece.at == 0 && piece.end() >= end {
            Ok(true)
        } else {
            Err(Refusal::Invalid(format!(
                "a piece stands for {} bytes of a result from offset {}, and {end} bytes of {stream} were appended; \
                 let it begin at 0 and stand for the whole stream",
                piece.length, piece.at
            )))
        };
    }
    if piece.length == 0 || piece.length as usize > OUTPUT_APPEND_BYTES || piece.bytes.len() > OUTPUT_ENCODED_BYTES {
        return Err(Refusal::Invalid(format!(
            "a piece of {stream} has {} bytes ({} encoded); append 1 to {OUTPUT_APPEND_BYTES} bytes at a time \
             ({OUTPUT_ENCODED_BYTES} encoded)",
            piece.length,
            piece.bytes.len()
        )));
    }
    if piece.end() > i64::MAX.cast_unsigned() {
        return Err(Refusal::Invalid(format!(
            "a piece of {stream} begins at {}; the largest offset is {}",
            piece.at,
            i64::MAX
        )));
    }
    if piece.at < end && piece.end() > end {
        return Err(Refusal::Invalid(format!(
            "a piece of {stream} begins at {}, and {end} bytes were appended; continue there",
            piece.at
        )));
    }
    Ok(piece.at >= end)
}

/// Returns whether a piece is kept of a stream that ends at `end`: it overlaps the beginning or the
/// end of the stream that are always kept.
#[must_use]
pub fn is_kept(piece: &OutputPiece, end: u64) -> bool {
    piece.at < OUTPUT_END_BYTES as u64 || cut_to(end).is_none_or(|cut| piece.end() > cut)
}

/// Returns the offset up to which pieces after the beginning are dropped, of a stream that ends at
/// `end`; `None` if none are.
#[must_use]
pub fn cut_to(end: u64) -> Option<u64> {
    end.checked_sub(OUTPUT_END_BYTES as u64).filter(|cut| *cut > OUTPUT_END_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::output::OutputStream;
    use crate::bounds::OUTPUT_BYTES;

    fn piece(at: u64, length: usize) -> OutputPiece {
        OutputPiece::new(OutputStream::Stdout, at, vec![0; length])
    }

    #[test]
    fn a_piece_continues_where_the_stream_ends_or_later() {
        assert_eq!([4, 9].map(|at| appends(&piece(at, 2), 4)), [Ok(true), Ok(true)]);
    }

    #[test]
    fn a_piece_that_was_appended_before_is_not_appended_again() {
        assert_eq!(appends(&piece(2, 2), 4), Ok(false));
    }

    #[test]
    fn a_piece_of_which_a_part_was_appended_is_refused() {
        assert!(appends(&piece(2, 3), 4).is_err());
    }

    #[test]
    fn an_empty_and_a_large_piece_are_refused() {
        assert!([0, OUTPUT_APPEND_BYTES + 1].iter().all(|length| appends(&piece(0, *length), 0).is_err()));
    }

    #[test]
    fn a_piece_that_stands_for_the_result_replaces_a_stream_that_is_no_longer() {
        let result = OutputPiece::of_result(OutputStream::Stdout, 9_000_000);
        assert_eq!([0, 4, 9_000_000].map(|end| appends(&result, end)), [Ok(true), Ok(true), Ok(true)]);
        assert!(appends(&result, 9_000_001).is_err());
        assert!(appends(&OutputPiece { at: 1, ..result }, 1).is_err());
    }

    #[test]
    fn what_is_kept_of_a_long_stream_is_within_the_bound_and_has_its_beginning_and_end() {
        let length = OUTPUT_APPEND_BYTES as u64;
        let end = 64 * length + 5;
        let kept: Vec<u64> =
            (0..64).map(|number| number * length + 5).filter(|at| is_kept(&piece(*at, length as usize), end)).collect();
        assert_eq!((kept.first(), kept.last()), (Some(&5), Some(&(end - length))));
        assert!(kept.len() as u64 * length <= OUTPUT_BYTES as u64 && kept.len() >= 14);
    }
}
