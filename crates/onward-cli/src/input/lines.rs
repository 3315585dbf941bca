//! Reading lines, singly or as many as are available.

use std::io::{BufRead, BufReader, Read};

use bytes::Bytes;
use onward_store::bounds;

use crate::exit_code::wrong_usage;

/// The largest number of lines in a batch.
const BATCH_LINES: usize = 512;

/// The number of bytes at which a batch ends.
const BATCH_BYTES: usize = 1024 * 1024;

/// The byte that ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delimiter {
    /// A line feed.
    LineFeed,
    /// A zero byte, as `find -print0` writes it.
    Zero,
}

impl Delimiter {
    /// Returns the byte.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::LineFeed => b'\n',
            Self::Zero => 0,
        }
    }
}

/// One line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The number of the line, counted from 1. Empty lines count.
    pub(crate) number: u64,
    /// The text of the line, without the delimiter.
    pub(crate) text: Bytes,
}

/// A reader of lines of at most [`bounds::PAYLOAD_BYTES`]. Empty lines are counted and skipped.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    delimiter: Delimiter,
    number: u64,
}

impl Lines {
    /// Creates a reader of the lines of any input.
    pub(crate) fn new(reader: Box<dyn Read + Send>, delimiter: Delimiter) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, reader), delimiter, number: 0 }
    }

    /// Returns the next line that is not empty; `None` at the end.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Line>> {
        loop {
            let Some(text) = self.next_raw()? else { return Ok(None) };
            self.number += 1;
            if !text.is_empty() {
                return Ok(Some(Line { number: self.number, text: text.into() }));
            }
        }
    }

    /// Waits for one line and returns it with the lines that are available without blocking.
    /// Returns no lines at the end.
    pub(crate) fn next_batch(&mut self) -> anyhow::Result<Vec<Line>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(line) = self.next()? {
            bytes += line.text.len();
            batch.push(line);
            if self.reader.buffer().is_empty() || batch.len() >= BATCH_LINES || bytes >= BATCH_BYTES {
                break;
            }
        }
        Ok(batch)
    }

    fn next_raw(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let (mut text, longest) = (Vec::new(), bounds::PAYLOAD_BYTES);
        let bounded = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
        if self.reader.by_ref().take(bounded).read_until(self.delimiter.byte(), &mut text)? == 0 {
            return Ok(None);
        }
        if text.last() == Some(&self.delimiter.byte()) {
            text.pop();
        } else if text.len() > longest {
            let number = self.number + 1;
            return Err(wrong_usage(format!(
                "line {number} of the input is longer than {longest} bytes; put such data into files and give their names"
            )));
        }
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static str, delimiter: Delimiter) -> Vec<(u64, String)> {
        let mut lines = Lines::new(Box::new(text.as_bytes()), delimiter);
        let read = std::iter::from_fn(|| lines.next().unwrap());
        read.map(|line| (line.number, String::from_utf8(line.text.to_vec()).unwrap())).collect()
    }

    #[test]
    fn empty_lines_are_counted_and_left_out() {
        assert_eq!(lines("a\n\nb", Delimiter::LineFeed), [(1, "a".into()), (3, "b".into())]);
    }

    #[test]
    fn zero_delimited_lines_keep_their_line_feeds() {
        assert_eq!(lines("a\nb\0c\0", Delimiter::Zero), [(1, "a\nb".into()), (2, "c".into())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_named_by_its_number() {
        let long = std::io::repeat(b'x').take(2 * 1024 * 1024);
        let mut lines = Lines::new(Box::new(b"short\n".chain(long)), Delimiter::LineFeed);
        lines.next().unwrap();
        assert!(lines.next().unwrap_err().to_string().contains("line 2 of the input is longer than 1048576 bytes"));
    }

    #[test]
    fn a_batch_ends_where_reading_on_would_block() {
        let mut lines = Lines::new(Box::new(b"a\nb\n".chain(b"c\n".as_slice())), Delimiter::LineFeed);
        let batch: Vec<u64> = lines.next_batch().unwrap().iter().map(|line| line.number).collect();
        assert_eq!(batch, [1, 2]);
    }
}
