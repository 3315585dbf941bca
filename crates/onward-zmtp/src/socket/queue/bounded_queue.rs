//! The queue between a socket and the driver of one connection. Its high-water marks slow down the
//! writer.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use super::quota::Share;
use super::unread_backlog::Leftovers;
use crate::fair_queue::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::socket::bounds::SETTLE_ITEMS;
use crate::socket::options::high_water_mark::HighWaterMark;

/// An item of a queue, which counts by its messages and their payload.
pub(in crate::socket) trait Payload {
    /// Returns the number of messages and the size of their payload.
    fn size(&self) -> Done;

    /// Drops all messages but the last.
    fn keep_last(&mut self) {}

    /// Appends the content of `next` to this item if possible, and returns true if so. `next`
    /// contains no messages afterwards.
    fn join(&mut self, _next: &mut Self) -> bool {
        false
    }

    /// Removes items that cancel each other out, among those that do not count towards the mark.
    fn settle(_list: &mut VecDeque<Self>)
    where
        Self: Sized,
    {
    }
}

/// A queue with one writer, one reader, and a short lock: once for each message written, once for
/// each batch read.
///
/// Items that the reader has taken count until it reports them as done. The marks therefore bound
/// everything on the way, not only what is in the list. Otherwise the reader could take a full
/// queue and let the writer fill it a second time.
///
/// Invariant: no user code runs under the lock, and no task is woken under it.
pub(in crate::socket) struct Queue<T> {
    mark: HighWaterMark,
    /// The limit of messages from the share of the peer. It replaces the mark where it is lower.
    share: Arc<Share>,
    /// True if only the last message is kept. Such a queue has no mark.
    conflates: bool,
    /// True if `state.reader` is set. It is changed under the lock and read without it.
    reader_waits: AtomicBool,
    state: Mutex<State<T>>,
}

/// The mark of a queue that keeps one message.
const ANY: HighWaterMark = HighWaterMark { messages: usize::MAX, bytes: usize::MAX };

struct State<T> {
    items: Items<T>,
    /// The number of items at which items that cancel each other out are removed. It is twice the
    /// number left the last time, so the cost per item is constant.
    settle_at: usize,
    /// The number of messages in `items` and of those that were taken and are not done.
    messages: usize,
    bytes: usize,
    closed: bool,
    /// The backlog to which unfinished messages count since the connection has ended.
    leftovers: Option<Arc<Leftovers>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The queued items, in order.
pub(in crate::socket) struct Items<T> {
    pub(in crate::socket) list: VecDeque<T>,
    /// A spare buffer for the next run.
    pub(in crate::socket) spare: Vec<u8>,
}

impl<T> Items<T> {
    pub(in crate::socket) fn new() -> Self {
        Self { list: VecDeque::new(), spare: Vec::new() }
    }
}

/// The items that a reader has taken from a queue.
pub(in crate::socket) struct Taken<T> {
    pub(in crate::socket) items: Items<T>,
    /// The amount that the reader is done with and has not reported yet.
    pub(in crate::socket) done: Done,
    /// The waker that was registered last.
    waiting: Option<Waker>,
}

/// Drops all messages but the last. Returns the amount that was dropped.
pub(in crate::socket) fn keep_last<T: Payload>(list: &mut VecDeque<T>) -> Done {
    let (mut dropped, mut is_last) = (Done::default(), true);
    let mut kept = VecDeque::with_capacity(list.len());
    while let Some(mut item) = list.pop_back() {
        let size = item.size();
        // Items without messages, such as subscriptions, are all kept.
        if size.messages > 0 && !mem::replace(&mut is_last, false) {
            dropped.add(&item);
            continue;
        }
        if size.messages > 0 {
            item.keep_last();
            dropped.messages += size.messages - item.size().messages;
            dropped.bytes += size.bytes - item.size().bytes;
        }
        kept.push_front(item);
    }
    *list = kept;
    dropped
}

impl<T: Payload> Items<T> {
    /// Appends the items of another list. An item without messages may be left there.
    fn append(&mut self, other: &mut Self) {
        let is_joined = match (self.list.back_mut(), &mut other.list) {
            (Some(last), list) if list.len() == 1 => list.iter_mut().all(|next| last.join(next)),
            _ => false,
        };
        if !is_joined {
            self.list.append(&mut other.list);
        }
    }
}

impl<T> Taken<T> {
    pub(in crate::socket) fn nothing() -> Self {
        Self { items: Items::new(), done: Done::default(), waiting: None }
    }

    fn is_waiting(&self, context: &Context<'_>) -> bool {
        self.waiting.as_ref().is_some_and(|known| known.will_wake(context.waker()))
    }
}

/// The reason why an item was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::socket) enum Refused {
    /// The mark is reached.
    Full,
    /// The queue is closed, so no reader will take the item.
    Closed,
}

/// An amount of messages and bytes that were taken and are done.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::socket) struct Done {
    pub(in crate::socket) messages: usize,
    pub(in crate::socket) bytes: usize,
}

impl Done {
    #[inline]
    pub(in crate::socket) fn add<T: Payload>(&mut self, item: &T) {
        let size = item.size();
        self.messages += size.messages;
        self.bytes += size.bytes;
    }
}

impl<T: Payload> State<T> {
    #[cold]
    fn keep_last(&mut self) {
        let dropped = keep_last(&mut self.items.list);
        self.messages -= dropped.messages;
        self.bytes -= dropped.bytes;
    }
}

impl<T> State<T> {
    fn size(&self) -> Done {
        Done { messages: self.messages, bytes: self.bytes }
    }

    fn has_room(&self, mark: HighWaterMark) -> bool {
        self.messages < mark.messages && self.bytes < mark.bytes
    }

    /// Subtracts the amount that the reader is done with. Returns the parties to notify, which the
    /// caller does after it has released the lock.
    fn finish(&mut self, done: &mut Done, mark: HighWaterMark) -> Freed {
        if done.messages == 0 {
            return Freed { writer: None, leftovers: None };
        }
        let before = self.size();
        // Saturating: `close_and_take` may have reset the counts since these messages were taken.
        self.messages = before.messages.saturating_sub(done.messages);
        self.bytes = before.bytes.saturating_sub(done.bytes);
        *done = Done::default();
        // The writer is woken at half the mark, not at the first free place. Otherwise a full queue
        // would wake it once for each message.
        let is_low = self.messages <= mark.messages / 2 && self.bytes <= mark.bytes / 2;
        let freed = Done { messages: before.messages - self.messages, bytes: before.bytes - self.bytes };
        Freed {
            writer: if is_low { self.writer.take() } else { None },
            leftovers: self.leftovers.clone().map(|leftovers| (leftovers, freed)),
        }
    }
}

/// The parties to notify of new room.
#[must_use]
struct Freed {
    writer: Option<Waker>,
    leftovers: Option<(Arc<Leftovers>, Done)>,
}

impl Freed {
    fn tell(self) {
        if let Some((leftovers, freed)) = self.leftovers {
            leftovers.subtract(freed);
        }
        wake(self.writer);
    }
}

impl<T: Payload> Queue<T> {
    pub(in crate::socket) fn new(mark: HighWaterMark, share: Arc<Share>) -> Self {
        let state = State {
            items: Items::new(),
            settle_at: SETTLE_ITEMS,
            messages: 0,
            bytes: 0,
            closed: false,
            leftovers: None,
            reader: None,
            writer: None,
        };
        Self { mark, share, conflates: false, reader_waits: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Makes the queue keep only the last message, if `conflates`.
    pub(in crate::socket) fn conflating(self, conflates: bool) -> Self {
        Self { conflates, mark: if conflates { ANY } else { self.mark }, ..self }
    }

    /// Returns the mark that bounds the queue now.
    #[inline]
    pub(in crate::socket) fn mark(&self) -> HighWaterMark {
        HighWaterMark { messages: self.mark.messages.min(self.share.messages()), bytes: self.mark.bytes }
    }

    /// Returns true if the mark is divided among several peers. If the mark is so small that each
    /// peer has all of it, turns are short anyway.
    pub(in crate::socket) fn is_shared(&self) -> bool {
        self.share.messages() < self.mark.messages
    }

    /// Queues a message of `bytes` bytes if there is room. A single message may exceed the mark.
    /// `add` appends it under the lock; it moves the message from its place only when there is
    /// room, which saves moves back and forth.
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
        let mark = self.mark();
        if !state.has_room(mark) {
            return Err(Refused::Full);
        }
        let before = state.messages;
        while state.has_room(mark)
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

    /// Queues an item even if there is no room. It does not count towards the mark.
    /// [`Payload::settle`] bounds the number of such items.
    pub(in crate::socket) fn push_uncounted(&self, item: T) {
        let mut state = self.state();
        if !state.closed {
            state.items.list.push_back(item);
            if state.items.list.len() >= state.settle_at {
                T::settle(&mut state.items.list);
                state.settle_at = SETTLE_ITEMS.max(2 * state.items.list.len());
            }
        }
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
    }

    /// Queues an item even if there is no room, and counts it.
    pub(in crate::socket) fn push_beyond_mark(&self, item: T) {
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
    pub(in crate::socket) fn push_batch(&self, batch: &mut Items<T>, size: Done) -> bool {
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
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
        true
    }

    /// Returns the number of messages and bytes for which there is room. If there is none, the
    /// writer is woken when half of the queue is free. A closed queue has unlimited room, because
    /// it keeps nothing.
    pub(in crate::socket) fn poll_room(&self, context: &mut Context<'_>) -> Poll<Done> {
        let mut state = self.state();
        if state.closed {
            return Poll::Ready(Done { messages: usize::MAX, bytes: usize::MAX });
        }
        let mark = self.mark();
        if state.has_room(mark) {
            return Poll::Ready(Done { messages: mark.messages - state.messages, bytes: mark.bytes - state.bytes });
        }
        remember(&mut state.writer, context);
        Poll::Pending
    }

    /// Returns true if there is room now.
    pub(in crate::socket) fn has_room(&self) -> bool {
        self.state().has_room(self.mark())
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
        let freed = state.finish(&mut taken.done, self.mark());
        let answer = if !state.items.list.is_empty() {
            // A swap moves no items, and leaves each side with memory for the next batch.
            mem::swap(&mut state.items.list, &mut taken.items.list);
            keep_larger(&mut state.items.spare, &mut taken.items.spare);
            Poll::Ready(true)
        } else if state.closed {
            Poll::Ready(false)
        } else {
            remember(&mut state.reader, context);
            remember(&mut taken.waiting, context);
            self.reader_waits.store(true, Ordering::Release);
            Poll::Pending
        };
        drop(state);
        freed.tell();
        answer
    }

    /// Reports as done an amount of what the reader took. The writer is woken once half of the
    /// queue is free.
    pub(in crate::socket) fn done(&self, done: &mut Done) {
        if done.messages == 0 {
            return;
        }
        let mut state = self.state();
        let freed = state.finish(done, self.mark());
        drop(state);
        freed.tell();
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
    /// `leftovers`.
    pub(in crate::socket) fn close_leaving(&self, leftovers: &Arc<Leftovers>) {
        let mut state = self.state();
        if state.leftovers.is_none() {
            leftovers.add(state.size());
            state.leftovers = Some(leftovers.clone());
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
        let leftovers = state.leftovers.clone();
        drop(state);
        free(leftovers, freed);
        wake(wakers.0);
        wake(wakers.1);
        items.list
    }

    /// Counts an amount that the reader took from elsewhere as if it had been queued here.
    pub(in crate::socket) fn adopt(&self, size: Done) {
        let mut state = self.state();
        state.messages += size.messages;
        state.bytes += size.bytes;
    }

    /// Wakes the writer if it waits and there is room. Called when the mark may have changed.
    pub(in crate::socket) fn wake_writer(&self) {
        let mut state = self.state();
        let writer = if state.has_room(self.mark()) { state.writer.take() } else { None };
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
    pub(in crate::socket) fn size(&self) -> Done {
        let state = self.state();
        if state.leftovers.is_some() { Done::default() } else { state.size() }
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

/// Leaves the larger of two buffers in `first`.
fn keep_larger(first: &mut Vec<u8>, second: &mut Vec<u8>) {
    if first.capacity() < second.capacity() {
        mem::swap(first, second);
    }
}

fn remember(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(known) if known.will_wake(context.waker()) => {}
        _ => *place = Some(context.waker().clone()),
    }
}

fn free(leftovers: Option<Arc<Leftovers>>, freed: Done) {
    if let Some(leftovers) = leftovers {
        leftovers.subtract(freed);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
