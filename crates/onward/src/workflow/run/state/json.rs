//! Results and payloads as bytes, which are parsed once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

use crate::workflow::expression::Value;

/// Bytes that are JSON, or else stand for a text. A clone shares the bytes and the parsed value.
#[derive(Clone)]
pub(crate) struct Json(Arc<Parsed>);

struct Parsed {
    bytes: Bytes,
    value: OnceLock<Value>,
}

impl Json {
    /// Creates the value of these bytes.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(Arc::new(Parsed { bytes, value: OnceLock::new() }))
    }

    /// Creates the bytes of a value.
    pub(in crate::workflow::run) fn of(value: Value) -> Self {
        let bytes = written(&value);
        Self(Arc::new(Parsed { bytes, value: value.into() }))
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> &Value {
        self.0.value.get_or_init(|| parsed(&self.0.bytes))
    }
}

/// Writes a value as JSON.
pub(in crate::workflow::run) fn written(value: &Value) -> Bytes {
    // Every value can be written: it is finite, and its keys are texts.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Parses bytes as JSON. Other bytes are a text, in which U+FFFD replaces what is not UTF-8.
pub(in crate::workflow::run) fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::from(&*String::from_utf8_lossy(bytes)))
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.0.bytes, f)
    }
}

impl<C> Encode<C> for Json {
    fn encode<W: encode::Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.0.bytes)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Json {
    fn decode(d: &mut Decoder<'b>, context: &mut C) -> Result<Self, decode::Error> {
        let bytes: &ByteSlice = Decode::decode(d, context)?;
        Ok(Self::new(Bytes::copy_from_slice(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_json_are_a_text() {
        let texts = [&b"{\"a\":1"[..], b"", b"a\0b", b"\xff"].map(|bytes| parsed(bytes).as_text().map(str::to_owned));
        assert_eq!(texts, ["{\"a\":1", "", "a\0b", "\u{fffd}"].map(|text| Some(text.to_owned())));
        assert_eq!(parsed(b" null "), Value::Null);
    }
}
