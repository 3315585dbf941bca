//! Assembles frames into messages.

use bytes::Bytes;

use super::super::error::{Error, Result};
use super::super::limits::Limits;
use super::super::message::Message;

/// The message that is being received.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    partial: Message,
    bytes: usize,
}

impl Assembler {
    /// Adds a frame and returns the message if the frame was the last.
    #[inline]
    pub(crate) fn push(&mut self, frame: Bytes, more: bool, limits: &Limits) -> Result<Option<Message>> {
        self.bytes = self.bytes.saturating_add(frame.len());
        if self.bytes > limits.message_bytes {
            return Err(Error::limit("a message", self.bytes as u64, "bytes", limits.message_bytes as u64));
        }
        let parts = self.partial.len() + 1;
        if parts > limits.message_parts {
            return Err(Error::limit("a message", parts as u64, "parts", limits.message_parts as u64));
        }
        self.partial.push(frame);
        if more {
            return Ok(None);
        }
        self.bytes = 0;
        Ok(Some(std::mem::take(&mut self.partial)))
    }

    /// Returns the largest size that the next frame may have, in bytes.
    pub(crate) fn room(&self, limits: &Limits) -> usize {
        limits.frame_bytes.min(limits.message_bytes.saturating_sub(self.bytes))
    }

    /// Returns whether a message is incomplete.
    pub(crate) fn is_incomplete(&self) -> bool {
        !self.partial.is_empty()
    }
}
