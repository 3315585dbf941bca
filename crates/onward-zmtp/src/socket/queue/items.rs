//! The items of a queue, and the memory that they take.

use std::collections::VecDeque;
use std::mem;
use std::task::{Context, Waker};

use crate::socket::bounds::IDLE_QUEUE_BYTES;

/// An item of a queue, which counts by its messages and their payload.
pub(in crate::socket) trait QueueItem {
    /// Returns the number of messages and the size of their payload.
    fn size(&self) -> Amount;

    /// Returns the memory that the item leaves as a [spare buffer](Items::spare), in bytes.
    fn spare_memory(&self) -> usize {
        0
    }

    /// Drops all messages but the last.
    fn keep_last(&mut self) {}

    /// Appends the content of `next` to this item if possible, and returns true if so. `next`
    /// contains no messages afterwards.
    fn join(&mut self, _next: &mut Self) -> bool {
        false
    }

    /// Removes items that cancel each other out, among those that do not count towards the
    /// high-water mark.
    fn compact(_list: &mut VecDeque<Self>)
    where
        Self: Sized,
    {
    }
}

/// An amount of messages and bytes that were taken and are done.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::socket) struct Amount {
    pub(in crate::socket) messages: usize,
    pub(in crate::socket) bytes: usize,
}

impl Amount {
    #[inline]
    pub(in crate::socket) fn add<T: QueueItem>(&mut self, item: &T) {
        let size = item.size();
        self.messages += size.messages;
        self.bytes += size.bytes;
    }
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

impl<T: QueueItem> Items<T> {
    /// Returns true if an idle connection should not keep the memory of these items.
    #[inline]
    pub(in crate::socket) fn is_large(&self) -> bool {
        let last = self.list.back().map_or(0, QueueItem::spare_memory);
        self.list.capacity() * size_of::<T>() > IDLE_QUEUE_BYTES || self.spare.capacity().max(last) > IDLE_QUEUE_BYTES
    }

    /// Releases the memory that only a busy connection needs. Items are kept.
    pub(in crate::socket) fn shrink_idle(&mut self) {
        if self.is_large() {
            self.list.shrink_to_fit();
            self.spare = Vec::new();
        }
    }

    /// Moves the memory of empty items here, where it is larger. This list must be empty.
    pub(super) fn adopt(&mut self, other: &mut Self) {
        if self.list.capacity() < other.list.capacity() {
            mem::swap(&mut self.list, &mut other.list);
        }
        keep_larger(&mut self.spare, &mut other.spare);
    }
}

/// The items that a reader has taken from a queue.
pub(in crate::socket) struct Taken<T> {
    pub(in crate::socket) items: Items<T>,
    /// The amount that the reader is done with and has not reported yet.
    pub(in crate::socket) done: Amount,
    /// The waker that was registered last.
    pub(super) waiting: Option<Waker>,
}

/// Drops all messages but the last. Returns the amount that was dropped.
pub(in crate::socket) fn keep_last<T: QueueItem>(list: &mut VecDeque<T>) -> Amount {
    let (mut dropped, mut is_last) = (Amount::default(), true);
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

impl<T: QueueItem> Items<T> {
    /// Appends the items of another list. An item without messages may be left there.
    pub(super) fn append(&mut self, other: &mut Self) {
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
        Self { items: Items::new(), done: Amount::default(), waiting: None }
    }

    pub(super) fn is_waiting(&self, context: &Context<'_>) -> bool {
        self.waiting.as_ref().is_some_and(|known| known.will_wake(context.waker()))
    }
}

/// Leaves the larger of two buffers in `first`.
pub(super) fn keep_larger(first: &mut Vec<u8>, second: &mut Vec<u8>) {
    if first.capacity() < second.capacity() {
        mem::swap(first, second);
    }
}
