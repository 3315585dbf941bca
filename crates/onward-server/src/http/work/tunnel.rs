//! A stream of bytes both ways over requests that may be lost and repeated.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Mutex;

use crate::http::bounds::WORK_BYTES;

/// The reason why bytes of a request are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunnelError {
    /// The stream has ended.
    Ended,
    /// The request is about bytes that the other side does not have. The number is the one that it
    /// expects.
    Gap(u64),
    /// Another request is under way in the same direction.
    Busy,
}

/// The server's end of a stream. Each direction counts its bytes, so that a repeated request has no
/// second effect and a lost response loses nothing.
#[derive(Debug)]
pub(crate) struct Tunnel {
    to_session: Mutex<ToSession>,
    from_session: Mutex<FromSession>,
}

#[derive(Debug)]
struct ToSession {
    writer: WriteHalf<DuplexStream>,
    /// The number of bytes that the session has.
    received: u64,
}

#[derive(Debug)]
struct FromSession {
    reader: ReadHalf<DuplexStream>,
    /// The bytes that the worker has not acknowledged.
    unread: BytesMut,
    /// The number of bytes before them.
    acknowledged: u64,
}

impl Tunnel {
    pub(super) fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            to_session: Mutex::new(ToSession { writer, received: 0 }),
            from_session: Mutex::new(FromSession { reader, unread: BytesMut::new(), acknowledged: 0 }),
        }
    }

    /// Passes bytes of the worker to its session. `from` is the number of bytes that the worker
    /// sent before; those that the session has already are skipped.
    pub(crate) async fn send(&self, from: u64, bytes: &[u8]) -> Result<(), TunnelError> {
        let mut to = self.to_session.try_lock().map_err(|_| TunnelError::Busy)?;
        let known = to.received.checked_sub(from).ok_or(TunnelError::Gap(to.received))?;
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(bytes.len());
        let mut left = &bytes[known..];
        while !left.is_empty() {
            // The count is right also if the request ends here.
            match to.writer.write(left).await {
                Ok(0) | Err(_) => return Err(TunnelError::Ended),
                Ok(count) => {
                    to.received += count as u64;
                    left.advance(count);
                }
            }
        }
        Ok(())
    }

    /// Returns bytes of the session from a position, which acknowledges those before it. It waits
    /// for the first, and returns none if none comes in time.
    pub(crate) async fn receive(&self, from: u64, wait: Duration) -> Result<Bytes, TunnelError> {
        let mut side = self.from_session.try_lock().map_err(|_| TunnelError::Busy)?;
        side.acknowledge(from)?;
        if side.unread.is_empty() && !side.read(wait).await? {
            return Ok(Bytes::new());
        }
        Ok(Bytes::copy_from_slice(&side.unread))
    }
}

impl FromSession {
    fn acknowledge(&mut self, from: u64) -> Result<(), TunnelError> {
        let read = from.checked_sub(self.acknowledged).and_then(|read| usize::try_from(read).ok());
        let read = read.filter(|read| *read <= self.unread.len()).ok_or(TunnelError::Gap(self.acknowledged))?;
        self.unread.advance(read);
        self.acknowledged = from;
        Ok(())
    }

    /// Waits for bytes. Returns false if none came in time.
    async fn read(&mut self, wait: Duration) -> Result<bool, TunnelError> {
        let Self { reader, unread, .. } = self;
        unread.reserve(WORK_BYTES);
        // Reading is safe to cancel: bytes are in the buffer, or still in the stream.
        match tokio::time::timeout(wait, reader.read_buf(unread)).await {
            Err(_) => Ok(false),
            Ok(Ok(count)) if count > 0 => Ok(true),
            Ok(_) => Err(TunnelError::Ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn tunnel() -> (Tunnel, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(WORK_BYTES);
        (Tunnel::new(ours), theirs)
    }

    async fn read(stream: &mut DuplexStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// Shows: W9
    #[tokio::test]
    async fn a_repeated_request_sends_only_what_is_new() {
        let (tunnel, mut session) = tunnel();
        tunnel.send(0, b"abc").await.unwrap();
        tunnel.send(0, b"abc").await.unwrap();
        tunnel.send(1, b"bcde").await.unwrap();
        assert_eq!(read(&mut session, 5).await, b"abcde");
    }

    /// Shows: W9
    #[tokio::test]
    async fn bytes_after_a_gap_are_refused() {
        let (tunnel, _session) = tunnel();
        tunnel.send(0, b"abc").await.unwrap();
        assert_eq!(tunnel.send(4, b"e").await, Err(TunnelError::Gap(3)));
    }

    /// Shows: W9
    #[tokio::test]
    async fn bytes_are_returned_until_they_are_acknowledged() {
        let (tunnel, mut session) = tunnel();
        session.write_all(b"abc").await.unwrap();
        assert_eq!(tunnel.receive(0, LONG).await.unwrap(), "abc");
        assert_eq!(tunnel.receive(0, LONG).await.unwrap(), "abc");
        session.write_all(b"d").await.unwrap();
        assert_eq!(tunnel.receive(2, LONG).await.unwrap(), "c");
        assert_eq!(tunnel.receive(3, LONG).await.unwrap(), "d");
        assert_eq!(tunnel.receive(2, LONG).await, Err(TunnelError::Gap(3)));
        assert_eq!(tunnel.receive(9, LONG).await, Err(TunnelError::Gap(3)));
    }

    /// Shows: W9
    #[tokio::test(start_paused = true)]
    async fn a_wait_without_bytes_returns_none() {
        let (tunnel, _session) = tunnel();
        assert!(tunnel.receive(0, LONG).await.unwrap().is_empty());
    }

    /// Shows: W9
    #[tokio::test]
    async fn the_last_bytes_are_read_before_the_end() {
        let (tunnel, mut session) = tunnel();
        session.write_all(b"bye").await.unwrap();
        drop(session);
        assert_eq!(tunnel.receive(0, LONG).await.unwrap(), "bye");
        assert_eq!(tunnel.receive(3, LONG).await, Err(TunnelError::Ended));
        assert_eq!(tunnel.send(0, b"x").await, Err(TunnelError::Ended));
    }
}
