//! The received messages of one peer, as a source of the socket's fair queue.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::pipe::{Pipe, REPORT_AFTER_MESSAGES};
use super::queue_items::Incoming;
use crate::fair_queue::ReadAhead;
use crate::protocol::Message;
use crate::socket::peers::remote_peer::RemotePeers;
use crate::socket::queue::items::{QueueItem as _, Taken};

/// The messages of one peer, as a source of the socket's fair queue. It ends when the connection
/// has ended and all messages were read.
pub(in crate::socket) struct Inbox {
    pipe: Arc<Pipe>,
    /// Waits until the inbox of the previous connection has been read. This keeps the order of
    /// messages across a reconnect.
    predecessor: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    taken: Taken<Incoming>,
    report_after: usize,
    /// The register of remote peers. The peer is kept there for as long as messages of the peer may
    /// be left.
    remote_peers: Arc<RemotePeers>,
}

impl Inbox {
    pub(in crate::socket) fn new(
        pipe: Arc<Pipe>,
        predecessor: Option<CancellationToken>,
        remote_peers: Arc<RemotePeers>,
    ) -> Self {
        let predecessor = predecessor.map(|fully_read| Box::pin(fully_read.cancelled_owned()));
        Self { pipe, predecessor, taken: Taken::nothing(), report_after: 1, remote_peers }
    }
}

impl Inbox {
    /// Returns true if a single message was taken.
    fn has_one(&self) -> bool {
        let list = &self.taken.items.list;
        list.len() == 1 && list.iter().all(|item| item.size().messages == 1)
    }

    /// Returns the next message of those that were taken from the queue.
    #[inline]
    fn next(&mut self) -> Option<Message> {
        let Taken { items, done, .. } = &mut self.taken;
        while let Incoming::Run(run) = items.list.front_mut()? {
            if let Some(mut message) = run.pop() {
                done.add(&message);
                if !self.pipe.routing_id.is_empty() {
                    message.push_front(self.pipe.routing_id.clone());
                }
                return Some(message);
            }
            if let Some(Incoming::Run(run)) = items.list.pop_front() {
                items.keep(run);
            }
        }
        let Some(Incoming::Message(message)) = items.list.pop_front() else { return None };
        done.add(&message);
        Some(message)
    }
}

impl ReadAhead for Inbox {
    #[inline]
    fn take_ready(&mut self, messages: &mut Vec<Message>, limit: usize) {
        let Some(Incoming::Run(run)) = self.taken.items.list.front_mut() else { return };
        let (first, before) = (messages.len(), run.size());
        run.pop_into(messages, limit.min(self.report_after));
        let after = run.size();
        self.taken.done.messages += before.messages - after.messages;
        self.taken.done.bytes += before.bytes - after.bytes;
        if !self.pipe.routing_id.is_empty() {
            messages[first..].iter_mut().for_each(|message| message.push_front(self.pipe.routing_id.clone()));
        }
        if self.taken.done.messages >= self.report_after {
            self.pipe.incoming.done(&mut self.taken.done);
        }
    }
}

impl Stream for Inbox {
    type Item = Message;

    // Always inlined: the fair queue polls it in more than one place, and returning a message from
    // a separate function costs a copy.
    #[inline(always)]
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        let inbox = &mut *self;
        if let Some(predecessor) = &mut inbox.predecessor {
            ready!(predecessor.as_mut().poll(context));
            inbox.predecessor = None;
        }
        loop {
            if let Some(message) = inbox.next() {
                if inbox.taken.done.messages >= inbox.report_after {
                    inbox.pipe.incoming.done(&mut inbox.taken.done);
                }
                return Poll::Ready(Some(message));
            }
            match inbox.pipe.incoming.poll_take(context, &mut inbox.taken) {
                Poll::Ready(true) => {
                    inbox.pipe.expects_reply.store(inbox.has_one(), Ordering::Relaxed);
                    // At a quarter of the high-water mark at the latest: the writer waits until
                    // half of the queue is free, and unreported messages count as if they were
                    // still there.
                    inbox.report_after =
                        REPORT_AFTER_MESSAGES.min(inbox.pipe.incoming.high_water_mark().messages / 4).max(1);
                }
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Drops the unread messages, closes the queue to its driver, and lets the next connection of the
/// peer be read.
impl Drop for Inbox {
    fn drop(&mut self) {
        self.pipe.incoming.close_and_take();
        self.remote_peers.remove(self.pipe.id);
        // This comes last: from now on the next connection of the peer can be read.
        self.pipe.fully_read.cancel();
    }
}
