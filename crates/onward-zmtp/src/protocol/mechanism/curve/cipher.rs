//! Frames on an established CURVE connection.

use std::fmt;

use bytes::{Buf, Bytes};
use crypto_box::SalsaBox;
use crypto_box::aead::AeadInPlace;
use crypto_box::aead::generic_array::GenericArray;

use super::boxes::{TAG_BYTES, array, cannot_open, seal_in_place, short_nonce};
use crate::protocol::error::{Error, Result};
use crate::protocol::wire::frame::{COMMAND, MORE};
use crate::protocol::wire::input::Body;
use crate::protocol::wire::output::Output;

const NAME: &[u8; 8] = b"\x07MESSAGE";
const NONCE_AT: usize = NAME.len();
const BOX_AT: usize = NONCE_AT + 8;
const FLAGS_AT: usize = BOX_AT + TAG_BYTES;
const PAYLOAD_AT: usize = FLAGS_AT + 1;

const BY_CLIENT: &[u8; 16] = b"CurveZMQMESSAGEC";
const BY_SERVER: &[u8; 16] = b"CurveZMQMESSAGES";

/// The cipher that encrypts sent frames and decrypts received ones. Every frame has a number, which
/// must grow.
pub(crate) struct Cipher {
    shared: SalsaBox,
    ours: &'static [u8; 16],
    theirs: &'static [u8; 16],
    sent: u64,
    received: u64,
}

/// A frame that was decrypted.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) more: bool,
    pub(crate) command: bool,
    pub(crate) payload: Bytes,
}

impl Cipher {
    /// The number of bytes by which an encrypted frame is longer than its payload.
    pub(crate) const OVERHEAD: usize = PAYLOAD_AT;

    pub(super) fn of_client(shared: SalsaBox, sent: u64, received: u64) -> Self {
        Self { shared, ours: BY_CLIENT, theirs: BY_SERVER, sent, received }
    }

    pub(super) fn of_server(shared: SalsaBox, sent: u64, received: u64) -> Self {
        Self { shared, ours: BY_SERVER, theirs: BY_CLIENT, sent, received }
    }

    /// Writes an encrypted frame. `flags` are those of the frame inside the box.
    pub(crate) fn seal(&mut self, flags: u8, payload: &[&[u8]], output: &mut Output) -> Result<()> {
        let number = next(&mut self.sent)?;
        let nonce = short_nonce(self.ours, number);
        let length = payload.iter().map(|part| part.len()).sum::<usize>();
        output.push_frame_with(PAYLOAD_AT + length, |frame| {
            frame[..NONCE_AT].copy_from_slice(NAME);
            frame[NONCE_AT..BOX_AT].copy_from_slice(&number.to_be_bytes());
            frame[FLAGS_AT] = flags;
            let mut rest = &mut frame[PAYLOAD_AT..];
            for part in payload {
                let (place, behind) = rest.split_at_mut(part.len());
                place.copy_from_slice(part);
                rest = behind;
            }
            seal_in_place(&self.shared, &nonce, &mut frame[BOX_AT..])
        })
    }

    /// Decrypts a frame. A frame in its own memory is decrypted in place.
    pub(crate) fn open(&mut self, body: Body<'_>) -> Result<Opened> {
        let header = body.as_slice();
        if header.len() < PAYLOAD_AT || header[..NONCE_AT] != NAME[..] {
            return Err(Error::malformed("the peer sent something that is not encrypted"));
        }
        let number = u64::from_be_bytes(array(header, NONCE_AT));
        let tag: [u8; TAG_BYTES] = array(header, BOX_AT);
        // The number may advance before the tag is checked, because a wrong tag ends the
        // connection.
        advance_to(&mut self.received, number)?;
        let nonce = short_nonce(self.theirs, number);
        let (mut buffer, text_at) = match body {
            Body::Owned(bytes) => (bytes, FLAGS_AT),
            other => (other.as_slice()[FLAGS_AT..].to_vec(), 0),
        };
        self.shared
            .decrypt_in_place_detached(
                GenericArray::from_slice(&nonce),
                &[],
                &mut buffer[text_at..],
                GenericArray::from_slice(&tag),
            )
            .map_err(|_| cannot_open("message"))?;
        opened(buffer, text_at)
    }
}

fn opened(buffer: Vec<u8>, text_at: usize) -> Result<Opened> {
    let flags = buffer[text_at];
    if flags & !(MORE | INNER_COMMAND) != 0 || flags == MORE | INNER_COMMAND {
        return Err(Error::malformed("the peer sent an encrypted frame with flags that do not exist"));
    }
    let mut payload = Bytes::from(buffer);
    payload.advance(text_at + 1);
    Ok(Opened { more: flags & MORE != 0, command: flags & INNER_COMMAND != 0, payload })
}

/// The flag of a command inside a box. It differs from [`COMMAND`] outside.
pub(crate) const INNER_COMMAND: u8 = 2;
const _: () = assert!(INNER_COMMAND != COMMAND);

/// Returns the next number of this side.
pub(super) fn next(sent: &mut u64) -> Result<u64> {
    *sent = sent
        .checked_add(1)
        .ok_or_else(|| Error::cryptographic("the numbers of this connection are used up; reconnect"))?;
    Ok(*sent)
}

/// Takes a number of the peer, which must be larger than all before.
pub(super) fn advance_to(received: &mut u64, number: u64) -> Result<()> {
    if number <= *received {
        return Err(Error::cryptographic("the peer sent a number that does not grow: something was sent again"));
    }
    *received = number;
    Ok(())
}

impl fmt::Debug for Cipher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cipher")
            .field("sent", &self.sent)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
