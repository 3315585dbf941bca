//! Messages that wait for any peer, before those that wait for one.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::state::Shared;
use crate::protocol::Message;
use crate::socket::connection::pipe::Pipe;
use crate::socket::connection::queue_items::Outgoing;
use crate::socket::peers::peer_table::PeerTable;
use crate::socket::queue::items::Taken;

impl Shared {
    /// Queues a message for the next peer to connect. The caller has checked that there is room.
    pub(in crate::socket) fn push_backlog(&self, peer_table: &mut PeerTable, message: Message) {
        peer_table.push_backlog(Outgoing::Message(message));
        if self.options.conflates {
            peer_table.keep_last();
        }
        self.has_backlog.store(true, Ordering::Release);
    }

    /// Takes the hello message if it is still to be sent, else items of the backlog, else those
    /// queued for this peer. The backlog is older than the queue, so this keeps the order of the
    /// messages. Returns `false` when there is nothing and the queue is closed.
    pub(in crate::socket) fn poll_next_batch(
        &self,
        pipe: &Pipe,
        context: &mut Context<'_>,
        taken: &mut Taken<Outgoing>,
    ) -> Poll<bool> {
        if pipe.take_hello() {
            taken.items.list.extend(self.options.hello.clone().map(Outgoing::Hello));
            return Poll::Ready(true);
        }
        if self.take_backlog(pipe, &mut taken.items.list) {
            return Poll::Ready(true);
        }
        match pipe.outgoing.poll_take(context, taken) {
            // A sender to the backlog wakes the drivers that wait. The backlog must therefore be
            // checked again after the wait has begun.
            Poll::Pending if self.take_backlog(pipe, &mut taken.items.list) => Poll::Ready(true),
            outcome => outcome,
        }
    }

    /// Takes messages of the backlog for this peer. Costs one load if there are none.
    pub(super) fn take_backlog(&self, pipe: &Pipe, taken: &mut VecDeque<Outgoing>) -> bool {
        if !self.has_backlog.load(Ordering::Acquire) {
            return false;
        }
        let mut peer_table = self.peer_table();
        let size = peer_table.take_backlog(taken);
        if peer_table.backlog_size().messages == 0 {
            self.has_backlog.store(false, Ordering::Release);
        }
        let sender = peer_table.take_sender();
        drop(peer_table);
        pipe.outgoing.count_taken(size);
        if let Some(sender) = sender {
            sender.wake();
        }
        size.messages > 0
    }

    /// Returns true if messages wait in the backlog for a peer.
    pub(in crate::socket) fn has_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Acquire)
    }
}
