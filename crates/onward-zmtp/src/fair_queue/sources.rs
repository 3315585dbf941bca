//! The three states of a queue, and every way from one to another.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::many::Many;
use super::one::One;
use super::signal::{Raised, Signal};
use super::source::{Entry, SourceId};

/// The sources, by how many there are.
///
/// | from | by | to |
/// |---|---|---|
/// | `Empty` | insertion | `One` |
/// | `One` | insertion | `Many`, where both are to be polled |
/// | `One` | removal, or its end | `Empty` |
/// | `Many` | removal or end of the last | `Empty` |
/// | `Many` | a single source left for [`READS_BEFORE_DEMOTION`](super::many::READS_BEFORE_DEMOTION) reads in a row | `One`, to be polled |
///
/// "To be polled": a source that changes its state is polled before the reader parks, for the waker that it knows is not the one that it is to wake
/// from now on.
pub(super) enum Sources<K, S> {
    Empty,
    One(One<K, S>),
    Many(Many<K, S>),
}

/// What a look at the sources gave.
pub(super) enum Look<K, S: Stream> {
    /// A message.
    Item((K, S::Item)),
    /// A source came to its end and is no longer in the queue.
    Ended(Entry<K, S>),
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

    /// Notes that the queue is about to be read, which makes a source that has long been alone the lone source.
    #[inline]
    pub(super) fn begin_read(&mut self) {
        if let Self::Many(many) = self
            && many.is_alone_for_good()
        {
            self.demote();
        }
    }

    #[cold]
    fn demote(&mut self) {
        if let Self::Many(many) = mem::replace(self, Self::Empty) {
            *self = many.into_last().map_or(Self::Empty, |entry| Self::One(One { entry }));
        }
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
    #[inline]
    pub(super) fn look(&mut self, context: &mut Context<'_>, fruitless: &mut u32) -> Look<K, S> {
        match self {
            Self::Empty => Look::Idle,
            Self::One(one) => match one.poll_next(context) {
                Poll::Ready(Some(item)) => Look::Item(item),
                Poll::Ready(None) => self.take_one().map_or(Look::Idle, Look::Ended),
                Poll::Pending => Look::Idle,
            },
            Self::Many(many) => {
                let look = many.look(fruitless);
                if let Look::Ended(_) = look {
                    self.leave_many_if_empty();
                }
                look
            }
        }
    }
}
