//! The greeting: the first 64 octets that each side sends.

use super::error::{Error, Result, printable};
use super::mechanism::MechanismName;
use super::wire::output::Output;

/// The length of a greeting, in bytes.
pub(crate) const GREETING_BYTES: usize = 64;

/// The size of signature and version, with which a greeting begins. A peer that has them sends the
/// rest of its own greeting.
#[cfg(feature = "tokio")]
pub(crate) const GREETING_BEGINNING: usize = 12;

const SIGNATURE_START: u8 = 0xFF;
const SIGNATURE_END: u8 = 0x7F;
const MAJOR: u8 = 3;
const MINOR: u8 = 1;
const SIGNATURE_END_AT: usize = 9;
const MAJOR_AT: usize = 10;
const MINOR_AT: usize = 11;
const MECHANISM_AT: usize = 12;
const AS_SERVER_AT: usize = 32;

/// Writes the local greeting.
pub(crate) fn write(mechanism: MechanismName, as_server: bool, output: &mut Output) {
    let mut greeting = [0; GREETING_BYTES];
    greeting[0] = SIGNATURE_START;
    // Peers of ZMTP 1.0 read the padding as a length. libzmq writes the same value.
    greeting[SIGNATURE_END_AT - 1] = 1;
    greeting[SIGNATURE_END_AT] = SIGNATURE_END;
    greeting[MAJOR_AT] = MAJOR;
    greeting[MINOR_AT] = MINOR;
    greeting[MECHANISM_AT..AS_SERVER_AT].copy_from_slice(&mechanism.padded());
    greeting[AS_SERVER_AT] = u8::from(as_server);
    output.push_bytes(&greeting);
}

/// Reads as much of the peer's greeting as is there. Returns the peer's version once the greeting
/// is complete.
///
/// A peer that does not speak ZMTP 3 is rejected at the first octet that shows it. There is no
/// fallback to older protocols.
pub(crate) fn read(bytes: &[u8], mechanism: MechanismName, as_server: bool) -> Result<Option<(u8, u8)>> {
    check_signature(bytes)?;
    check_version(bytes)?;
    let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>() else { return Ok(None) };
    check_mechanism(greeting, mechanism)?;
    check_side(greeting, mechanism, as_server)?;
    Ok(Some((greeting[MAJOR_AT], greeting[MINOR_AT])))
}

fn check_signature(bytes: &[u8]) -> Result<()> {
    let is_wrong = |at: usize, expected: u8| bytes.get(at).is_some_and(|octet| *octet != expected);
    if is_wrong(0, SIGNATURE_START) || is_wrong(SIGNATURE_END_AT, SIGNATURE_END) {
        return Err(Error::version("the peer does not speak ZMTP 2 or later: its first octets are no signature"));
    }
    Ok(())
}

fn check_version(bytes: &[u8]) -> Result<()> {
    match bytes.get(MAJOR_AT) {
        // ZMTP 2.0 has revision 1 here.
        Some(&major) if major < MAJOR => Err(Error::version(format!(
            "the peer speaks an old ZMTP (revision {major}); it needs to speak 3.0 or later"
        ))),
        _ => Ok(()),
    }
}

fn check_mechanism(greeting: &[u8; GREETING_BYTES], mechanism: MechanismName) -> Result<()> {
    let theirs = &greeting[MECHANISM_AT..AS_SERVER_AT];
    if theirs == mechanism.padded() {
        return Ok(());
    }
    let name = printable(theirs.split(|octet| *octet == 0).next().unwrap_or_default());
    Err(Error::mechanism(format!(
        "the peer's mechanism is `{name}`, and the local one is {}; set the same on both sides",
        mechanism.as_str()
    )))
}

/// Rejects a peer that is a server too: two servers would wait for each other. A peer whose
/// `as-server` is 0 may still be a server, because libzmq never sets it.
fn check_side(greeting: &[u8; GREETING_BYTES], mechanism: MechanismName, as_server: bool) -> Result<()> {
    match greeting[AS_SERVER_AT] {
        // NULL has no sides.
        _ if mechanism == MechanismName::Null => Ok(()),
        1 if as_server => Err(both_sides("server", mechanism)),
        0 | 1 => Ok(()),
        _ => Err(Error::malformed("the peer's greeting says neither client nor server")),
    }
}

#[cold]
pub(crate) fn both_sides(side: &str, mechanism: MechanismName) -> Error {
    Error::mechanism(format!("both sides are the {side} of {}; one must be the other", mechanism.as_str()))
}
