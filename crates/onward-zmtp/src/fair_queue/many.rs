//! The queue state for several sources.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::one::One;
use super::ready_ring::ReadyRing;
use super::signal::{Raised, Signal, WokenSlots};
use super::source::{Entry, SourceId};
use super::sources::NoMessage;

/// The number of pauses of the reader in a row, with a single source left, after which that source
/// is demoted to [`One`].
///
/// The reader pauses when nothing is ready, and now and then under constant load. Counting pauses
/// therefore adds no cost to a message. A peer that reconnects is two sources for a moment, so an
/// immediate demotion would build and drop all of this each time. Without any demotion a lone
/// source would stay on the slower path for good.
#[cfg(not(onward_loom))]
pub(super) const PAUSES_BEFORE_DEMOTION: u32 = 16;
/// A value that is small enough for a model to reach.
#[cfg(onward_loom)]
pub(super) const PAUSES_BEFORE_DEMOTION: u32 = 1;

/// Several sources that take turns.
///
/// A source that may have a message is in `ready`, and the first in it is polled. If it returns a
/// message, it moves to the end. If not, it leaves, and its waker brings it back. Between two
/// messages of one source, every other ready source therefore has its turn.
///
/// Invariant: an occupied slot that is not in `ready` was polled, returned `Pending`, and has not
/// been taken from `woken` since.
pub(super) struct Many<K, S> {
    slots: Vec<Slot<K, S>>,
    vacant: Vec<usize>,
    ready: ReadyRing,
    woken: WokenSlots,
    by_id: HashMap<SourceId, usize>,
    pauses_alone: u32,
}

/// A slot for a source. Its waker outlives the source: a late wake-up causes one useless poll of
/// the next occupant.
struct Slot<K, S> {
    waker: Waker,
    occupant: Option<Entry<K, S>>,
}

impl<K, S> Many<K, S> {
    /// Builds the state from a source that was alone and a second one.
    pub(super) fn promoted(one: One<K, S>, second: Entry<K, S>, signal: Arc<Signal>) -> Self {
        let mut many = Self::new(signal);
        many.insert(one.entry);
        many.insert(second);
        many
    }

    fn new(signal: Arc<Signal>) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            ready: ReadyRing::new(),
            woken: WokenSlots::new(signal),
            by_id: HashMap::new(),
            pauses_alone: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Adds a source, which is polled in its turn.
    pub(super) fn insert(&mut self, entry: Entry<K, S>) {
        let index = self.vacant.pop().unwrap_or_else(|| self.add_slot());
        self.by_id.insert(entry.id, index);
        self.slots[index].occupant = Some(entry);
        self.pauses_alone = 0;
        self.ready.add(index);
    }

    /// Removes a source and returns it, if it is here. Its index may stay in `ready`, where an
    /// empty slot is skipped.
    pub(super) fn remove(&mut self, id: SourceId) -> Option<Entry<K, S>> {
        let index = self.by_id.remove(&id)?;
        self.vacant.push(index);
        self.slots[index].occupant.take()
    }

    /// Adds the sources whose wakers were used to the ready list.
    pub(super) fn enqueue_woken(&mut self, raised: Raised) {
        let Self { ready, woken, .. } = self;
        woken.take(raised, |index| ready.add(index));
    }

    /// Records a pause of the reader. Returns true if a single source has been left for so long
    /// that the state should be [`One`].
    pub(super) fn should_demote(&mut self) -> bool {
        if self.len() > 1 {
            return false;
        }
        self.pauses_alone += 1;
        self.pauses_alone > PAUSES_BEFORE_DEMOTION
    }

    /// Removes the only source that is left.
    pub(super) fn take_last(&mut self) -> Option<Entry<K, S>> {
        self.slots.iter_mut().find_map(|slot| slot.occupant.take())
    }

    fn add_slot(&mut self) -> usize {
        let index = self.slots.len();
        self.slots.push(Slot { waker: self.woken.waker(index), occupant: None });
        self.ready.make_room_for(index);
        index
    }
}

impl<K: Clone, S: Stream + Unpin> Many<K, S> {
    /// Polls the sources in `ready` until one has a message. A source that has none is polled at
    /// most once, and at most `empty_polls_left` such polls are made.
    ///
    /// A source that wakes itself and returns `Pending` is not polled again here. Only
    /// [`Self::enqueue_woken`] brings it back.
    #[inline(always)]
    pub(super) fn poll_ready(&mut self, empty_polls_left: &mut u32) -> Result<(K, S::Item), NoMessage> {
        while *empty_polls_left > 0 {
            let Some(index) = self.ready.first() else { return Err(NoMessage::Idle) };
            let slot = &mut self.slots[index];
            let Some(entry) = &mut slot.occupant else {
                // The source was removed while it was in the ready list.
                self.ready.remove_first();
                continue;
            };
            match Pin::new(&mut entry.source).poll_next(&mut Context::from_waker(&slot.waker)) {
                Poll::Ready(Some(item)) => {
                    self.ready.move_to_end(index);
                    return Ok((entry.key.clone(), item));
                }
                Poll::Ready(None) => {
                    *empty_polls_left -= 1;
                    self.ready.remove_first();
                    return Err(NoMessage::Ended(entry.id));
                }
                Poll::Pending => {
                    *empty_polls_left -= 1;
                    self.ready.remove_first();
                }
            }
        }
        Err(NoMessage::LimitReached)
    }
}
