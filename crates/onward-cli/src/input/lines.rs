//! Reading lines, singly or as many as are available.

use std::io::{BufRead, BufReader, Read};
use std::num::NonZeroUsize;

use bytes::Bytes;
use onward_store::bounds;

use crate::exit_code::wrong_usage;

/// The largest number of lines in a batch.
const BATCH_LINES: usize = 512;

/// The number of bytes at which a batch ends.
const BATCH_BYTES: usize = 1024 * 1024;

/// The largest number of lines of an item. The operating system limits the arguments of a command
/// far below.
pub(crate) const ITEM_LINES: usize = 100_000;

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

/// One line of the input, or an item of several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The number of the (first) line, counted from 1. Empty lines count.
    pub(crate) number: u64,
    /// The text of the line, without the delimiter at its end. The delimiter stands between the
    /// lines of an item.
    pub(crate) text: Bytes,
}

/// A reader of lines, or of items of several lines, of at most [`bounds::PAYLOAD_BYTES`]. Empty
/// lines are counted and skipped.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    delimiter: Delimiter,
    number: u64,
    item_lines: NonZeroUsize,
}

impl Lines {
    /// Creates a reader of the lines of any input.
    pub(crate) fn new(reader: Box<dyn Read + Send>, delimiter: Delimiter) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            delimiter,
            number: 0,
            item_lines: NonZeroUsize::MIN,
        }
    }

    /// Makes one item of this many lines. The last item may have fewer.
    pub(crate) fn in_items(self, item_lines: NonZeroUsize) -> Self {
        Self { item_lines, ..self }
    }

    /// Returns the next item; `None` at the end.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Line>> {
        let Some(first) = self.next_line()? else { return Ok(None) };
        if self.item_lines == NonZeroUsize::MIN {
            return Ok(Some(first));
        }
        let mut text = first.text.to_vec();
        for _ in 1..self.item_lines.get() {
            let Some(line) = self.next_line()? else { break };
            text.push(self.delimiter.byte());
            text.extend_from_slice(&line.text);
            if text.len() > bounds::PAYLOAD_BYTES {
                let longest = bounds::PAYLOAD_BYTES;
                return Err(wrong_usage(format!(
                    "lines {} to {} of the input have more than {longest} bytes together; put fewer lines into an item",
                    first.number, line.number
                )));
            }
        }
        Ok(Some(Line { number: first.number, text: text.into() }))
    }

    /// Returns the next line that is not empty; `None` at the end.
    fn next_line(&mut self) -> anyhow::Result<Option<Line>> {
        loop {
            let Some(text) = self.next_raw()? else { return Ok(None) };
            self.number += 1;
            if !text.is_empty() {
                return Ok(Some(Line { number: self.number, text: text.into() }));
            }
        }
    }

    /// Waits for one item and returns it with the items that are available without blocking.
    /// Returns no items at the end. An item that has begun is read to its end.
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
    fn an_item_has_the_number_of_its_first_line_and_the_last_may_be_short() {
        let mut lines =
            Lines::new(Box::new(&b"\na\n\nb\nc\n"[..]), Delimiter::LineFeed).in_items(2.try_into().unwrap());
        let read: Vec<(u64, Bytes)> =
            std::iter::from_fn(|| lines.next().unwrap()).map(|item| (item.number, item.text)).collect();
        assert_eq!(read, [(2, "a\nb".into()), (5, "c".into())]);
    }

    #[test]
    fn an_item_that_is_too_long_is_named_by_its_lines() {
        let long = [vec![b'x'; bounds::PAYLOAD_BYTES / 2], vec![b'\n']].concat().repeat(3);
        let mut lines =
            Lines::new(Box::new(std::io::Cursor::new(long)), Delimiter::LineFeed).in_items(3.try_into().unwrap());
        let error = lines.next().unwrap_err().to_string();
        assert!(error.contains("lines 1 to 2 of the input have more than 1048576 bytes together"), "{error}");
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
