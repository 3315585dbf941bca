//! The queue state for a single source.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::source::Entry;
use super::sources::NoMessage;

/// The lone source. It is polled with the waker of the reading task, so no bookkeeping is needed.
pub(super) struct One<K, S> {
    pub(super) entry: Entry<K, S>,
}

impl<K: Clone, S: Stream + Unpin> One<K, S> {
    #[inline(always)]
    pub(super) fn poll_ready(&mut self, context: &mut Context<'_>) -> Result<(K, S::Item), NoMessage> {
        match Pin::new(&mut self.entry.source).poll_next(context) {
            Poll::Ready(Some(item)) => Ok((self.entry.key.clone(), item)),
            Poll::Ready(None) => Err(NoMessage::Ended(self.entry.id)),
            Poll::Pending => Err(NoMessage::Idle),
        }
    }
}
