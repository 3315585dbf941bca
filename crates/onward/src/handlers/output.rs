//! The result of a handler that succeeded.

use bytes::Bytes;

/// The result of a successful attempt: nothing, or bytes that the store keeps with the task.
///
/// A result larger than the store's payload limit is a permanent failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output(pub(crate) Option<Bytes>);

impl Output {
    /// No result.
    pub const NONE: Self = Self(None);

    /// Returns the bytes, if there is a result.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        self.0.as_ref()
    }

    /// Returns a value as JSON, as the handler of a typed task does. `()` and `None` are stored as
    /// no result.
    ///
    /// # Errors
    /// A permanent failure if the value cannot be written as JSON.
    pub fn json<T: serde::Serialize>(value: &T) -> Result<Self, crate::Failure> {
        crate::submit::encode_output(value)
    }
}

impl From<()> for Output {
    fn from((): ()) -> Self {
        Self::NONE
    }
}

impl From<Bytes> for Output {
    fn from(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Some(bytes.into()))
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self(Some(text.into()))
    }
}

impl From<&'static str> for Output {
    fn from(text: &'static str) -> Self {
        Self(Some(Bytes::from_static(text.as_bytes())))
    }
}

impl<T: Into<Self>> From<Option<T>> for Output {
    fn from(output: Option<T>) -> Self {
        output.map_or(Self::NONE, Into::into)
    }
}
