//! The queue between a socket and the driver of one connection, with marks that its writer feels.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use super::leftovers::Leftovers;
use super::limits::SETTLE_ITEMS;
use super::options::HighWaterMark;
use super::share::Share;
use crate::fair_queue::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// What is in a queue counts by its messages and their payload.
pub(super) trait Payload {
    /// How many messages it is, and how large they are.
    fn size(&self) -> Done;

    /// Drops all messages but the last.
    fn keep_last(&mut self) {}

    /// Takes over all that the next one is, which is of no messages then, if it can.
    fn join(&mut self, _next: &mut Self) -> bool {
        false
    }

    /// Takes away what has no effect together, among what does not count.
    fn settle(_list: &mut VecDeque<Self>)
    where
        Self: Sized,
    {
    }
}

/// One writer, one reader, and a lock that is held for a moment: once for each message written, once for each batch read.
///
/// What the reader has taken counts until it says that it is done with it, so that marks bound what is anywhere on the way.
///
/// Invariant: no code of the user's runs under the lock, and nobody is woken under it.
pub(super) struct Queue<T> {
    mark: HighWaterMark,
    /// How many messages there may be in place of the mark, if that is fewer.
    share: Arc<Share>,
    /// Whether only the last message is kept. Then there is no mark.
    conflates: bool,
    /// Whether `reader` of the state is there. Changed under the lock, and looked at without it.
    reader_waits: AtomicBool,
    state: Mutex<State<T>>,
}

/// The mark of a queue that keeps one message.
const ANY: HighWaterMark = HighWaterMark { messages: usize::MAX, bytes: usize::MAX };

struct State<T> {
    items: Items<T>,
    /// How many items there may be until those of no effect are taken away. Twice as many as were left the last time, so that it costs each a constant time.
    settle_at: usize,
    /// Of `items`, and of those that were taken and are not done.
    messages: usize,
    bytes: usize,
    closed: bool,
    /// Where what is not done counts since the connection has ended.
    leftovers: Option<Arc<Leftovers>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What is queued, in order.
pub(super) struct Items<T> {
    pub(super) list: VecDeque<T>,
    /// Memory that whoever adds to the list may use.
    pub(super) spare: Vec<u8>,
}

impl<T> Items<T> {
    pub(super) fn new() -> Self {
        Self { list: VecDeque::new(), spare: Vec::new() }
    }
}

/// What a reader has taken from a queue.
pub(super) struct Taken<T> {
    pub(super) items: Items<T>,
    /// What it is done with since it last said so.
    pub(super) done: Done,
    /// Who waited last.
    waiting: Option<Waker>,
}

/// Drops all messages but the last. Returns how much was dropped.
pub(super) fn keep_last<T: Payload>(list: &mut VecDeque<T>) -> Done {
    let (mut dropped, mut is_last) = (Done::default(), true);
    let mut kept = VecDeque::with_capacity(list.len());
    while let Some(mut item) = list.pop_back() {
        let size = item.size();
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
    /// Adds what is in another list. Something of no messages may be left there.
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
    pub(super) fn nothing() -> Self {
        Self { items: Items::new(), done: Done::default(), waiting: None }
    }

    fn is_waiting(&self, context: &Context<'_>) -> bool {
        self.waiting.as_ref().is_some_and(|known| known.will_wake(context.waker()))
    }
}

/// Why an item was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A mark is reached.
    Full,
    /// Nobody will read it.
    Closed,
}

/// What was taken and is done with.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Done {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

impl Done {
    #[inline]
    pub(super) fn add<T: Payload>(&mut self, item: &T) {
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

    /// Takes away what the reader is done with. Whoever is to hear of it is told outside the lock.
    fn finish(&mut self, done: &mut Done, mark: HighWaterMark) -> Freed {
        if done.messages == 0 {
            return Freed { writer: None, leftovers: None };
        }
        let before = self.size();
        self.messages = before.messages.saturating_sub(done.messages);
        self.bytes = before.bytes.saturating_sub(done.bytes);
        *done = Done::default();
        let is_low = self.messages <= mark.messages / 2 && self.bytes <= mark.bytes / 2;
        let freed = Done { messages: before.messages - self.messages, bytes: before.bytes - self.bytes };
        Freed {
            writer: if is_low { self.writer.take() } else { None },
            leftovers: self.leftovers.clone().map(|leftovers| (leftovers, freed)),
        }
    }
}

/// Who is to hear that there is more room.
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
    pub(super) fn new(mark: HighWaterMark, share: Arc<Share>) -> Self {
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

    /// Keeps only the last message.
    pub(super) fn conflating(self, conflates: bool) -> Self {
        Self { conflates, mark: if conflates { ANY } else { self.mark }, ..self }
    }

    /// What bounds it now.
    #[inline]
    pub(super) fn mark(&self) -> HighWaterMark {
        HighWaterMark { messages: self.mark.messages.min(self.share.messages()), bytes: self.mark.bytes }
    }

    /// Whether the mark is divided among several peers. Where it is so small that each has all of it, turns are short anyway.
    pub(super) fn is_shared(&self) -> bool {
        self.share.messages() < self.mark.messages
    }

    /// Queues a message of so many bytes if there is room. A single one may be larger than the mark. `add` adds it, under the lock: it moves it from where
    /// it is, which saves that it goes to and fro while there is no room.
    #[inline]
    pub(super) fn push(&self, bytes: usize, add: impl FnOnce(&mut Items<T>)) -> Result<(), Refused> {
        let mut add = Some(add);
        self.push_each(|items| add.take().map(|add| add(items)).map(|()| bytes)).map(drop)
    }

    /// Queues messages for as long as there is room and `add` adds one and answers how large it was. Answers how many.
    #[inline]
    pub(super) fn push_each(&self, mut add: impl FnMut(&mut Items<T>) -> Option<usize>) -> Result<usize, Refused> {
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
        let reader = self.take_reader(&mut state);
        drop(state);
        wake(reader);
        Ok(count)
    }

    /// Queues an item whether or not there is room. It does not count; such items are bounded by how many have an effect.
    pub(super) fn push_uncounted(&self, item: T) {
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

    /// Queues an item whether or not there is room, and counts it.
    pub(super) fn push_beyond_mark(&self, item: T) {
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

    /// Moves a batch into the queue, for which its writer has made sure of room. Answers whether it is wanted.
    pub(super) fn push_batch(&self, batch: &mut Items<T>, size: Done) -> bool {
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

    /// How many messages and bytes there is room for (any number when the queue is closed, for nothing is kept then); the writer is woken when half of the queue is free, if there is no room now.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<Done> {
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

    /// Whether there is room now.
    pub(super) fn has_room(&self) -> bool {
        self.state().has_room(self.mark())
    }

    /// Moves everything that is queued to `taken`, which must be empty. `false` when there is nothing and never will be. The reader is done with what it
    /// took before.
    pub(super) fn poll_take(&self, context: &mut Context<'_>, taken: &mut Taken<T>) -> Poll<bool> {
        if taken.done.messages == 0 && self.reader_waits() && taken.is_waiting(context) {
            return Poll::Pending;
        }
        let mut state = self.state();
        let freed = state.finish(&mut taken.done, self.mark());
        let answer = if !state.items.list.is_empty() {
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

    /// The reader is done with so much of what it took. The writer is woken once half of the queue is free.
    pub(super) fn done(&self, done: &mut Done) {
        if done.messages == 0 {
            return;
        }
        let mut state = self.state();
        let freed = state.finish(done, self.mark());
        drop(state);
        freed.tell();
    }

    /// No more is queued from now on; what is there can still be read. Wakes both.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let wakers = (self.take_reader(&mut state), state.writer.take());
        drop(state);
        wake(wakers.0);
        wake(wakers.1);
    }

    /// The same; and from now on what is there counts among `leftovers`.
    pub(super) fn close_leaving(&self, leftovers: &Arc<Leftovers>) {
        let mut state = self.state();
        if state.leftovers.is_none() {
            leftovers.add(state.size());
            state.leftovers = Some(leftovers.clone());
        }
        drop(state);
        self.close();
    }

    /// Takes everything away and closes.
    pub(super) fn close_and_take(&self) -> VecDeque<T> {
        let mut state = self.state();
        // At once: what was queued in between would be in neither.
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

    /// The reader took so much from elsewhere, which counts as if it had been queued here.
    pub(super) fn adopt(&self, size: Done) {
        let mut state = self.state();
        state.messages += size.messages;
        state.bytes += size.bytes;
    }

    /// Wakes the writer if it waits for room and there is some, for the mark may be another.
    pub(super) fn wake_writer(&self) {
        let mut state = self.state();
        let writer = if state.has_room(self.mark()) { state.writer.take() } else { None };
        drop(state);
        wake(writer);
    }

    /// Wakes the reader without a reason of this queue.
    pub(super) fn wake_reader(&self) {
        let reader = self.take_reader(&mut self.state());
        wake(reader);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Whether the reader waits. Nothing is queued then, and may be.
    #[inline]
    pub(super) fn reader_waits(&self) -> bool {
        self.reader_waits.load(Ordering::Acquire)
    }

    /// Whether nothing is queued, nor taken and not done.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.items.list.is_empty() && state.messages == 0
    }

    /// How many messages and bytes are on the way; none once they count elsewhere.
    pub(super) fn size(&self) -> Done {
        let state = self.state();
        if state.leftovers.is_some() { Done::default() } else { state.size() }
    }

    /// Whoever is to be woken, for it no longer waits.
    fn take_reader(&self, state: &mut State<T>) -> Option<Waker> {
        self.reader_waits.store(false, Ordering::Release);
        state.reader.take()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the larger of two pieces of memory in the first place.
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
