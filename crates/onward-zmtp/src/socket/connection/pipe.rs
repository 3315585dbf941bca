//! The pipe between a socket and one peer: one queue in each direction.
//!
//! A message takes this way from `send` to the peer's `recv`:
//!
//! 1. `SendCore` checks its size, and a pattern (`patterns/`) chooses the pipes. Without a peer, a
//!    message that any peer may get goes to the backlog of the peer table.
//! 2. [`Pipe::send`] queues it in `outgoing`. A short message is encoded here, behind others, into
//!    a [`MessageRun`](crate::protocol::MessageRun). The reply to a message that came alone skips
//!    the queue: [`DirectWriter`] writes it from the task of the program.
//! 3. The `Driver` of the connection takes the whole queue with one lock, backlog first. It encodes
//!    a batch into the `Output` of the protocol and writes the batch to the stream.
//! 4. The peer's `Driver` reads into the `Input` of the protocol, decodes, and collects an
//!    `IncomingBatch`. It queues the batch in `incoming` once for each turn.
//! 5. The [`Inbox`](super::inbox::Inbox) of the peer is a source of the socket's fair queue, from
//!    which `recv` takes the message.
//!
//! Each queue has a high-water mark. A full `outgoing` makes `send` wait. A full `incoming` stops
//! the reads from the stream, which in the end fills the `outgoing` of the peer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::driver::DirectWriter;
use super::queue_items::{Incoming, Outgoing};
use crate::fair_queue::SourceId;
use crate::protocol::Message;
use crate::socket::options::send_limits::SendLimits;
use crate::socket::options::socket_options::SocketOptions;
use crate::socket::queue::bounded_queue::{Queue, Refused};
use crate::socket::queue::quota::Quota;

/// The number of messages that are read before the driver is notified. One notification for each
/// message would cost a lock each.
pub(super) const REPORT_AFTER_MESSAGES: usize = 64;

/// A pipe to one connected peer. A peer that reconnects gets a new pipe.
pub(in crate::socket) struct Pipe {
    pub(in crate::socket) id: u64,
    pub(in crate::socket) outgoing: Queue<Outgoing>,
    pub(in crate::socket) incoming: Queue<Incoming>,
    /// True if short messages are encoded when they are sent, which is so for connections over a
    /// stream.
    encodes: bool,
    /// The name by which a ROUTER addresses the peer; empty for other sockets.
    pub(in crate::socket) routing_id: Bytes,
    /// Cancelled when the connection has ended and all of its messages have been read.
    pub(in crate::socket) fully_read: CancellationToken,
    /// Ends the connection when it is cancelled.
    pub(in crate::socket) stop: CancellationToken,
    /// The id of its inbox in the fair queue, if it has one.
    pub(in crate::socket) source: OnceLock<SourceId>,
    /// True until the peer has been given the hello message, which goes before all others.
    awaits_hello: AtomicBool,
    /// The number of the last publication that was meant for this peer.
    publication: AtomicU64,
    /// True if the message that the program read last arrived alone. The peer is then probably
    /// waiting for the reply.
    pub(super) expects_reply: AtomicBool,
    /// The writer for that reply, if the connection is over a stream. It saves a switch to the
    /// driver's task.
    direct_writer: OnceLock<DirectWriter>,
}

impl Pipe {
    /// Creates a pipe. `quota` limits the messages of this peer that may wait for the program to
    /// read them.
    pub(in crate::socket) fn new(
        id: u64,
        routing_id: Bytes,
        stop: CancellationToken,
        options: &SocketOptions,
        quota: Arc<Quota>,
        encodes: bool,
    ) -> Self {
        Self {
            id,
            encodes,
            outgoing: Queue::new(options.send_high_water_mark, Arc::new(Quota::unlimited()))
                .conflating(options.conflates),
            incoming: Queue::new(options.receive_high_water_mark, quota).conflating(options.conflates),
            routing_id,
            fully_read: CancellationToken::new(),
            stop,
            source: OnceLock::new(),
            awaits_hello: AtomicBool::new(options.hello.is_some()),
            publication: AtomicU64::new(0),
            expects_reply: AtomicBool::new(false),
            direct_writer: OnceLock::new(),
        }
    }

    /// Allows direct writes to the connection from now on.
    pub(super) fn allow_direct_writes(&self, direct_writer: DirectWriter) {
        // Only this call sets it, so it cannot have been set before.
        let _ = self.direct_writer.set(direct_writer);
    }

    /// Queues a message for the peer if there is room. If it succeeds, `slot` is `None` afterwards.
    #[inline]
    pub(in crate::socket) fn send(&self, slot: &mut Option<Message>) -> Result<(), Refused> {
        let Some(message) = slot else { return Ok(()) };
        // `expects_reply` is a hint, so no ordering is needed: a wrong value costs one switch of
        // tasks.
        if self.expects_reply.load(Ordering::Relaxed) && self.write_directly(message) {
            *slot = None;
            return Ok(());
        }
        self.outgoing.push(message.byte_len(), |items| items.add(message, self.encodes))?;
        *slot = None;
        Ok(())
    }

    /// Returns true, once, if the peer must be sent its hello message now. Called by its driver.
    #[inline]
    pub(in crate::socket) fn take_hello(&self) -> bool {
        // The load comes first: it is cheaper than a swap for every batch.
        self.awaits_hello.load(Ordering::Relaxed) && self.awaits_hello.swap(false, Ordering::Relaxed)
    }

    /// Waits until there is room in the queue to the peer.
    pub(in crate::socket) fn poll_room(&self, context: Option<&mut Context<'_>>) -> Poll<()> {
        match context {
            Some(context) => self.outgoing.poll_room(context).map(drop),
            None if self.outgoing.has_room() => Poll::Ready(()),
            None => Poll::Pending,
        }
    }

    /// Writes the reply to a message that arrived alone. Messages after it are queued, because
    /// there may be many and the driver writes them in batches.
    fn write_directly(&self, message: &mut Message) -> bool {
        self.expects_reply.store(false, Ordering::Relaxed);
        self.direct_writer.get().is_some_and(|direct_writer| direct_writer.write(message))
    }

    /// Queues messages for the peer until there is no more room or one may not be sent. Returns the
    /// number queued, which are the first ones. The caller drops them.
    pub(in crate::socket) fn send_each(&self, messages: &mut [Message], limits: &SendLimits) -> Result<usize, Refused> {
        let mut messages = messages.iter_mut();
        self.outgoing.push_each(|items| {
            let message = messages.next().filter(|message| !message.is_empty() && limits.allow(message))?;
            let bytes = message.byte_len();
            items.add(message, self.encodes);
            Some(bytes)
        })
    }

    /// Queues a copy of a message that other peers get, too, if there is room.
    pub(in crate::socket) fn send_copy(&self, message: &Message) -> Result<(), Refused> {
        self.outgoing.push(message.byte_len(), |items| items.add_copy(message, self.encodes))
    }

    /// Returns true if this is the first call for this publication. It prevents a second copy to a
    /// peer whose subscriptions match more than once.
    pub(in crate::socket) fn is_first(&self, publication: u64) -> bool {
        self.publication.swap(publication, Ordering::Relaxed) != publication
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::socket::bounds::COMPACT_ITEMS;
    use crate::socket::queue::items::QueueItem as _;

    fn pipe() -> Pipe {
        let quota = Arc::new(Quota::unlimited());
        Pipe::new(1, Bytes::new(), CancellationToken::new(), &SocketOptions::new(), quota, true)
    }

    fn queued(pipe: &Pipe) -> VecDeque<Outgoing> {
        pipe.outgoing.close_and_take()
    }

    #[test]
    fn subscriptions_that_are_taken_back_while_a_peer_does_not_read_take_no_memory() {
        let pipe = pipe();
        for _ in 0..100 * COMPACT_ITEMS {
            pipe.outgoing.push_uncounted(Outgoing::Subscribe("a".into()));
            pipe.outgoing.push_uncounted(Outgoing::Cancel("a".into()));
        }
        assert!(queued(&pipe).len() <= COMPACT_ITEMS);
    }

    #[test]
    fn what_is_left_of_subscriptions_is_what_they_come_to() {
        let subscribe = |topic: &'static str| Outgoing::Subscribe(topic.into());
        let cancel = |topic: &'static str| Outgoing::Cancel(topic.into());
        let message = || Outgoing::Message("m".into());
        let mut list = VecDeque::from([
            subscribe("a"),
            cancel("told"),
            message(),
            cancel("a"),
            subscribe("b"),
            subscribe("told"),
            cancel("told"),
            subscribe("a"),
        ]);
        Outgoing::compact(&mut list);
        let left: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
        let expected = [subscribe("a"), cancel("told"), message(), subscribe("b")];
        assert_eq!(left, expected.map(|item| format!("{item:?}")));
    }
}
