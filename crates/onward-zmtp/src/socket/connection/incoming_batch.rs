//! The delivery of received messages to the program.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::pipe::Pipe;
use super::queue_items::Incoming;
use crate::protocol::{Message, MessageRun};
use crate::socket::queue::items::{Amount, Items, QueueItem as _};
use crate::socket::shared::Shared;

/// A batch of messages for the queue to the program.
pub(super) struct IncomingBatch {
    shared: Arc<Shared>,
    pipe: Arc<Pipe>,
    /// True once the unread backlog of earlier connections has let this one be read.
    is_admitted: bool,
    receives: bool,
    batch: Items<Incoming>,
    size: Amount,
    /// The room at the last check, less what was queued since. The real room may be larger.
    room: Amount,
}

impl IncomingBatch {
    pub(super) fn new(shared: Arc<Shared>, pipe: Arc<Pipe>) -> Self {
        let (size, room) = (Amount::default(), Amount::default());
        let receives = shared.receives();
        Self { shared, pipe, is_admitted: false, receives, batch: Items::new(), size, room }
    }

    /// Waits until there is room.
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_admitted {
            ready!(self.shared.unread_backlog.poll_room(self.pipe.id, context));
            self.is_admitted = true;
        }
        // The remembered room is too large once more peers share the high-water mark.
        if self.has_room() && self.room.messages <= self.pipe.incoming.high_water_mark().messages {
            return Poll::Ready(());
        }
        self.pipe.incoming.poll_room(context).map(|room| self.room = room)
    }

    /// Returns true if the batch can take more.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.size.messages < self.room.messages && self.size.bytes < self.room.bytes
    }

    #[inline]
    pub(super) fn message(&mut self, mut message: Message) {
        if !self.receives {
            return self.shared.drop_incoming(1);
        }
        if !self.pipe.routing_id.is_empty() {
            message.push_front(self.pipe.routing_id.clone());
        }
        self.size.add(&message);
        self.batch.list.push_back(Incoming::Message(message));
    }

    /// Returns true if messages may be added in runs. Otherwise they are dropped one by one.
    pub(super) fn takes_runs(&self) -> bool {
        self.receives
    }

    /// Calls `add` to add messages to a run. `add` gets the room in messages and bytes. Returns
    /// true if it added any. The identity is put in front of each message when it is read.
    #[inline]
    pub(super) fn fill_run(&mut self, add: impl FnOnce(&mut MessageRun, Amount)) -> bool {
        let mut run = self.last_run();
        let before = run.size();
        let messages = self.room.messages.saturating_sub(self.size.messages);
        add(&mut run, Amount { messages, bytes: self.room.bytes.saturating_sub(self.size.bytes) });
        let after = run.size();
        self.size.messages += after.messages - before.messages;
        self.size.bytes += after.bytes - before.bytes;
        if after.messages == 0 {
            self.batch.keep(run);
        } else {
            self.batch.list.push_back(Incoming::Run(run));
        }
        after.messages > before.messages
    }

    /// Takes the last run out of the batch if it has room; otherwise returns a new one.
    fn last_run(&mut self) -> MessageRun {
        let list = &mut self.batch.list;
        if matches!(list.back(), Some(Incoming::Run(run)) if run.has_room())
            && let Some(Incoming::Run(run)) = list.pop_back()
        {
            return run;
        }
        MessageRun::in_buffer(mem::take(&mut self.batch.spare))
    }

    pub(super) fn subscribed(&mut self, topic: &Bytes) {
        if let Some(notice) = self.shared.subscribed(&self.pipe, topic) {
            self.message(notice);
        }
    }

    pub(super) fn cancelled(&mut self, topic: &Bytes) {
        if let Some(notice) = self.shared.cancelled(&self.pipe, topic) {
            self.message(notice);
        }
    }

    /// Returns true if [`shrink_idle`](Self::shrink_idle) would release memory.
    #[inline]
    pub(super) fn can_shrink(&self) -> bool {
        self.batch.is_large()
    }

    /// Releases the memory that only a busy connection needs.
    pub(super) fn shrink_idle(&mut self) {
        self.batch.shrink_idle();
    }

    /// Queues the batch.
    pub(super) fn flush(&mut self) {
        if self.size.messages == 0 {
            return;
        }
        let size = mem::take(&mut self.size);
        self.room.messages = self.room.messages.saturating_sub(size.messages);
        self.room.bytes = self.room.bytes.saturating_sub(size.bytes);
        if !self.pipe.incoming.push_batch(&mut self.batch, size) {
            self.shared.drop_incoming(size.messages);
            self.batch.list.clear();
        }
    }
}
