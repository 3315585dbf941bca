//! The three states of a queue, and every way from one to another.

use std::mem;
use std::sync::Arc;
use std::task::Context;

use futures_core::Stream;

use super::many::Many;
use super::one::One;
use super::signal::{Raised, Signal};
#[cfg(feature = "tokio")]
use super::source::Ahead;
use super::source::{Entry, SourceId};

/// The sources, by how many there are.
///
/// | from | by | to |
/// |---|---|---|
/// | `Empty` | insertion | `One` |
/// | `One` | insertion | `Many`, where both are to be polled |
/// | `One` | removal, or its end | `Empty` |
/// | `Many` | removal or end of the last | `Empty` |
/// | `Many` | a single source left for [`PAUSES_BEFORE_DEMOTION`](super::many::PAUSES_BEFORE_DEMOTION) pauses of the reader in a row | `One`, to be polled |
///
/// "To be polled": a source that changes its state is polled before the reader parks, for the waker that it knows is not the one that it is
/// to wake from now on.
// With a tag of its own. Where the compiler hides the tag in a field, finding out the state takes more instructions than all else that is
// done for a lone source.
#[repr(u8)]
pub(super) enum Sources<K, S> {
    Empty,
    One(One<K, S>),
    Many(Many<K, S>),
}

/// Why a look at the sources gave no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nothing {
    /// This source came to its end, and is to be removed.
    Ended(SourceId),
    /// Every source has been polled since it was last woken, and has nothing.
    Idle,
    /// Some are still to be polled, but it was enough for one time.
    Cut,
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

    /// Takes a source out, if it is here.
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

    /// Lines up the sources that were woken. A lone source is polled at every look anyway.
    pub(super) fn enqueue_woken(&mut self, raised: Raised) {
        if let Self::Many(many) = self {
            many.enqueue_woken(raised);
        }
    }

    /// Notes that the reader pauses. True if that has made a source that was long alone the lone source, which is then to be polled.
    pub(super) fn pause(&mut self) -> bool {
        let Self::Many(many) = self else { return false };
        if !many.is_alone_for_good() {
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
    /// Polls what is to be polled until there is a message or a source ends. `fruitless` is how many polls without a message are left.
    #[inline(always)]
    pub(super) fn look(&mut self, context: &mut Context<'_>, fruitless: &mut u32) -> Result<(K, S::Item), Nothing> {
        match self {
            Self::One(one) => one.look(context),
            Self::Many(many) => many.look(fruitless),
            Self::Empty => Err(Nothing::Idle),
        }
    }

    /// The same, and appends the message. Of a lone source all that are ready are, up to `limit`.
    #[cfg(feature = "tokio")]
    #[inline(always)]
    pub(super) fn look_ahead(
        &mut self,
        context: &mut Context<'_>,
        fruitless: &mut u32,
        messages: &mut Vec<S::Item>,
        limit: usize,
    ) -> Result<(), Nothing>
    where
        S: Ahead,
    {
        let before = messages.len();
        if let Self::One(one) = self {
            one.entry.source.take_ready(messages, limit);
        }
        if messages.len() == before {
            messages.push(self.look(context, fruitless)?.1);
        }
        Ok(())
    }
}
