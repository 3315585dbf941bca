//! The largest message that a socket sends.

use bytes::Bytes;

use crate::protocol::{Limits, Message};
use crate::socket::error::{Error, Result};

/// The bounds that every message is checked against before it is queued.
pub(in crate::socket) struct SendLimits {
    /// The largest size of a message of one frame, in bytes.
    single_frame_bytes: usize,
    limits: Limits,
}

impl SendLimits {
    /// Returns the bounds for `limits`.
    pub(in crate::socket) fn new(limits: Limits) -> Self {
        Self { single_frame_bytes: limits.frame_bytes.min(limits.message_bytes), limits }
    }

    /// Returns true if a message of this frame alone may be sent.
    #[inline]
    pub(in crate::socket) fn allow_single(&self, frame: &Bytes) -> bool {
        frame.len() <= self.single_frame_bytes
    }

    /// Returns true if the message may be sent as it is.
    #[inline]
    pub(in crate::socket) fn allow(&self, message: &Message) -> bool {
        match message.frames() {
            [frame] => self.allow_single(frame),
            frames => self.check(frames).is_ok(),
        }
    }

    /// Returns an error if a message of these frames is larger than the socket may send.
    pub(in crate::socket) fn check(&self, frames: &[Bytes]) -> Result<()> {
        let Limits { message_parts, message_bytes, frame_bytes, .. } = self.limits;
        // A message of one frame is always allowed, even if the limit is zero.
        if frames.len() > message_parts.max(1) {
            return Err(too_large("message_parts", "a message", frames.len(), "parts", message_parts));
        }
        if let Some(frame) = frames.iter().find(|frame| frame.len() > frame_bytes) {
            return Err(too_large("frame_bytes", "a frame", frame.len(), "bytes", frame_bytes));
        }
        let bytes: usize = frames.iter().map(Bytes::len).sum();
        if bytes > message_bytes {
            return Err(too_large("message_bytes", "a message", bytes, "bytes", message_bytes));
        }
        Ok(())
    }
}

#[cold]
fn too_large(bound: &str, what: &str, found: usize, unit: &str, limit: usize) -> Error {
    Error::limit(format!(
        "{what} of {found} {unit} is not sent; the bound is {limit}: raise `{bound}` with `SocketOptions::send_limits` here, \
         and with `SocketOptions::limits` at the peer"
    ))
}
