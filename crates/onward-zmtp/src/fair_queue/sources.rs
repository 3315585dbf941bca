//! The three states of a queue, and the transitions between them.

use std::mem;
use std::sync::Arc;
use std::task::Context;

use futures_core::Stream;

use super::many::Many;
use super::one::One;
use super::signal::{Raised, Signal};
#[cfg(feature = "tokio")]
use super::source::ReadAhead;
use super::source::{Entry, SourceId};

/// The sources of a queue, in one of three representations by their number.
///
/// | from | by | to |
/// |---|---|---|
/// | `Empty` | insertion | `One` |
/// | `One` | insertion | `Many`, where both must be polled |
/// | `One` | removal, or its end | `Empty` |
/// | `Many` | removal or end of the last | `Empty` |
/// | `Many` | demotion of the only source left | `One`, which must be polled |
///
/// Demotion happens after [`PAUSES_BEFORE_DEMOTION`](super::many::PAUSES_BEFORE_DEMOTION) pauses of
/// the reader in a row with a single source.
///
/// "Must be polled": the waker that the source holds is not the one that it must wake from now on.
/// The reader therefore polls the source before it parks.
// An explicit tag. If the compiler hides the tag in a field, reading the state takes more
// instructions than everything else on the path of a lone source.
#[repr(u8)]
pub(super) enum Sources<K, S> {
    Empty,
    One(One<K, S>),
    Many(Many<K, S>),
}

/// The reason why a poll of the sources returned no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoMessage {
    /// This source ended and must be removed.
    Ended(SourceId),
    /// Every source has been polled since it was last woken, and none has a message.
    Idle,
    /// Some sources are still to be polled, but this call has used up its polls.
    LimitReached,
}

impl<K, S> Sources<K, S> {
    pub(super) fn insert(&mut self, entry: Entry<K, S>, signal: &Arc<Signal>) {
        *self = match mem::replace(self, Self::Empty) {
            Self::Empty => Self::One(One { entry }),
            Self::One(one) => Self::Many(Many::promoted(one, entry, signal.clone())),
            Self::Many(mut many) => {
                many.insert(entry);
                Self::Many(many)
            }
        };
    }

    /// Removes a source and returns it, if it is here.
    pub(super) fn remove(&mut self, id: SourceId) -> Option<Entry<K, S>> {
        match self {
            Self::One(one) if one.entry.id == id => self.take_one(),
            Self::Empty | Self::One(_) => None,
            Self::Many(many) => {
                let removed = many.remove(id);
                self.leave_many_if_empty();
                removed
            }
        }
    }

    /// Adds the woken sources to the ready list. A lone source is polled on every call, so it needs
    /// no list.
    pub(super) fn enqueue_woken(&mut self, raised: Raised) {
        if let Self::Many(many) = self {
            many.enqueue_woken(raised);
        }
    }

    /// Records a pause of the reader. Returns true if this demoted a source to `One`; that source
    /// must then be polled.
    pub(super) fn pause(&mut self) -> bool {
        let Self::Many(many) = self else { return false };
        if !many.should_demote() {
            return false;
        }
        if let Some(entry) = many.take_last() {
            *self = Self::One(One { entry });
        }
        true
    }

    #[cold]
    fn take_one(&mut self) -> Option<Entry<K, S>> {
        match mem::replace(self, Self::Empty) {
            Self::One(one) => Some(one.entry),
            other => {
                *self = other;
                None
            }
        }
    }

    fn leave_many_if_empty(&mut self) {
        if matches!(self, Self::Many(many) if many.len() == 0) {
            *self = Self::Empty;
        }
    }
}

impl<K: Clone, S: Stream + Unpin> Sources<K, S> {
    /// Polls the ready sources until one has a message or ends. `empty_polls_left` counts down the
    /// polls that may return no message.
    #[inline(always)]
    pub(super) fn poll_ready(
        &mut self,
        context: &mut Context<'_>,
        empty_polls_left: &mut u32,
    ) -> Result<(K, S::Item), NoMessage> {
        match self {
            Self::One(one) => one.poll_ready(context),
            Self::Many(many) => many.poll_ready(empty_polls_left),
            Self::Empty => Err(NoMessage::Idle),
        }
    }

    /// Appends a message as [`Self::poll_ready`] would return it. A lone source appends all that it
    /// has read ahead, at most `limit`.
    #[cfg(feature = "tokio")]
    #[inline(always)]
    pub(super) fn read_ahead(
        &mut self,
        context: &mut Context<'_>,
        empty_polls_left: &mut u32,
        messages: &mut Vec<S::Item>,
        limit: usize,
    ) -> Result<(), NoMessage>
    where
        S: ReadAhead,
    {
        let before = messages.len();
        if let Self::One(one) = self {
            one.entry.source.take_ready(messages, limit);
        }
        if messages.len() == before {
            messages.push(self.poll_ready(context, empty_polls_left)?.1);
        }
        Ok(())
    }
}
