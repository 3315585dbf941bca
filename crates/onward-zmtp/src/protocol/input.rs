//! What was received and is not decoded yet.

use bytes::BufMut;
use bytes::buf::Limit;
use zeroize::Zeroize;

use super::error::{Error, Result};
use super::frame::Header;
use super::limits::{BODY_STEP_BYTES, HANDSHAKE_BUFFER_BYTES, READ_BUFFER_BYTES};

/// How large frames may be at this stage, in bytes of their bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameLimits {
    pub(crate) message: usize,
    pub(crate) command: usize,
}

/// A frame with its body, either still in the read buffer or in memory of its own.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) more: bool,
    pub(crate) command: bool,
    pub(crate) body: Body<'a>,
}

/// The body of a frame.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// In the read buffer: copy what is to be kept.
    Borrowed(&'a [u8]),
    /// In an allocation that holds nothing else.
    Owned(Vec<u8>),
}

impl Body<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A read buffer of fixed size, and beside it the one large frame that is being received.
///
/// A frame that is small compared with the buffer waits in it until it is complete. A larger one gets an allocation of its own, into
/// which the rest of it is read directly; that allocation grows with what was received and never with the announced length.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    /// Where in `buffer` what is not decoded begins.
    start: usize,
    capacity: usize,
    large: Option<LargeFrame>,
    /// What `len` was when it was last looked at.
    seen: usize,
}

#[derive(Debug)]
struct LargeFrame {
    header: Header,
    body: Vec<u8>,
    length: usize,
}

impl LargeFrame {
    fn missing(&self) -> usize {
        self.length - self.body.len()
    }

    fn read_buf(&mut self) -> Limit<&mut Vec<u8>> {
        let missing = self.missing();
        if self.body.len() == self.body.capacity() {
            self.body.reserve_exact(missing.min(self.body.len().max(BODY_STEP_BYTES)));
        }
        let room = missing.min(self.body.capacity() - self.body.len());
        (&mut self.body).limit(room)
    }
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::new(), start: 0, capacity: HANDSHAKE_BUFFER_BYTES, large: None, seen: 0 }
    }

    /// The handshake is over: a larger buffer from now on, and nothing of what was received so far stays in memory.
    pub(crate) fn grow(&mut self) {
        self.capacity = READ_BUFFER_BYTES;
        let mut buffer = Vec::with_capacity(self.capacity);
        buffer.extend_from_slice(self.peek());
        self.buffer.zeroize();
        self.buffer = buffer;
        self.start = 0;
    }

    /// Where received bytes go. Has no room while what was received before is not decoded.
    pub(crate) fn read_buf(&mut self) -> Limit<&mut Vec<u8>> {
        if let Some(large) = &mut self.large {
            return large.read_buf();
        }
        compact(&mut self.buffer, &mut self.start, self.capacity);
        let room = self.capacity - self.buffer.len();
        self.buffer.reserve_exact(room);
        (&mut self.buffer).limit(room)
    }

    /// What is not decoded, apart from a large frame.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Drops bytes that were decoded.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.buffer.len());
    }

    fn len(&self) -> usize {
        self.buffer.len() - self.start + self.large.as_ref().map_or(0, |large| large.body.len())
    }

    /// Whether nothing was received that is not decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.large.is_none()
    }

    /// Whether anything came since this was last asked. Decoding in between must end with [`Input::mark`].
    pub(crate) fn has_grown(&self) -> bool {
        self.len() > self.seen
    }

    /// What is there now has been seen.
    pub(crate) fn mark(&mut self) {
        self.seen = self.len();
    }

    /// The next complete frame, or `None` while bytes of it are missing.
    pub(crate) fn next_frame(&mut self, limits: FrameLimits) -> Result<Option<Frame<'_>>> {
        if self.large.is_some() {
            return Ok(self.finish_large());
        }
        let Some(header) = Header::parse(self.peek())? else { return Ok(None) };
        let length = allowed(header, limits)?;
        let begin = self.start + header.length;
        let end = begin.saturating_add(length);
        if end <= self.buffer.len() {
            self.start = end;
            let body = Body::Borrowed(&self.buffer[begin..end]);
            return Ok(Some(Frame { more: header.more, command: header.command, body }));
        }
        if length > self.capacity / 8 {
            self.begin_large(header, length);
        }
        Ok(None)
    }

    fn begin_large(&mut self, header: Header, length: usize) {
        self.consume(header.length);
        let received = self.peek();
        let mut body = Vec::with_capacity(length.min(received.len().saturating_mul(2).max(BODY_STEP_BYTES)));
        body.extend_from_slice(received);
        self.consume(body.len());
        self.large = Some(LargeFrame { header, body, length });
    }

    fn finish_large(&mut self) -> Option<Frame<'static>> {
        let large = self.large.take_if(|large| large.missing() == 0)?;
        Some(Frame { more: large.header.more, command: large.header.command, body: Body::Owned(large.body) })
    }
}

/// Makes room by moving what is not decoded to the front, once that is worth it.
fn compact(buffer: &mut Vec<u8>, start: &mut usize, capacity: usize) {
    if *start == buffer.len() {
        buffer.clear();
        *start = 0;
    } else if *start > 0 && capacity - buffer.len() < capacity / 2 {
        buffer.copy_within(*start.., 0);
        buffer.truncate(buffer.len() - *start);
        *start = 0;
    }
}

/// The length of a frame's body, if it may be that long.
fn allowed(header: Header, limits: FrameLimits) -> Result<usize> {
    let (what, limit) = if header.command { ("a command", limits.command) } else { ("a frame", limits.message) };
    match usize::try_from(header.body) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(Error::limit(what, header.body, limit as u64)),
    }
}
