//! What other tasks have of a queue.

use std::fmt;
use std::sync::Arc;

use super::mailbox::{Mailbox, Refusal};
use super::source::SourceId;

/// Inserts and removes sources of a [`FairQueue`](super::FairQueue) from any task or thread.
///
/// A clone costs one atomic addition. What a handle does takes effect at the queue's next read; a reader that waits is woken for it.
/// Nothing of the user's runs under the lock that handles share.
///
/// While a handle exists, an empty queue waits for what may be inserted; once the last is dropped, an empty queue is at its end.
pub struct Handle<K, S> {
    mailbox: Arc<Mailbox<K, S>>,
}

impl<K, S> Handle<K, S> {
    pub(super) fn new(mailbox: Arc<Mailbox<K, S>>) -> Self {
        mailbox.add_handle();
        Self { mailbox }
    }

    /// Adds a source, whose messages are then given out with a clone of `key`. Keys need not differ. O(log n) in the number of sources that
    /// the reader has not seen yet.
    ///
    /// # Errors
    ///
    /// If the queue was dropped, or has as many sources as it takes. The error has key and source.
    pub fn insert(&self, key: K, source: S) -> Result<SourceId, InsertError<K, S>> {
        self.mailbox.insert(key, source).map_err(InsertError::new)
    }

    /// Removes a source. False if it is not in the queue: it ended, was removed before, or the queue is gone.
    ///
    /// No read that begins afterwards gives out a message of this source, and [`FairQueue::on_end`](super::FairQueue::on_end) is not told
    /// of it. The reader drops the source at its next read, or this call does if the reader has not seen it yet.
    pub fn remove(&self, id: SourceId) -> bool {
        self.mailbox.remove(id)
    }

    /// Wakes the reader without a reason of the queue's, if it waits.
    #[cfg(feature = "tokio")]
    pub(crate) fn nudge(&self) {
        self.mailbox.nudge();
    }

    /// How many sources are in the queue.
    pub fn len(&self) -> usize {
        self.mailbox.len()
    }

    /// Whether no source is in the queue.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the queue was dropped, so that insertions are refused for good.
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

/// A source was not inserted. It is in here, and so is its key.
#[non_exhaustive]
pub struct InsertError<K, S> {
    /// The key that the source was to be inserted with.
    pub key: K,
    /// The source.
    pub source: S,
    refusal: Refusal,
}

impl<K, S> InsertError<K, S> {
    pub(super) fn new((refusal, key, source): (Refusal, K, S)) -> Self {
        Self { key, source, refusal }
    }

    /// Whether the queue was dropped. Otherwise it has as many sources as it takes, and there may be room later.
    pub fn is_closed(&self) -> bool {
        self.refusal == Refusal::Closed
    }
}

impl<K, S> fmt::Debug for InsertError<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("InsertError").field(&self.refusal).finish()
    }
}

impl<K, S> fmt::Display for InsertError<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            Refusal::Full { limit } => write!(
                formatter,
                "the fair queue has {limit} sources, which is its limit; remove one, or make the queue with a higher limit"
            ),
            Refusal::Closed => formatter.write_str("the fair queue was dropped; insert the source into another one"),
        }
    }
}

impl<K, S> std::error::Error for InsertError<K, S> {}
