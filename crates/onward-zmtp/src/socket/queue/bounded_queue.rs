//! The queue between a socket and the driver of one connection. Its high-water marks slow down the
//! writer.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use super::items::{Amount, Items, QueueItem, Taken, keep_larger, keep_last};
use super::quota::Quota;
use super::unread_backlog::UnreadBacklog;
use crate::fair_queue::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::socket::bounds::COMPACT_ITEMS;
use crate::socket::options::high_water_mark::HighWaterMark;

/// A queue with one writer, one reader, and a short lock: once for each message written, once for
/// each batch read.
///
/// Items that the reader has taken count until it reports them as done. The high-water marks
/// therefore bound everything on the way, not only what is in the list. Otherwise the reader could
/// take a full queue and let the writer fill it a second time.
///
/// Invariant: no user code runs under the lock, and no task is woken under it.
pub(in crate::socket) struct Queue<T> {
    high_water_mark: HighWaterMark,
    /// The quota of the peer, in messages. It replaces the high-water mark where it is lower.
    quota: Arc<Quota>,
    /// True if only the last message is kept. Such a queue has no high-water mark.
    conflates: bool,
    /// True if `state.reader` is set. It is changed under the lock and read without it.
    reader_waits: AtomicBool,
    /// True if the queue may keep memory that an idle connection should not keep. It is changed
    /// under the lock and read without it.
    is_large: AtomicBool,
    state: Mutex<State<T>>,
}

/// The high-water mark of a queue that keeps one message.
const UNBOUNDED: HighWaterMark = HighWaterMark { messages: usize::MAX, bytes: usize::MAX };

struct State<T> {
    items: Items<T>,
    /// The memory of the reader's own items while the reader waits. The other side of the queue can
    /// release it there.
    resting: Items<T>,
    /// True if the reader should release its memory the next time that it waits.
    shrinks: bool,
    /// The number of items at which items that cancel each other out are removed. It is twice the
    /// number left the last time, so the cost per item is constant.
    compact_at: usize,
    /// The number of messages in `items` and of those that were taken and are not done.
    messages: usize,
    bytes: usize,
    closed: bool,
    /// The backlog to which unfinished messages count since the connection has ended.
    unread_backlog: Option<Arc<UnreadBacklog>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The reason why an item was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::socket) enum Refused {
    /// The high-water mark is reached.
    Full,
    /// The queue is closed, so no reader will take the item.
    Closed,
}

impl<T: QueueItem> State<T> {
    #[cold]
    fn shrink_idle(&mut self) {
        self.items.shrink_idle();
        self.resting.shrink_idle();
    }

    #[cold]
    fn keep_last(&mut self) {
        let dropped = keep_last(&mut self.items.list);
        self.messages -= dropped.messages;
        self.bytes -= dropped.bytes;
    }
}

impl<T> State<T> {
    fn size(&self) -> Amount {
        Amount { messages: self.messages, bytes: self.bytes }
    }

    fn has_room(&self, high_water_mark: HighWaterMark) -> bool {
        self.messages < high_water_mark.messages && self.bytes < high_water_mark.bytes
    }

    /// Subtracts the amount that the reader is done with. Returns the parties to notify, which the
    /// caller does after it has released the lock.
    fn finish(&mut self, done: &mut Amount, high_water_mark: HighWaterMark) -> Freed {
        if done.messages == 0 {
            return Freed { writer: None, unread_backlog: None };
        }
        let before = self.size();
        // Saturating: `close_and_take` may have reset the counts since these messages were taken.
        self.messages = before.messages.saturating_sub(done.messages);
        self.bytes = before.bytes.saturating_sub(done.bytes);
        *done = Amount::default();
        // The writer is woken at half the high-water mark, not at the first free slot. Otherwise a
        // full queue would wake it once for each message.
        let is_low = self.messages <= high_water_mark.messages / 2 && self.bytes <= high_water_mark.bytes / 2;
        let freed = Amount { messages: before.messages - self.messages, bytes: before.bytes - self.bytes };
        Freed {
            writer: if is_low { self.writer.take() } else { None },
            unread_backlog: self.unread_backlog.clone().map(|unread_backlog| (unread_backlog, freed)),
        }
    }
}

/// The parties to notify of new room.
#[must_use]
struct Freed {
    writer: Option<Waker>,
    unread_backlog: Option<(Arc<UnreadBacklog>, Amount)>,
}

impl Freed {
    fn notify(self) {
        if let Some((unread_backlog, freed)) = self.unread_backlog {
            unread_backlog.subtract(freed);
        }
        wake(self.writer);
    }
}

impl<T: QueueItem> Queue<T> {
    pub(in crate::socket) fn new(high_water_mark: HighWaterMark, quota: Arc<Quota>) -> Self {
        let state = State {
            items: Items::new(),
            resting: Items::new(),
            shrinks: false,
            compact_at: COMPACT_ITEMS,
            messages: 0,
            bytes: 0,
            closed: false,
            unread_backlog: None,
            reader: None,
            writer: None,
        };
        Self {
            high_water_mark,
            quota,
            conflates: false,
            reader_waits: AtomicBool::new(false),
            is_large: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// Makes the queue keep only the last message, if `conflates`.
    pub(in crate::socket) fn conflating(self, conflates: bool) -> Self {
        Self { conflates, high_water_mark: if conflates { UNBOUNDED } else { self.high_water_mark }, ..self }
    }

    /// Returns the high-water mark that bounds the queue now.
    #[inline]
    pub(in crate::socket) fn high_water_mark(&self) -> HighWaterMark {
        HighWaterMark {
            messages: self.high_water_mark.messages.min(self.quota.messages()),
            bytes: self.high_water_mark.bytes,
        }
    }

    /// Returns true if the high-water mark is divided among several peers. If the high-water mark
    /// is so small that each peer has all of it, turns are short anyway.
    pub(in crate::socket) fn is_shared(&self) -> bool {
        self.quota.messages() < self.high_water_mark.messages
    }

    /// Queues a message of `bytes` bytes if there is room. A single message may exceed the
    /// high-water mark. `add` appends it under the lock; it moves the message from its place only
    /// when there is room, which saves moves back and forth.
    #[inline]
    pub(in crate::socket) fn push(&self, bytes: usize, add: impl FnOnce(&mut Items<T>)) -> Result<(), Refused> {
        let mut add = Some(add);
        self.push_each(|items| add.take().map(|add| add(items)).map(|()| bytes)).map(drop)
    }

    /// Queues messages while there is room and `add` appends one and returns its size. Returns the
    /// number queued.
    #[inline]
    pub(in crate::socket) fn push_each(
        &self,
        mut add: impl FnMut(&mut Items<T>) -> Option<usize>,
    ) -> Result<usize, Refused> {
        let mut state = self.state();
        if state.closed {
            return Err(Refused::Closed);
        }
        let high_water_mark = self.high_water_mark();
        if !state.has_room(high_water_mark) {
            return Err(Refused::Full);
        }
        let before = state.messages;
        while state.has_room(high_water_mark)
            && let Some(bytes) = add(&mut state.items)
        {
            state.messages += 1;
            state.bytes += bytes;
        }
        let count = state.messages - before;
        if self.conflates {
            state.keep_last();
        }
        // The reader is woken after the lock is released, so that it does not wait for the lock at
        // once.
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
        Ok(count)
    }

    /// Queues an item even if there is no room. It does not count towards the high-water mark.
    /// [`QueueItem::compact`] bounds the number of such items.
    pub(in crate::socket) fn push_uncounted(&self, item: T) {
        let mut state = self.state();
        if !state.closed {
            state.items.list.push_back(item);
            if state.items.list.len() >= state.compact_at {
                T::compact(&mut state.items.list);
                state.compact_at = COMPACT_ITEMS.max(2 * state.items.list.len());
            }
        }
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
    }

    /// Queues an item even if there is no room, and counts it.
    pub(in crate::socket) fn push_over_high_water_mark(&self, item: T) {
        let mut state = self.state();
        if !state.closed {
            let size = item.size();
            state.messages += size.messages;
            state.bytes += size.bytes;
            state.items.list.push_back(item);
        }
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
    }

    /// Moves a batch into the queue, for which the writer has made sure of room. Returns false if
    /// the queue is closed.
    pub(in crate::socket) fn push_batch(&self, batch: &mut Items<T>, size: Amount) -> bool {
        let mut state = self.state();
        if state.closed {
            return false;
        }
        if state.items.list.is_empty() {
            mem::swap(&mut state.items.list, &mut batch.list);
        } else {
            state.items.append(batch);
        }
        keep_larger(&mut batch.spare, &mut state.items.spare);
        state.messages += size.messages;
        state.bytes += size.bytes;
        if self.conflates {
            state.keep_last();
        }
        self.note_memory(&state.items);
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
        true
    }

    /// Returns the number of messages and bytes for which there is room. If there is none, the
    /// writer is woken when half of the queue is free. A closed queue has unlimited room, because
    /// it keeps nothing.
    pub(in crate::socket) fn poll_room(&self, context: &mut Context<'_>) -> Poll<Amount> {
        let mut state = self.state();
        if state.closed {
            return Poll::Ready(Amount { messages: usize::MAX, bytes: usize::MAX });
        }
        let high_water_mark = self.high_water_mark();
        if state.has_room(high_water_mark) {
            return Poll::Ready(Amount {
                messages: high_water_mark.messages - state.messages,
                bytes: high_water_mark.bytes - state.bytes,
            });
        }
        register_waker(&mut state.writer, context);
        Poll::Pending
    }

    /// Returns true if there is room now.
    pub(in crate::socket) fn has_room(&self) -> bool {
        self.state().has_room(self.high_water_mark())
    }

    /// Moves everything that is queued to `taken`, which must be empty. Returns `false` when
    /// nothing is queued and the queue is closed. Reports the items that the reader took before as
    /// done.
    pub(in crate::socket) fn poll_take(&self, context: &mut Context<'_>, taken: &mut Taken<T>) -> Poll<bool> {
        // This waker is registered already and nothing was queued since, so the lock is not needed.
        if taken.done.messages == 0 && self.reader_waits() && taken.is_waiting(context) {
            return Poll::Pending;
        }
        let mut state = self.state();
        let freed = state.finish(&mut taken.done, self.high_water_mark());
        taken.items.adopt(&mut state.resting);
        let outcome = if !state.items.list.is_empty() {
            // A swap moves no items, and leaves each side with memory for the next batch.
            mem::swap(&mut state.items.list, &mut taken.items.list);
            keep_larger(&mut state.items.spare, &mut taken.items.spare);
            self.note_memory(&taken.items);
            Poll::Ready(true)
        } else if state.closed {
            Poll::Ready(false)
        } else {
            mem::swap(&mut state.resting, &mut taken.items);
            if mem::take(&mut state.shrinks) {
                state.shrink_idle();
            }
            register_waker(&mut state.reader, context);
            register_waker(&mut taken.waiting, context);
            self.reader_waits.store(true, Ordering::Release);
            Poll::Pending
        };
        drop(state);
        freed.notify();
        outcome
    }

    /// Records whether these items have memory that an idle connection should not keep.
    #[inline]
    fn note_memory(&self, items: &Items<T>) {
        if items.is_large() {
            self.is_large.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if [`shrink_idle`](Self::shrink_idle) may release memory.
    #[inline]
    pub(in crate::socket) fn can_shrink(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// Releases the memory that only a busy connection needs: now if the reader waits, otherwise as
    /// soon as it does.
    pub(in crate::socket) fn shrink_idle(&self) {
        let mut state = self.state();
        self.is_large.store(false, Ordering::Relaxed);
        if self.reader_waits() {
            state.shrink_idle();
        } else {
            state.shrinks = true;
        }
    }

    /// Reports as done an amount of what the reader took. The writer is woken once half of the
    /// queue is free.
    pub(in crate::socket) fn done(&self, done: &mut Amount) {
        if done.messages == 0 {
            return;
        }
        let mut state = self.state();
        let freed = state.finish(done, self.high_water_mark());
        drop(state);
        freed.notify();
    }

    /// Closes the queue: no more is queued, but queued items can still be read. Wakes the reader
    /// and the writer.
    pub(in crate::socket) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let wakers = (self.take_reader(&mut state), state.writer.take());
        drop(state);
        wake(wakers.0);
        wake(wakers.1);
    }

    /// Closes the queue as [`Self::close`] does. From now on its messages count towards
    /// `unread_backlog`.
    pub(in crate::socket) fn close_into(&self, unread_backlog: &Arc<UnreadBacklog>) {
        let mut state = self.state();
        if state.unread_backlog.is_none() {
            unread_backlog.add(state.size());
            state.unread_backlog = Some(unread_backlog.clone());
        }
        drop(state);
        self.close();
    }

    /// Removes all items and closes the queue.
    pub(in crate::socket) fn close_and_take(&self) -> VecDeque<T> {
        let mut state = self.state();
        // Under one lock: an item queued between the two steps would be neither returned nor
        // rejected.
        state.closed = true;
        let items = mem::replace(&mut state.items, Items::new());
        let freed = state.size();
        (state.messages, state.bytes) = (0, 0);
        let wakers = (self.take_reader(&mut state), state.writer.take());
        let unread_backlog = state.unread_backlog.clone();
        drop(state);
        free(unread_backlog, freed);
        wake(wakers.0);
        wake(wakers.1);
        items.list
    }

    /// Counts an amount that the reader took from elsewhere as if it had been queued here.
    pub(in crate::socket) fn count_taken(&self, size: Amount) {
        let mut state = self.state();
        state.messages += size.messages;
        state.bytes += size.bytes;
    }

    /// Wakes the writer if it waits and there is room. Called when the high-water mark may have
    /// changed.
    pub(in crate::socket) fn wake_writer(&self) {
        let mut state = self.state();
        let writer = if state.has_room(self.high_water_mark()) { state.writer.take() } else { None };
        drop(state);
        wake(writer);
    }

    /// Wakes the reader even if nothing is queued here.
    pub(in crate::socket) fn wake_reader(&self) {
        let reader = self.take_reader(&mut self.state());
        wake(reader);
    }

    pub(in crate::socket) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Returns true if the reader waits. Nothing is queued at that moment, but an item may be
    /// queued right after.
    #[inline]
    pub(in crate::socket) fn reader_waits(&self) -> bool {
        self.reader_waits.load(Ordering::Acquire)
    }

    /// Returns true if nothing is queued, and nothing is taken and not done.
    pub(in crate::socket) fn is_idle(&self) -> bool {
        let state = self.state();
        state.items.list.is_empty() && state.messages == 0
    }

    /// Returns the number of messages and bytes on the way; zero once they count towards the
    /// backlog.
    pub(in crate::socket) fn size(&self) -> Amount {
        let state = self.state();
        if state.unread_backlog.is_some() { Amount::default() } else { state.size() }
    }

    /// Returns the reader's waker, if it waits, and records that it no longer does.
    fn take_reader(&self, state: &mut State<T>) -> Option<Waker> {
        self.reader_waits.store(false, Ordering::Release);
        state.reader.take()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn register_waker(slot: &mut Option<Waker>, context: &Context<'_>) {
    match slot {
        Some(known) if known.will_wake(context.waker()) => {}
        _ => *slot = Some(context.waker().clone()),
    }
}

fn free(unread_backlog: Option<Arc<UnreadBacklog>>, freed: Amount) {
    if let Some(unread_backlog) = unread_backlog {
        unread_backlog.subtract(freed);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
