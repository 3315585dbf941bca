//! The queue of several sources.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::circle::Circle;
use super::one::One;
use super::signal::{Raised, Signal, WokenSlots};
use super::source::{Entry, SourceId};
use super::sources::Nothing;

/// After how many pauses of the reader in a row with a single source left it is taken to be alone for good.
///
/// The reader pauses when nothing is ready, and now and then when there is always something; so counting costs a message nothing.
/// A peer that reconnects is two sources for a moment. Going back at once would make and throw away all of this each time; never going
/// back would leave a lone source on the slower path for ever.
#[cfg(not(onward_loom))]
pub(super) const PAUSES_BEFORE_DEMOTION: u32 = 16;
/// So few that a model comes to it.
#[cfg(onward_loom)]
pub(super) const PAUSES_BEFORE_DEMOTION: u32 = 1;

/// Several sources, which take turns.
///
/// A source that may have something is in `ready`. Whoever is first there is polled: with a message it becomes the last, without one it
/// leaves, and its waker brings it back. So between two messages of one source every other that is ready has its turn.
///
/// Invariant: an occupied slot that is not in `ready` was polled, returned `Pending`, and has not been taken from `woken` since.
pub(super) struct Many<K, S> {
    slots: Vec<Slot<K, S>>,
    vacant: Vec<usize>,
    ready: Circle,
    woken: WokenSlots,
    by_id: HashMap<SourceId, usize>,
    pauses_alone: u32,
}

/// A place for a source. Its waker outlives the source: used late, it has the next occupant polled once for nothing.
struct Slot<K, S> {
    waker: Waker,
    occupant: Option<Entry<K, S>>,
}

impl<K, S> Many<K, S> {
    /// The queue of a source that was alone and of one that comes to it.
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
            ready: Circle::new(),
            woken: WokenSlots::new(signal),
            by_id: HashMap::new(),
            pauses_alone: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Adds a source, which is to be polled in its turn.
    pub(super) fn insert(&mut self, entry: Entry<K, S>) {
        let index = self.vacant.pop().unwrap_or_else(|| self.add_slot());
        self.by_id.insert(entry.id, index);
        self.slots[index].occupant = Some(entry);
        self.pauses_alone = 0;
        self.ready.add(index);
    }

    /// Takes a source out, if it is here. Its index may stay in `ready`, where an empty slot is passed over.
    pub(super) fn remove(&mut self, id: SourceId) -> Option<Entry<K, S>> {
        let index = self.by_id.remove(&id)?;
        self.vacant.push(index);
        self.slots[index].occupant.take()
    }

    /// Lines up the sources whose wakers were used.
    pub(super) fn enqueue_woken(&mut self, raised: Raised) {
        let Self { ready, woken, .. } = self;
        woken.take(raised, |index| ready.add(index));
    }

    /// Notes a pause of the reader. True if a single source has been left for so long that it should be [`One`].
    pub(super) fn is_alone_for_good(&mut self) -> bool {
        if self.len() > 1 {
            return false;
        }
        self.pauses_alone += 1;
        self.pauses_alone > PAUSES_BEFORE_DEMOTION
    }

    /// Takes out the source that is left when all others are gone.
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
    /// Polls the sources in `ready` until one has a message. Of those that have none, each is polled at most once, and at most
    /// `fruitless` are.
    ///
    /// A source that wakes itself and returns `Pending` is not polled again here: only [`Self::enqueue_woken`] brings it back.
    #[inline(always)]
    pub(super) fn look(&mut self, fruitless: &mut u32) -> Result<(K, S::Item), Nothing> {
        while *fruitless > 0 {
            let Some(index) = self.ready.first() else { return Err(Nothing::Idle) };
            let slot = &mut self.slots[index];
            let Some(entry) = &mut slot.occupant else {
                self.ready.remove_first();
                continue;
            };
            match Pin::new(&mut entry.source).poll_next(&mut Context::from_waker(&slot.waker)) {
                Poll::Ready(Some(item)) => {
                    self.ready.pass(index);
                    return Ok((entry.key.clone(), item));
                }
                Poll::Ready(None) => {
                    *fruitless -= 1;
                    self.ready.remove_first();
                    return Err(Nothing::Ended(entry.id));
                }
                Poll::Pending => {
                    *fruitless -= 1;
                    self.ready.remove_first();
                }
            }
        }
        Err(Nothing::Cut)
    }
}
