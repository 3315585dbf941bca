//! The queue of a single source.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::source::Entry;

/// The lone source. It is polled with the waker of the task that reads, and nothing is noted about it.
pub(super) struct One<K, S> {
    pub(super) entry: Entry<K, S>,
}

impl<K: Clone, S: Stream + Unpin> One<K, S> {
    #[inline]
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(K, S::Item)>> {
        let polled = Pin::new(&mut self.entry.source).poll_next(context);
        polled.map(|item| item.map(|item| (self.entry.key.clone(), item)))
    }
}
