//! The received bytes that are not decoded yet.

use std::mem;

use bytes::buf::Limit;
use bytes::{BufMut, Bytes};
use zeroize::Zeroize;

use super::super::bounds::{
    BODY_STEP_BYTES, HANDSHAKE_BUFFER_BYTES, IDLE_READ_BUFFER_BYTES, LARGE_READ_BUFFER_BYTES, READ_BUFFER_BYTES,
    SHARED_PART,
};
use super::super::error::{Error, Result};
use super::frame::{Header, SHORT_MESSAGE};
#[cfg(feature = "tokio")]
use super::message_run::MessageRun;

/// The largest bodies of frames that this phase of the connection accepts, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameLimits {
    pub(crate) message: usize,
    pub(crate) command: usize,
    /// The size of a message's frame, in bytes, from which the frame may share the read buffer. A
    /// smaller frame is copied.
    pub(crate) share_from: usize,
}

/// A frame with its body, which is either still in the read buffer or in its own memory.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) more: bool,
    pub(crate) command: bool,
    pub(crate) body: Body<'a>,
}

/// The body of a frame.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// In the read buffer. Copy what is to be kept.
    Borrowed(&'a [u8]),
    /// A part of a former read buffer.
    Shared(Bytes),
    /// In an allocation that holds nothing else.
    Owned(Vec<u8>),
}

impl Body<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A read buffer, and the one large frame that is being received.
///
/// A frame that is small compared with the buffer waits in it until the frame is complete. A larger
/// frame gets its own allocation, and the rest of it is read directly into that. The allocation
/// grows with the bytes received and never with the announced length.
///
/// When a read has filled at least half of the buffer and has frames that are large enough to
/// share, the buffer becomes a chunk. Those frames become parts of the chunk, and the next read
/// gets a new buffer. A message therefore holds little more memory than what arrived with it, and a
/// message that arrives alone is copied. A peer that sends large frames among much else has all of
/// them copied.
///
/// Invariant: while there is a chunk, the buffer is empty.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    chunk: Bytes,
    /// The offset in the buffer, or in the chunk, of the first byte that is not decoded.
    start: usize,
    capacity: usize,
    large: Option<LargeFrame>,
    /// The bytes of frames in the buffer, or in the chunk, that were large enough to share.
    shareable: usize,
    /// Set if those frames made up at least half of the previous buffer.
    may_share: bool,
    /// Set if some of those frames are too small to share a buffer of [`LARGE_READ_BUFFER_BYTES`].
    is_half_enough: bool,
    /// The value of `len` at the last check.
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
        Self {
            buffer: Vec::new(),
            chunk: Bytes::new(),
            start: 0,
            capacity: HANDSHAKE_BUFFER_BYTES,
            large: None,
            shareable: 0,
            may_share: false,
            is_half_enough: false,
            seen: 0,
        }
    }

    /// Makes the buffer larger after the handshake. No byte received during the handshake stays in
    /// memory.
    pub(crate) fn grow(&mut self) {
        self.capacity = IDLE_READ_BUFFER_BYTES;
        // Most peers have sent nothing yet, and the buffer then takes no memory until they do.
        let buffer = self.peek().to_vec();
        self.buffer.zeroize();
        self.buffer = buffer;
        self.start = 0;
    }

    /// Returns the buffer for received bytes. It has no room while it is full of bytes that are not
    /// decoded.
    pub(crate) fn read_buf(&mut self) -> Limit<&mut Vec<u8>> {
        if self.large.is_none() {
            self.make_room();
        }
        let room = self.capacity - self.buffer.len();
        match &mut self.large {
            Some(large) => large.read_buf(),
            None => (&mut self.buffer).limit(room),
        }
    }

    /// Makes as much room as possible while it moves no more than one incomplete frame. There is
    /// none if the buffer is full of bytes that are not decoded.
    fn make_room(&mut self) {
        let is_scarce = self.buffer.len() > self.capacity / 2;
        if !self.chunk.is_empty() || self.start == self.buffer.len() || (self.start > 0 && is_scarce) {
            self.begin_buffer();
        }
        self.buffer.reserve_exact(self.capacity - self.buffer.len());
    }

    /// Starts the buffer again with the bytes that are not decoded. That is a part of one frame,
    /// unless the caller reads before it has taken all events.
    fn begin_buffer(&mut self) {
        let filled = self.buffer.len().max(self.chunk.len());
        self.may_share = mem::take(&mut self.shareable) >= filled / 2;
        self.adapt(filled);
        if self.chunk.is_empty() {
            compact(&mut self.buffer, self.start);
            self.buffer.shrink_to(self.capacity);
        } else {
            let chunk = mem::take(&mut self.chunk);
            self.buffer.reserve_exact(self.capacity);
            self.buffer.extend_from_slice(&chunk[self.start..]);
        }
        self.start = 0;
    }

    /// Gives a larger buffer to a peer that fills the buffer. The peer keeps the largest one as
    /// long as it fills at least half of it.
    ///
    /// The remaining bytes always fit. A buffer that is less than half full starts again only when
    /// nothing is left in it. A fuller buffer shrinks only if the remaining bytes fit.
    fn adapt(&mut self, filled: usize) {
        let is_half_enough = mem::take(&mut self.is_half_enough);
        if self.capacity < IDLE_READ_BUFFER_BYTES || filled == 0 {
            return;
        }
        if self.capacity == IDLE_READ_BUFFER_BYTES {
            if filled >= self.capacity {
                self.capacity = READ_BUFFER_BYTES;
            }
            return;
        }
        let half = LARGE_READ_BUFFER_BYTES / 2;
        self.capacity = if filled < READ_BUFFER_BYTES.max(self.capacity / 2) {
            READ_BUFFER_BYTES
        } else if is_half_enough && self.peek().len() <= half / LARGEST_OF_BUFFER {
            half
        } else {
            LARGE_READ_BUFFER_BYTES
        };
    }

    /// Releases the memory that only a busy peer needs. Nothing is waiting to be read.
    #[inline]
    pub(crate) fn shrink_idle(&mut self) {
        if self.can_shrink() {
            self.release();
        }
    }

    /// Returns whether [`shrink_idle`](Self::shrink_idle) would release memory.
    #[inline]
    pub(crate) fn can_shrink(&self) -> bool {
        self.capacity > IDLE_READ_BUFFER_BYTES && self.peek().is_empty()
    }

    #[cold]
    fn release(&mut self) {
        (self.buffer, self.chunk, self.start) = (Vec::new(), Bytes::new(), 0);
        self.capacity = IDLE_READ_BUFFER_BYTES;
    }

    /// Returns the bytes that are not decoded, without a large frame.
    #[inline]
    pub(crate) fn peek(&self) -> &[u8] {
        if self.chunk.is_empty() { &self.buffer[self.start..] } else { &self.chunk[self.start..] }
    }

    /// Drops bytes that were decoded.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count.min(self.peek().len());
    }

    fn len(&self) -> usize {
        self.peek().len() + self.large.as_ref().map_or(0, |large| large.body.len())
    }

    /// Returns whether all received bytes are decoded.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.large.is_none()
    }

    /// Returns whether bytes arrived since the last [`Input::mark_seen`]. The caller must call
    /// `mark_seen` after it decodes.
    pub(crate) fn has_grown(&self) -> bool {
        self.len() > self.seen
    }

    /// Marks the present bytes as seen.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.len();
    }

    /// Returns the next complete frame, or `None` while bytes of it are missing.
    pub(crate) fn next_frame(&mut self, limits: FrameLimits) -> Result<Option<Frame<'_>>> {
        if self.large.is_some() {
            return Ok(self.finish_large());
        }
        let received = self.peek();
        let available = received.len();
        let Some(header) = Header::parse(received)? else { return Ok(None) };
        let length = allowed(header, limits)?;
        let begin = self.start + header.length;
        if header.length.saturating_add(length) <= available {
            let is_shared = !header.command && length >= limits.share_from && self.may_share(length);
            self.start = begin + length;
            let body = if is_shared { self.share(begin) } else { Body::Borrowed(self.decoded(begin)) };
            return Ok(Some(Frame { more: header.more, command: header.command, body }));
        }
        if length > self.capacity / LARGEST_OF_BUFFER {
            self.begin_large(header, length);
        }
        Ok(None)
    }

    /// Passes the bodies of consecutive messages of one short frame, of at most `longest` bytes, to
    /// `take` until it returns `false`.
    #[inline]
    pub(crate) fn take_short_messages(&mut self, longest: usize, mut take: impl FnMut(&[u8]) -> bool) {
        if self.large.is_some() {
            return;
        }
        let received = self.peek();
        let mut rest = received;
        while let [SHORT_MESSAGE, length, behind @ ..] = rest {
            let length = usize::from(*length);
            let Some((body, next)) = behind.split_at_checked(length).filter(|_| length <= longest) else { break };
            rest = next;
            if !take(body) {
                break;
            }
        }
        self.start += received.len() - rest.len();
    }

    /// Returns whether the next bytes look like a message of one short frame.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn may_have_short_run(&self) -> bool {
        self.large.is_none() && self.peek().first() == Some(&SHORT_MESSAGE)
    }

    /// Adds such messages to a run. It stops when the run has no room, after `messages` messages,
    /// or once their payloads reach `bytes` bytes.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn take_short_run(&mut self, longest: usize, run: &mut MessageRun, messages: usize, bytes: usize) {
        if self.large.is_some() {
            return;
        }
        let received = self.peek();
        let (mut rest, mut count) = (received, 0);
        while let [SHORT_MESSAGE, length, behind @ ..] = rest {
            let taken = received.len() - rest.len();
            // Each message has a header of two octets, so `taken - 2 * count` is the payload so
            // far.
            if count == messages || taken - 2 * count >= bytes || taken >= run.room() {
                break;
            }
            let length = usize::from(*length);
            let Some(next) = behind.get(length..).filter(|_| length <= longest) else { break };
            rest = next;
            count += 1;
        }
        let taken = received.len() - rest.len();
        run.extend(&received[..taken], count);
        self.start += taken;
    }

    /// Returns the bytes decoded last, from `begin` on.
    fn decoded(&self, begin: usize) -> &[u8] {
        if self.chunk.is_empty() { &self.buffer[begin..self.start] } else { &self.chunk[begin..self.start] }
    }

    /// Returns whether a frame of this length may share the buffer. It then holds little more
    /// memory than itself and other such frames.
    fn may_share(&mut self, length: usize) -> bool {
        self.shareable += length;
        self.is_half_enough |= length < LARGE_READ_BUFFER_BYTES / SHARED_PART;
        self.may_share
            && length >= self.capacity / SHARED_PART
            && (!self.chunk.is_empty() || self.buffer.len() >= self.capacity / 2)
    }

    /// Returns the bytes decoded last, from `begin` on, as a part of the chunk.
    fn share(&mut self, begin: usize) -> Body<'static> {
        if self.chunk.is_empty() {
            self.chunk = Bytes::from(mem::take(&mut self.buffer));
        }
        Body::Shared(self.chunk.slice(begin..self.start))
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

/// The divisor of the buffer's capacity above which an incomplete frame gets its own allocation.
const LARGEST_OF_BUFFER: usize = 4;

/// Moves the bytes from `start` on to the front.
fn compact(buffer: &mut Vec<u8>, start: usize) {
    buffer.copy_within(start.., 0);
    buffer.truncate(buffer.len() - start);
}

/// Returns the length of a frame's body, or an error if it exceeds the limit.
fn allowed(header: Header, limits: FrameLimits) -> Result<usize> {
    let (what, limit) = if header.command { ("a command", limits.command) } else { ("a frame", limits.message) };
    match usize::try_from(header.body) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(Error::limit(what, header.body, "bytes", limit as u64)),
    }
}

#[cfg(test)]
#[cfg(feature = "tokio")]
mod tests {
    use super::*;

    const LIMITS: FrameLimits = FrameLimits { message: 100, command: 100, share_from: usize::MAX };

    /// Returns messages to be received in two pieces: short ones in a row, then a long one and a
    /// command between others.
    fn wire() -> Vec<u8> {
        let long = [&[2, 0, 0, 0, 0, 0, 0, 0, 3][..], b"two"].concat();
        [b"\x00\x03one\x00\x00", &long[..], b"\x00\x05three\x04\x02ab\x00\x04four\x00\x04five"].concat()
    }

    fn rest(input: &mut Input, seen: &mut Vec<Vec<u8>>) {
        while let Some(frame) = input.next_frame(LIMITS).unwrap() {
            seen.push(frame.body.as_slice().to_vec());
        }
    }

    #[test]
    fn a_run_and_single_frames_give_the_same_wherever_what_comes_is_cut() {
        let wire = wire();
        for (cut, messages) in (0..=wire.len()).flat_map(|cut| (1..4).map(move |messages| (cut, messages))) {
            let (mut one, mut other) = (Input::new(), Input::new());
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for piece in [&wire[..cut], &wire[cut..]] {
                one.read_buf().put_slice(piece);
                rest(&mut one, &mut expected);
                other.read_buf().put_slice(piece);
                let mut run = MessageRun::default();
                other.take_short_run(100, &mut run, messages, usize::MAX);
                assert!(run.messages() <= messages);
                found.extend(run.payloads().map(<[u8]>::to_vec));
                rest(&mut other, &mut found);
            }
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_run_ends_at_what_it_may_not_have() {
        let taken = |wire: &[u8], longest, messages, bytes| {
            let mut input = Input::new();
            input.read_buf().put_slice(wire);
            let mut run = MessageRun::default();
            input.take_short_run(longest, &mut run, messages, bytes);
            run.messages()
        };
        let wire = b"\x00\x01a\x00\x02bb\x00\x03ccc\x00\x04dd";
        assert_eq!(taken(wire, 100, 100, 100), 3, "the fourth is not complete");
        assert_eq!(taken(wire, 2, 100, 100), 2, "the third is too long");
        assert_eq!(taken(wire, 100, 2, 100), 2);
        assert_eq!(taken(wire, 100, 100, 3), 2, "one more may come while there are fewer bytes than that");
        assert_eq!(taken(wire, 100, 100, 4), 3);
    }
}
