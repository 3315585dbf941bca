//! Headers: JSON objects with a type.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::bounds;
use crate::error::{Code, Error, Result};

/// The fields that every header may have.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    payloads: Option<u64>,
}

/// A header that has been checked as such.
pub(crate) struct Header<'a> {
    /// The type of the message.
    pub(crate) kind: Cow<'a, str>,
    bytes: &'a [u8],
    /// The number of payloads.
    pub(crate) payloads: usize,
}

impl<'a> Header<'a> {
    /// Reads the header of a message and checks the number of its payloads.
    pub(crate) fn read(frames: &'a [Bytes]) -> Result<Self> {
        let Some((bytes, payloads)) = frames.split_first() else {
            return Err(Error::new(Code::BadHeader, "a message has no frame"));
        };
        if depth(bytes) > bounds::HEADER_DEPTH {
            let text = format!("the header is nested more than {} deep", bounds::HEADER_DEPTH);
            return Err(Error::new(Code::BadHeader, text));
        }
        let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let envelope: Envelope<'a> = match serde_json::from_slice(bytes) {
            Ok(envelope) if is_object => envelope,
            Ok(_) => return Err(Error::new(Code::BadHeader, "the header is not a JSON object")),
            Err(error) if is_object && has_invalid_payloads(bytes) => {
                return Err(Error::new(Code::PayloadCount, format!("`payloads` is no count: {error}")));
            }
            Err(error) => return Err(Error::new(Code::BadHeader, format!("the header cannot be read: {error}"))),
        };
        let announced = envelope.payloads.unwrap_or(0);
        if announced != payloads.len() as u64 {
            let text = format!("`payloads` is {announced}, and {} came", payloads.len());
            return Err(Error::new(Code::PayloadCount, text));
        }
        Ok(Self { kind: envelope.t, bytes, payloads: payloads.len() })
    }

    /// Reads the fields of the message.
    pub(crate) fn fields<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(self.bytes).map_err(|error| Error::field(format!("`{}`: {error}", self.kind)))
    }
}

/// Returns true if a header is a JSON object with a type, so that only `payloads` can be at fault.
fn has_invalid_payloads(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "t")]
        _t: Cow<'a, str>,
    }
    serde_json::from_slice::<Typed<'_>>(bytes).is_ok()
}

/// Returns the depth of arrays and objects in a JSON text, which may be malformed. It is counted
/// before the text is parsed, because parsers recurse.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Checks the length of a list.
pub(crate) fn at_most(field: &str, length: usize, most: usize) -> Result<()> {
    if length <= most {
        return Ok(());
    }
    Err(Error::new(Code::TooMany, format!("`{field}` has {length} entries, and {most} are allowed")))
}

/// Checks that a list is neither empty nor longer than [`bounds::ENTRIES`].
pub(crate) fn entries(field: &str, length: usize) -> Result<()> {
    if length == 0 {
        return Err(Error::field(format!("`{field}` is empty; send at least one entry")));
    }
    at_most(field, length, bounds::ENTRIES)
}

/// Checks the range of an integer.
pub(crate) fn within(field: &str, value: Option<u64>, least: u64, most: u64) -> Result<()> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(Error::field(format!("`{field}` is {value}; it must be from {least} to {most}")))
        }
        _ => Ok(()),
    }
}

/// Checks the length of a string.
pub(crate) fn text(field: &str, value: Option<&str>, least: usize, most: usize) -> Result<()> {
    match value {
        Some(value) if !(least..=most).contains(&value.len()) => {
            Err(Error::field(format!("`{field}` has {} bytes; it must have {least} to {most}", value.len())))
        }
        _ => Ok(()),
    }
}

/// Checks a name.
pub(crate) fn name(field: &str, value: Option<&str>) -> Result<()> {
    text(field, value, 1, bounds::NAME_BYTES)
}

/// Checks a payload index.
pub(crate) fn index(field: &str, value: Option<usize>, payloads: usize) -> Result<()> {
    match value {
        Some(value) if value >= payloads => {
            Err(Error::field(format!("`{field}` is the payload {value}, and the message has {payloads}")))
        }
        _ => Ok(()),
    }
}

/// Returns a message as frames: a header, and its payloads.
///
/// # Errors
///
/// Returns the error of serde if the header cannot be written as JSON.
pub fn write_message<T: serde::Serialize>(header: &T, payloads: Vec<Bytes>) -> serde_json::Result<Vec<Bytes>> {
    let mut frames = Vec::with_capacity(payloads.len() + 1);
    frames.push(Bytes::from(serde_json::to_vec(header)?));
    frames.extend(payloads);
    Ok(frames)
}

/// Returns the error for a type that this version does not know. A long type is cut.
pub(crate) fn unsupported(kind: &str) -> Error {
    let shown: String = kind.chars().take(64).collect();
    Error::new(Code::Unsupported, format!("the type `{shown}` is unknown"))
}
