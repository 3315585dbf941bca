//! What was received and is not decoded yet.

use std::mem;

use bytes::buf::Limit;
use bytes::{BufMut, Bytes};
use zeroize::Zeroize;

use super::error::{Error, Result};
use super::frame::{Header, SHORT_MESSAGE};
use super::limits::{BODY_STEP_BYTES, HANDSHAKE_BUFFER_BYTES, LARGE_READ_BUFFER_BYTES, READ_BUFFER_BYTES, SHARED_PART};
#[cfg(feature = "tokio")]
use super::run::Run;

/// How large frames may be at this stage, in bytes of their bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameLimits {
    pub(crate) message: usize,
    pub(crate) command: usize,
    /// From which size on a message's frame is worth it to be shared with the read buffer in place
    /// of being copied.
    pub(crate) share_from: usize,
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
    /// A part of what was the read buffer.
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

/// A read buffer, and beside it the one large frame that is being received.
///
/// A frame that is small compared with the buffer waits in it until it is complete. A larger one
/// gets an allocation of its own, into which the rest of it is read directly; that allocation grows
/// with what was received and never with the announced length.
///
/// Once a read has filled at least half of the buffer and has frames that are worth it, the buffer
/// becomes a chunk, of which those frames are parts, and the next read has a new buffer. So a
/// message pins hardly more than what came with it; and one that comes alone is copied and pins
/// nothing. A peer that sends large frames among much else has all of them copied.
///
/// Invariant: while there is a chunk, the buffer is empty.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    chunk: Bytes,
    /// Where in the buffer, or in the chunk, what is not decoded begins.
    start: usize,
    capacity: usize,
    large: Option<LargeFrame>,
    /// How many bytes of the buffer, or of the chunk, were frames that are worth it, so far.
    worth_it: usize,
    /// Whether that was at least half of the buffer before.
    may_share: bool,
    /// Whether some of them are too small to be parts of a buffer of [`LARGE_READ_BUFFER_BYTES`].
    is_half_enough: bool,
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
        Self {
            buffer: Vec::new(),
            chunk: Bytes::new(),
            start: 0,
            capacity: HANDSHAKE_BUFFER_BYTES,
            large: None,
            worth_it: 0,
            may_share: false,
            is_half_enough: false,
            seen: 0,
        }
    }

    /// The handshake is over: a larger buffer from now on, and nothing of what was received so far
    /// stays in memory.
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
        if self.large.is_none() {
            self.make_room();
        }
        let room = self.capacity - self.buffer.len();
        match &mut self.large {
            Some(large) => large.read_buf(),
            None => (&mut self.buffer).limit(room),
        }
    }

    /// As much room as there can be without moving more than a frame that waits for its end; none
    /// where the buffer is full of what is not decoded.
    fn make_room(&mut self) {
        let is_scarce = self.buffer.len() > self.capacity / 2;
        if !self.chunk.is_empty() || self.start == self.buffer.len() || (self.start > 0 && is_scarce) {
            self.begin_buffer();
        }
        self.buffer.reserve_exact(self.capacity - self.buffer.len());
    }

    /// Begins the buffer anew with what is not decoded: a part of a frame, unless the caller reads
    /// before it has taken all events.
    fn begin_buffer(&mut self) {
        let filled = self.buffer.len().max(self.chunk.len());
        self.may_share = mem::take(&mut self.worth_it) >= filled / 2;
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

    /// A peer that fills the buffer gets a large one, for as long as it fills at least half of
    /// that.
    ///
    /// What is left always fits: what is less than half full is begun anew only when nothing is
    /// left in it, and what is fuller becomes smaller only for as much as may wait there.
    fn adapt(&mut self, filled: usize) {
        let is_half_enough = mem::take(&mut self.is_half_enough);
        if self.capacity < READ_BUFFER_BYTES || filled == 0 {
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

    /// There is nothing to be read: what only a busy peer needs is given back.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.has_memory_to_spare() {
            self.give_back();
        }
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn has_memory_to_spare(&self) -> bool {
        self.capacity > READ_BUFFER_BYTES && self.peek().is_empty()
    }

    #[cold]
    fn give_back(&mut self) {
        (self.buffer, self.chunk, self.start) = (Vec::new(), Bytes::new(), 0);
        self.capacity = READ_BUFFER_BYTES;
    }

    /// What is not decoded, apart from a large frame.
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

    /// Whether nothing was received that is not decoded.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.large.is_none()
    }

    /// Whether anything came since this was last asked. Decoding in between must end with
    /// [`Input::mark`].
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

    /// Gives out the bodies of messages of one short frame of at most `longest` bytes, for as long
    /// as such are at the front and `take` wants more.
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

    /// Whether what is next looks like such a message.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn may_have_short_run(&self) -> bool {
        self.large.is_none() && self.peek().first() == Some(&SHORT_MESSAGE)
    }

    /// Adds such messages to a run, for as long as there is room in it, there are at most so many
    /// and their payloads before the last one are fewer bytes.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn take_short_run(&mut self, longest: usize, run: &mut Run, messages: usize, bytes: usize) {
        if self.large.is_some() {
            return;
        }
        let received = self.peek();
        let (mut rest, mut count) = (received, 0);
        while let [SHORT_MESSAGE, length, behind @ ..] = rest {
            let taken = received.len() - rest.len();
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

    /// What was decoded last, from `begin` on.
    fn decoded(&self, begin: usize) -> &[u8] {
        if self.chunk.is_empty() { &self.buffer[begin..self.start] } else { &self.chunk[begin..self.start] }
    }

    /// Whether a frame of this length, which is worth it, would pin not much more than itself and
    /// others like it.
    fn may_share(&mut self, length: usize) -> bool {
        self.worth_it += length;
        self.is_half_enough |= length < LARGE_READ_BUFFER_BYTES / SHARED_PART;
        self.may_share
            && length >= self.capacity / SHARED_PART
            && (!self.chunk.is_empty() || self.buffer.len() >= self.capacity / 2)
    }

    /// What was decoded last, from `begin` on, as a part of the chunk.
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

/// A frame that is larger than this part of the buffer and not complete gets an allocation of its
/// own.
const LARGEST_OF_BUFFER: usize = 4;

/// Moves what begins at `start` to the front.
fn compact(buffer: &mut Vec<u8>, start: usize) {
    buffer.copy_within(start.., 0);
    buffer.truncate(buffer.len() - start);
}

/// The length of a frame's body, if it may be that long.
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

    /// Messages that come in two pieces: short ones in a row, a long one and a command between
    /// them.
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
                let mut run = Run::default();
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
            let mut run = Run::default();
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
