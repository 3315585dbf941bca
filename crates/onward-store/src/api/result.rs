//! The result of a task, as far as it was read.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The result of a task in a [`TaskRecord`](crate::TaskRecord): that a listing did not read it is
/// another thing than that there is none.
///
/// As JSON it is the result, or `null` where there is none; where it was not read the field is left
/// out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Option<Bytes>", into = "Option<Bytes>")]
pub enum TaskResult {
    /// The listing was asked to leave payloads and results out
    /// ([`TaskFilter::with_payload`](crate::TaskFilter::with_payload)).
    #[default]
    NotRead,
    /// The task has none: it has not completed, or its handler returned none.
    None,
    /// The result.
    Value(Bytes),
}

impl TaskResult {
    /// Returns the result, if it was read and there is one.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::NotRead | Self::None => None,
        }
    }

    /// Returns the result as a slice, if it was read and there is one.
    #[must_use]
    pub fn as_deref(&self) -> Option<&[u8]> {
        self.bytes().map(AsRef::as_ref)
    }

    /// Returns the result itself, if it was read and there is one.
    #[must_use]
    pub fn into_bytes(self) -> Option<Bytes> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::NotRead | Self::None => None,
        }
    }

    /// Returns whether it was read, whether or not there is one.
    #[must_use]
    pub fn is_read(&self) -> bool {
        *self != Self::NotRead
    }

    pub(crate) fn is_not_read(&self) -> bool {
        !self.is_read()
    }

    /// The result that a listing with or without payloads shows.
    pub(crate) fn shown(with_payload: bool, result: impl FnOnce() -> Option<Bytes>) -> Self {
        if with_payload { result().into() } else { Self::NotRead }
    }
}

impl From<Option<Bytes>> for TaskResult {
    fn from(result: Option<Bytes>) -> Self {
        result.map_or(Self::None, Self::Value)
    }
}

impl From<TaskResult> for Option<Bytes> {
    fn from(result: TaskResult) -> Self {
        result.into_bytes()
    }
}
