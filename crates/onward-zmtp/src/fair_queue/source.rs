//! A source in the queue, and its id.

use std::fmt;

/// The id of a source within its queue. A queue never reuses an id, even for an equal key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(super) u64);

impl fmt::Display for SourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A source that reads ahead and can return several of its messages at once.
#[cfg(feature = "tokio")]
pub(crate) trait ReadAhead: futures_core::Stream {
    /// Appends at most `limit` messages that are available without waiting. `limit` is not zero. It
    /// stops before the first message that would need a wait, so the order is kept.
    fn take_ready(&mut self, messages: &mut Vec<Self::Item>, limit: usize);
}

/// A source that ended: it returned `None` and has left the queue.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<K, S> {
    /// The id of the source.
    pub id: SourceId,
    /// The key that the source was inserted with.
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
