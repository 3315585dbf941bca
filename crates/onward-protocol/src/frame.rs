//! Frames: bytes to messages, and messages to bytes.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::bounds;
use crate::error::{Code, Error, Result};

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The bounds of the messages of one peer, which `welcome` may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload in bytes. Before `welcome` no payload is allowed: zero.
    pub payload: usize,
}

/// The frames of a message that have come so far.
#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    frames: usize,
    payload_bytes: u64,
}

impl Limits {
    /// Admits the next frame of a message, whose length the peer announced as `length`.
    fn admit(self, progress: &mut Progress, length: u64) -> Result<()> {
        let header = bounds::HEADER_BYTES;
        if progress.frames == 0 && length > header as u64 {
            let text = format!("a header has {length} bytes, and {header} are allowed");
            return Err(Error::new(Code::HeaderTooLarge, text));
        }
        if progress.frames > 0 {
            self.admit_payload(progress, length)?;
        }
        progress.frames += 1;
        Ok(())
    }

    fn admit_payload(self, progress: &mut Progress, length: u64) -> Result<()> {
        if progress.frames > bounds::PAYLOADS {
            let text = format!("a message has more than {} payloads", bounds::PAYLOADS);
            return Err(Error::new(Code::TooMany, text));
        }
        if length > self.payload as u64 {
            let text = format!("a payload has {length} bytes, and {} are allowed", self.payload);
            return Err(Error::new(Code::PayloadTooLarge, text));
        }
        progress.payload_bytes = progress.payload_bytes.saturating_add(length);
        let together = bounds::MESSAGE_PAYLOAD_BYTES;
        // A single payload may have any allowed size, also above the bound for all together.
        if progress.frames > 1 && progress.payload_bytes > together as u64 {
            let text = format!("the payloads of a message have more than {together} bytes together");
            return Err(Error::new(Code::PayloadTooLarge, text));
        }
        Ok(())
    }

    /// Checks a message whose frames a carrier has already split.
    ///
    /// # Errors
    /// Returns the first bound that the message exceeds.
    pub fn check(self, frames: &[Bytes]) -> Result<()> {
        let mut progress = Progress::default();
        frames.iter().try_for_each(|frame| self.admit(&mut progress, frame.len() as u64))
    }
}

/// Splits the bytes of one peer into messages.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    bytes: BytesMut,
    /// The complete frames of an incomplete message.
    frames: Vec<Bytes>,
    progress: Progress,
    /// The frame whose body is awaited: its length, and whether another follows.
    awaited: Option<(usize, bool)>,
}

impl Decoder {
    /// Creates a decoder within limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, bytes: BytesMut::new(), frames: Vec::new(), progress: Progress::default(), awaited: None }
    }

    /// Sets the limits of the frames that come from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns the buffer to which received bytes are appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Returns true if the bytes so far end within a message.
    #[must_use]
    pub fn is_within_message(&self) -> bool {
        !self.bytes.is_empty() || !self.frames.is_empty() || self.awaited.is_some()
    }

    /// Returns the next complete message, or `None` while bytes of it are missing.
    ///
    /// # Errors
    /// Returns the first violation. Later bytes have no meaning after it.
    pub fn next_message(&mut self) -> Result<Option<Vec<Bytes>>> {
        loop {
            let (length, more) = match self.awaited {
                Some(awaited) => awaited,
                None => match self.next_header()? {
                    Some(awaited) => awaited,
                    None => return Ok(None),
                },
            };
            self.awaited = Some((length, more));
            if self.bytes.len() < length {
                return Ok(None);
            }
            self.awaited = None;
            self.frames.push(self.bytes.split_to(length).freeze());
            if !more {
                self.progress = Progress::default();
                return Ok(Some(std::mem::take(&mut self.frames)));
            }
        }
    }

    /// Reads the flags and the length of the next frame.
    fn next_header(&mut self) -> Result<Option<(usize, bool)>> {
        let Some(&flags) = self.bytes.first() else { return Ok(None) };
        if flags & COMMAND != 0 {
            return Err(Error::new(Code::BadFrame, "a frame is a command, which this carrier does not have"));
        }
        if flags & !(MORE | LONG) != 0 {
            return Err(Error::new(Code::BadFrame, format!("a frame has reserved flags: {flags:#04x}")));
        }
        let (size, length) = if flags & LONG == 0 {
            (2, self.bytes.get(1).map(|length| u64::from(*length)))
        } else {
            (9, self.bytes.get(1..).and_then(|rest| rest.first_chunk::<8>()).map(|length| u64::from_be_bytes(*length)))
        };
        let Some(length) = length else { return Ok(None) };
        self.limits.admit(&mut self.progress, length)?;
        self.bytes.advance(size);
        // Within a limit that is a `usize`, so the conversion keeps the value.
        Ok(Some((usize::try_from(length).unwrap_or(usize::MAX), flags & MORE != 0)))
    }
}

/// Appends a message to `output`. A message without frames writes nothing.
pub fn encode(frames: &[Bytes], output: &mut BytesMut) {
    for (at, body) in frames.iter().enumerate() {
        let more = if at + 1 < frames.len() { MORE } else { 0 };
        if let Ok(short) = u8::try_from(body.len()) {
            output.put_slice(&[more, short]);
        } else {
            output.put_u8(more | LONG);
            output.put_u64(body.len() as u64);
        }
        output.put_slice(body);
    }
}
