//! The handle with which other tasks insert and remove sources.

use std::fmt;
use std::sync::Arc;

use super::mailbox::{Mailbox, Rejection};
use super::source::SourceId;

/// A handle that inserts and removes sources of a [`FairQueue`](super::FairQueue) from any task or
/// thread.
///
/// A clone costs one atomic addition. A change takes effect at the queue's next read, and wakes a
/// reader that waits. No user code runs under the lock that handles share.
///
/// While a handle exists, an empty queue waits for insertions. Once the last handle is dropped, an
/// empty queue is at its end.
pub struct Handle<K, S> {
    mailbox: Arc<Mailbox<K, S>>,
}

impl<K, S> Handle<K, S> {
    pub(super) fn new(mailbox: Arc<Mailbox<K, S>>) -> Self {
        mailbox.add_handle();
        Self { mailbox }
    }

    /// Adds a source. Each of its messages is returned with a clone of `key`. Keys need not be
    /// unique. O(log n) in the number of sources that the reader has not taken yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue was dropped or is at its limit of sources. The error contains
    /// the key and the source.
    pub fn insert(&self, key: K, source: S) -> Result<SourceId, InsertError<K, S>> {
        self.mailbox.insert(key, source).map_err(InsertError::new)
    }

    /// Removes a source. Returns false if it is not in the queue: it ended, was removed before, or
    /// the queue was dropped.
    ///
    /// No read that begins afterwards returns a message of this source, and the callback of
    /// [`FairQueue::on_end`](super::FairQueue::on_end) is not called for it. The reader drops the
    /// source at its next read. If the reader has not taken the source yet, this call drops it.
    pub fn remove(&self, id: SourceId) -> bool {
        self.mailbox.remove(id)
    }

    /// Wakes the reader if it waits, without any change to the queue.
    #[cfg(feature = "tokio")]
    pub(crate) fn wake_reader(&self) {
        self.mailbox.wake_reader();
    }

    /// Returns the number of sources in the queue.
    pub fn len(&self) -> usize {
        self.mailbox.len()
    }

    /// Returns true if the queue has no source.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the queue was dropped, so that all insertions are rejected.
    pub fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }
}

impl<K, S> Clone for Handle<K, S> {
    fn clone(&self) -> Self {
        Self::new(self.mailbox.clone())
    }
}

impl<K, S> Drop for Handle<K, S> {
    fn drop(&mut self) {
        self.mailbox.drop_handle();
    }
}

impl<K, S> fmt::Debug for Handle<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handle").field("sources", &self.len()).finish_non_exhaustive()
    }
}

/// The error of an insertion that was rejected. It contains the key and the source.
#[non_exhaustive]
pub struct InsertError<K, S> {
    /// The key that the source was to be inserted with.
    pub key: K,
    /// The source.
    pub source: S,
    rejection: Rejection,
}

impl<K, S> InsertError<K, S> {
    pub(super) fn new((rejection, key, source): (Rejection, K, S)) -> Self {
        Self { key, source, rejection }
    }

    /// Returns true if the queue was dropped. Otherwise the queue is at its limit, and there may be
    /// room later.
    pub fn is_closed(&self) -> bool {
        self.rejection == Rejection::Closed
    }
}

impl<K, S> fmt::Debug for InsertError<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("InsertError").field(&self.rejection).finish()
    }
}

impl<K, S> fmt::Display for InsertError<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rejection {
            Rejection::Full { limit } => write!(
                formatter,
                "the fair queue has {limit} sources, which is its limit; remove one, or make the queue with a higher limit"
            ),
            Rejection::Closed => formatter.write_str("the fair queue was dropped; insert the source into another one"),
        }
    }
}

impl<K, S> std::error::Error for InsertError<K, S> {}
