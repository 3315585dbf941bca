//! Keeping a bounded part of a program's output.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The bytes that are read at a time.
const CHUNK: usize = 16 * 1024;

/// The part of a stream that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Captured {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// True if the stream was longer than the limit.
    pub(crate) cut: bool,
}

/// The bytes of stderr that become part of an error.
const LAST_WORDS_BYTES: usize = 4096;

impl Captured {
    /// Returns the end of a program's stderr after a colon, with a mark if its beginning was left
    /// out. Returns an empty text for an empty stream.
    pub(crate) fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim();
        let from = text.ceil_char_boundary(text.len().saturating_sub(LAST_WORDS_BYTES));
        let end = &text[from..];
        match (end.is_empty(), self.cut || from > 0) {
            (true, _) => String::new(),
            (false, false) => format!(": {end}"),
            (false, true) => format!(" (the last {} bytes of stderr follow): {end}", end.len()),
        }
    }
}

/// The part of a stream that is kept if it is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The beginning, for results.
    Beginning,
    /// The end, where programs usually write why they failed.
    End,
}

/// A stream that is being captured. Bytes beyond the limit are read and dropped, so that the
/// program never blocks on a full pipe.
#[derive(Debug)]
pub(super) struct Capture {
    part: Part,
    limit: usize,
    kept: Captured,
}

impl Capture {
    /// Creates a capture of at most `limit` bytes.
    pub(super) fn new(part: Part, limit: usize) -> Self {
        Self { part, limit, kept: Captured::default() }
    }

    /// Reads to the end of the stream, and passes all of it to `tap` as it comes. Bytes already
    /// read are kept if the future is dropped.
    pub(super) async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>, tap: impl Fn(&[u8])) {
        let Some(mut stream) = stream else { return };
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            tap(&chunk[..count]);
            self.take(&chunk[..count]);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let kept = &mut self.kept;
        let room = self.limit.saturating_sub(kept.bytes.len());
        match self.part {
            Part::Beginning => kept.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]),
            Part::End => {
                kept.bytes.extend_from_slice(bytes);
                // Up to twice the limit is buffered, so that the front is rarely moved.
                if kept.bytes.len() > self.limit.saturating_mul(2) {
                    kept.bytes.drain(..kept.bytes.len() - self.limit);
                }
            }
        }
        kept.cut |= bytes.len() > room;
    }

    /// Returns the bytes that were kept.
    pub(super) fn finish(mut self) -> Captured {
        let excess = self.kept.bytes.len().saturating_sub(self.limit);
        self.kept.bytes.drain(..excess);
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(part: Part, stream: &str) -> (String, bool) {
        let mut capture = Capture::new(part, 4);
        capture.read(Some(stream.as_bytes()), |_| ()).await;
        let kept = capture.finish();
        (String::from_utf8(kept.bytes).unwrap(), kept.cut)
    }

    #[tokio::test]
    async fn the_beginning_of_a_long_stream_is_kept_and_marked() {
        assert_eq!(kept(Part::Beginning, "abcdefghij").await, ("abcd".into(), true));
    }

    #[tokio::test]
    async fn the_end_of_a_long_stream_is_kept_and_marked() {
        assert_eq!(kept(Part::End, "abcdefghij").await, ("ghij".into(), true));
    }

    #[tokio::test]
    async fn a_stream_as_long_as_the_limit_is_whole() {
        assert_eq!(kept(Part::End, "abcd").await, ("abcd".into(), false));
    }
}
