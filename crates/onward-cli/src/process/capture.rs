//! Keeping a bounded part of what a program writes.

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at a time.
const CHUNK: usize = 16 * 1024;

/// What was kept of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Captured {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Whether there was more than the limit.
    pub(crate) cut: bool,
}

/// Which part of a stream is kept when it is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The beginning, as results are.
    Beginning,
    /// The end, where programs say why they failed.
    End,
}

/// A stream that is being kept. What goes beyond the limit is read and dropped, so that the program
/// does not stand still.
#[derive(Debug)]
pub(super) struct Capture {
    part: Part,
    limit: usize,
    kept: Captured,
}

impl Capture {
    /// Keeps at most `limit` bytes.
    pub(super) fn new(part: Part, limit: usize) -> Self {
        Self { part, limit, kept: Captured::default() }
    }

    /// Reads to the end of the stream. What was read so far stays when the future is dropped.
    pub(super) async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
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
                // Twice the limit is let to gather, so that the front is moved rarely.
                if kept.bytes.len() > self.limit.saturating_mul(2) {
                    kept.bytes.drain(..kept.bytes.len() - self.limit);
                }
            }
        }
        kept.cut |= bytes.len() > room;
    }

    /// What was kept.
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
        capture.read(Some(stream.as_bytes())).await;
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
