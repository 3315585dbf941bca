//! Commands: a name, and data whose meaning depends on the name.

use bytes::Bytes;

use super::super::bounds::{ERROR_REASON_BYTES, PING_CONTEXT_BYTES};
use super::super::error::{Error, Result};

/// Splits the body of a command into its name and its data.
pub(crate) fn split(body: &[u8]) -> Result<(&[u8], &[u8])> {
    match take_short(body) {
        Some((name, data)) if !name.is_empty() => Ok((name, data)),
        _ => Err(Error::malformed("the peer sent a command whose name is longer than the command, or empty")),
    }
}

/// Splits the body of a command of the handshake into its name and its data.
///
/// libzmq's PLAIN server (seen in 4.3.4) writes `^RROR` where the length 5 and `ERROR` belong: in
/// C, the literal `"\x05ERROR"` begins with the octet 0x5E. Such a refusal must still be recognised
/// as an `ERROR`.
pub(crate) fn split_in_handshake(body: &[u8]) -> Result<(&[u8], &[u8])> {
    match body.strip_prefix(b"^RROR") {
        Some(data) => Ok((b"ERROR", data)),
        None => split(body),
    }
}

/// Takes a field with a length of one octet from the front of `bytes`.
pub(crate) fn take_short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

/// Appends a field with a length of one octet. A field longer than 255 bytes is cut, but callers
/// have checked the length.
pub(crate) fn push_short(buffer: &mut Vec<u8>, field: &[u8]) {
    let field = &field[..field.len().min(usize::from(u8::MAX))];
    buffer.push(field.len() as u8);
    buffer.extend_from_slice(field);
}

/// A `PING`: the sender's time to live, and the context that the sender wants back. The receiver
/// gives the sender up after this much silence, in tenths of a second. 0 means never.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ping<'a> {
    pub(crate) ttl: u16,
    pub(crate) context: &'a [u8],
}

impl<'a> Ping<'a> {
    pub(crate) fn parse(data: &'a [u8]) -> Result<Self> {
        let Some((ttl, context)) = data.split_first_chunk::<2>() else {
            return Err(Error::malformed("the peer sent a PING without a time to live"));
        };
        if context.len() > PING_CONTEXT_BYTES {
            return Err(Error::malformed("the peer sent a PING with more than 16 octets of context"));
        }
        Ok(Self { ttl: u16::from_be_bytes(*ttl), context })
    }
}

/// Returns the data of a `PING` to send.
pub(crate) fn ping_data(ttl: u16, context: &Bytes) -> Vec<u8> {
    [&ttl.to_be_bytes()[..], context].concat()
}

/// Returns the data of an `ERROR` with this reason. A reason that is too long is cut at a whole
/// character.
pub(crate) fn error_data(reason: &str) -> Vec<u8> {
    let mut data = Vec::new();
    push_short(&mut data, &reason.as_bytes()[..reason.floor_char_boundary(ERROR_REASON_BYTES)]);
    data
}

/// Returns the meaning of a status code of ZAP (RFC 27), which libzmq sends without a text.
fn meaning(reason: &[u8]) -> &'static str {
    match reason {
        b"300" => " (it cannot check the credentials now)",
        b"400" => " (it does not accept the user name, the password or the key)",
        b"500" => " (it failed to check the credentials)",
        _ => "",
    }
}

/// Returns the error that ends the connection for the reason in the peer's `ERROR`.
pub(crate) fn error_from_peer(data: &[u8]) -> Error {
    match take_short(data) {
        Some((reason, [])) => Error::peer_error(format!(
            "the peer refused the connection: {}{}",
            super::super::error::printable(reason),
            meaning(reason)
        )),
        _ => Error::malformed("the peer sent an ERROR that is malformed"),
    }
}
