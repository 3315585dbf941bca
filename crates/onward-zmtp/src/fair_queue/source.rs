//! A source as the queue keeps it, and its id.

use std::fmt;

/// Names one source of one queue. No two sources of a queue ever have the same id, whatever their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(super) u64);

impl fmt::Display for SourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A source that reads ahead, and can give several messages at once of what it has.
#[cfg(feature = "tokio")]
pub(crate) trait Ahead: futures_core::Stream {
    /// Appends messages that are there already, at most `limit`, which is not zero. Never those that are to be waited for, or after them.
    fn take_ready(&mut self, messages: &mut Vec<Self::Item>, limit: usize);
}

/// A source that came to its end: it returned `None` and has left the queue.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<K, S> {
    /// Which source it was.
    pub id: SourceId,
    /// The key that it was inserted with.
    pub key: K,
    /// The source itself.
    pub source: S,
}

/// A source in the queue.
pub(super) struct Entry<K, S> {
    pub(super) id: SourceId,
    pub(super) key: K,
    pub(super) source: S,
}

impl<K, S> From<Entry<K, S>> for Ended<K, S> {
    fn from(Entry { id, key, source }: Entry<K, S>) -> Self {
        Self { id, key, source }
    }
}
