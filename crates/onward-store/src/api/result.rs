//! The result of a task in a record.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The result of a task in a [`TaskRecord`](crate::TaskRecord). It distinguishes a result that was
/// not read from a result that does not exist.
///
/// In JSON it is the result, or `null` if the task has none. The field is omitted if the result was
/// not read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Option<Bytes>", into = "Option<Bytes>")]
pub enum TaskResult {
    /// The result was not read, because the listing excluded payloads and results
    /// ([`TaskFilter::with_payload`](crate::TaskFilter::with_payload)).
    #[default]
    NotRead,
    /// The task has no result: it has not completed, or its handler returned none.
    None,
    /// The result.
    Value(Bytes),
}

impl TaskResult {
    /// Returns the result, if it was read and the task has one.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::NotRead | Self::None => None,
        }
    }

    /// Returns the result as a slice, if it was read and the task has one.
    #[must_use]
    pub fn as_deref(&self) -> Option<&[u8]> {
        self.bytes().map(AsRef::as_ref)
    }

    /// Converts into the result, if it was read and the task has one.
    #[must_use]
    pub fn into_bytes(self) -> Option<Bytes> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::NotRead | Self::None => None,
        }
    }

    /// Returns whether the result was read. A task without a result counts as read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        *self != Self::NotRead
    }

    pub(crate) fn is_not_read(&self) -> bool {
        !self.is_read()
    }

    /// Returns the result of a listing: calls `result` only if the listing reads payloads.
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
