//! The header of a frame.

use super::super::error::{Error, Result};

/// The flag that more frames of the same message follow.
pub(crate) const MORE: u8 = 1;
/// The flag that the length takes eight octets.
const LONG: u8 = 2;
/// The flag that the frame is a command.
pub(crate) const COMMAND: u8 = 4;

/// The flags of a short frame that is a message of its own.
pub(crate) const SHORT_MESSAGE: u8 = 0;

/// The longest body whose length fits in one octet.
pub(crate) const SHORT_BODY: usize = 255;
/// The longest body that the protocol allows.
const LONGEST_BODY: u64 = i64::MAX as u64;

/// The header of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) more: bool,
    pub(crate) command: bool,
    /// The length that the peer announces, in bytes. No memory may be reserved for it.
    pub(crate) body: u64,
    /// The length of the header itself, in bytes.
    pub(crate) length: usize,
}

impl Header {
    /// Reads a header. Returns `None` while bytes of it are missing.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let Some((&flags, rest)) = bytes.split_first() else { return Ok(None) };
        check(flags)?;
        let (body, length) = if flags & LONG == 0 {
            let Some(&body) = rest.first() else { return Ok(None) };
            (u64::from(body), 2)
        } else {
            let Some(body) = rest.first_chunk::<8>() else { return Ok(None) };
            (u64::from_be_bytes(*body), 9)
        };
        if body > LONGEST_BODY {
            return Err(Error::malformed("the peer announced a frame longer than the protocol allows"));
        }
        Ok(Some(Self { more: flags & MORE != 0, command: flags & COMMAND != 0, body, length }))
    }

    /// Writes the header of a frame with a body of this length, in the short form where it
    /// suffices.
    #[inline]
    pub(crate) fn write(flags: u8, body: usize, output: &mut Vec<u8>) {
        if body <= SHORT_BODY {
            output.extend_from_slice(&[flags, body as u8]);
        } else {
            let mut header = [flags | LONG, 0, 0, 0, 0, 0, 0, 0, 0];
            header[1..].copy_from_slice(&(body as u64).to_be_bytes());
            output.extend_from_slice(&header);
        }
    }
}

fn check(flags: u8) -> Result<()> {
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(Error::malformed("the peer sent a frame with reserved flags"));
    }
    if flags & COMMAND != 0 && flags & MORE != 0 {
        return Err(Error::malformed("the peer sent a command in several frames"));
    }
    Ok(())
}
