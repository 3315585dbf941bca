//! The pipe between a socket and one peer: one queue in each direction.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use foldhash::fast::RandomState;
use futures_core::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::driver::AtOnce;
use crate::fair_queue::{Ahead, SourceId};
use crate::protocol::{Message, Run};
use crate::socket::options::send_limits::SendBounds;
use crate::socket::options::socket_options::SocketOptions;
use crate::socket::peers::remote_peer::Origins;
use crate::socket::queue::bounded_queue::{Done, Items, Payload, Queue, Refused, Taken};
use crate::socket::queue::quota::Share;

/// The number of messages that are read before the driver is notified. One notification for each
/// message would cost a lock each.
pub(in crate::socket) const DONE_MESSAGES: usize = 64;

/// An item that a socket gives to the driver of a connection.
#[derive(Debug, Clone)]
pub(in crate::socket) enum Outgoing {
    Message(Message),
    /// The first message to a peer. It is for this peer only and does not count towards the mark.
    Hello(Message),
    /// Short messages that were encoded when they were sent.
    Run(Run),
    Subscribe(Bytes),
    Cancel(Bytes),
}

impl Payload for Outgoing {
    #[inline]
    fn size(&self) -> Done {
        match self {
            Self::Message(message) => message.size(),
            Self::Run(run) => run.size(),
            Self::Hello(_) | Self::Subscribe(_) | Self::Cancel(_) => Done::default(),
        }
    }

    fn keep_last(&mut self) {
        if let Self::Run(run) = self {
            run.keep_last();
        }
    }

    /// Removes pairs of subscriptions and cancellations that undo each other.
    ///
    /// A socket alternates between subscribing to a topic and cancelling it, so at most one item of
    /// each topic is left. This bounds the list by the topics of the socket and those that the peer
    /// knows, even if the peer never reads.
    fn settle(list: &mut VecDeque<Self>) {
        let mut turns: HashMap<Bytes, usize, RandomState> = HashMap::default();
        for topic in list.iter().filter_map(Self::topic) {
            *turns.entry(topic.clone()).or_default() += 1;
        }
        list.retain(|item| {
            let Some(left) = item.topic().and_then(|topic| turns.get_mut(topic)) else { return true };
            // The items of a topic alternate, so an odd number has the same effect as its first.
            mem::replace(left, 0) % 2 == 1
        });
    }
}

impl Outgoing {
    /// Returns the topic that is subscribed to or cancelled.
    fn topic(&self) -> Option<&Bytes> {
        match self {
            Self::Subscribe(topic) | Self::Cancel(topic) => Some(topic),
            Self::Message(_) | Self::Hello(_) | Self::Run(_) => None,
        }
    }
}

/// An item that the driver of a connection gives to a socket.
#[derive(Debug)]
pub(in crate::socket) enum Incoming {
    Message(Message),
    /// Short messages that are decoded when they are read.
    Run(Run),
}

impl Payload for Incoming {
    #[inline]
    fn size(&self) -> Done {
        match self {
            Self::Message(message) => message.size(),
            Self::Run(run) => run.size(),
        }
    }

    fn keep_last(&mut self) {
        if let Self::Run(run) = self {
            run.keep_last();
        }
    }

    fn join(&mut self, next: &mut Self) -> bool {
        match (self, next) {
            (Self::Run(run), Self::Run(next)) => run.join(next),
            _ => false,
        }
    }
}

impl Payload for Message {
    #[inline]
    fn size(&self) -> Done {
        Done { messages: 1, bytes: self.byte_len() }
    }
}

impl Payload for Run {
    #[inline]
    fn size(&self) -> Done {
        Done { messages: self.messages(), bytes: self.bytes() }
    }
}

impl Items<Outgoing> {
    /// Adds a message. It is taken out of `message` only if it is not encoded. The caller drops
    /// what is left there after it has released the lock, because a drop may run user code.
    #[inline]
    fn add(&mut self, message: &mut Message, encodes: bool) {
        match Run::payload(message).filter(|_| encodes) {
            Some(payload) => self.add_short(payload),
            None => self.list.push_back(Outgoing::Message(mem::take(message))),
        }
    }

    fn add_copy(&mut self, message: &Message, encodes: bool) {
        match Run::payload(message).filter(|_| encodes) {
            Some(payload) => self.add_short(payload),
            None => self.list.push_back(Outgoing::Message(message.clone())),
        }
    }

    #[inline]
    fn add_short(&mut self, payload: &[u8]) {
        match self.list.back_mut() {
            Some(Outgoing::Run(run)) if run.has_room() => run.push(payload),
            _ => self.begin_run(payload),
        }
    }

    fn begin_run(&mut self, payload: &[u8]) {
        let mut run = Run::in_buffer(mem::take(&mut self.spare));
        run.push(payload);
        self.list.push_back(Outgoing::Run(run));
    }
}

impl<T> Items<T> {
    /// Keeps the buffer of a finished run for the next one, if it is larger than the spare buffer.
    pub(in crate::socket) fn keep(&mut self, run: Run) {
        let buffer = run.into_buffer();
        if (self.spare.capacity() + 1..=Run::MEMORY).contains(&buffer.capacity()) {
            self.spare = buffer;
        }
    }
}

/// A pipe to one connected peer. A peer that reconnects gets a new pipe.
pub(in crate::socket) struct Pipe {
    pub(in crate::socket) id: u64,
    pub(in crate::socket) outgoing: Queue<Outgoing>,
    pub(in crate::socket) incoming: Queue<Incoming>,
    /// True if short messages are encoded when they are sent, which is so for connections over a
    /// stream.
    encodes: bool,
    /// The name by which a ROUTER addresses the peer; empty for other sockets.
    pub(in crate::socket) routing: Bytes,
    /// Cancelled when the connection has ended and all of its messages have been read.
    pub(in crate::socket) read_out: CancellationToken,
    /// Ends the connection when it is cancelled.
    pub(in crate::socket) stop: CancellationToken,
    /// The id of its inbox in the fair queue, if it has one.
    pub(in crate::socket) source: OnceLock<SourceId>,
    /// True until the peer has been given the hello message, which goes before all others.
    is_new: AtomicBool,
    /// The number of the last publication that was meant for this peer.
    publication: AtomicU64,
    /// True if the message that the program read last arrived alone. The peer is then probably
    /// waiting for the reply.
    is_asked: AtomicBool,
    /// The writer for that reply, if the connection is over a stream. It saves a switch to the
    /// driver's task.
    at_once: OnceLock<AtOnce>,
}

impl Pipe {
    /// Creates a pipe. `share` limits the messages of this peer that may wait for the program to
    /// read them.
    pub(in crate::socket) fn new(
        id: u64,
        routing: Bytes,
        stop: CancellationToken,
        options: &SocketOptions,
        share: Arc<Share>,
        encodes: bool,
    ) -> Self {
        Self {
            id,
            encodes,
            outgoing: Queue::new(options.send_mark, Arc::new(Share::unlimited())).conflating(options.conflates),
            incoming: Queue::new(options.receive_mark, share).conflating(options.conflates),
            routing,
            read_out: CancellationToken::new(),
            stop,
            source: OnceLock::new(),
            is_new: AtomicBool::new(options.hello.is_some()),
            publication: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            at_once: OnceLock::new(),
        }
    }

    /// Allows direct writes to the connection from now on.
    pub(in crate::socket) fn is_carried_by(&self, at_once: AtOnce) {
        // Only this call sets it, so it cannot have been set before.
        let _ = self.at_once.set(at_once);
    }

    /// Queues a message for the peer if there is room. If it succeeds, `slot` is `None` afterwards.
    #[inline]
    pub(in crate::socket) fn send(&self, slot: &mut Option<Message>) -> Result<(), Refused> {
        let Some(message) = slot else { return Ok(()) };
        if self.is_asked.load(Ordering::Relaxed) && self.answer(message) {
            *slot = None;
            return Ok(());
        }
        self.outgoing.push(message.byte_len(), |items| items.add(message, self.encodes))?;
        *slot = None;
        Ok(())
    }

    /// Returns true, once, if the peer must be sent its hello message now. Called by its driver.
    #[inline]
    pub(in crate::socket) fn is_to_be_greeted(&self) -> bool {
        // The load comes first: it is cheaper than a swap for every batch.
        self.is_new.load(Ordering::Relaxed) && self.is_new.swap(false, Ordering::Relaxed)
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
    fn answer(&self, message: &mut Message) -> bool {
        self.is_asked.store(false, Ordering::Relaxed);
        self.at_once.get().is_some_and(|at_once| at_once.write(message))
    }

    /// Queues messages for the peer until there is no more room or one may not be sent. Returns the
    /// number queued, which are the first ones. The caller drops them.
    pub(in crate::socket) fn send_each(&self, messages: &mut [Message], bounds: &SendBounds) -> Result<usize, Refused> {
        let mut messages = messages.iter_mut();
        self.outgoing.push_each(|items| {
            let message = messages.next().filter(|message| !message.is_empty() && bounds.allow(message))?;
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

/// The messages of one peer, as a source of the socket's fair queue. It ends when the connection
/// has ended and all messages were read.
pub(in crate::socket) struct Inbox {
    pipe: Arc<Pipe>,
    /// Waits until the inbox of the previous connection has been read. This keeps the order of
    /// messages across a reconnect.
    before: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    taken: Taken<Incoming>,
    report_after: usize,
    /// The register of the peer's origin, kept for as long as messages of the peer may be left.
    origins: Arc<Origins>,
}

impl Inbox {
    pub(in crate::socket) fn new(pipe: Arc<Pipe>, before: Option<CancellationToken>, origins: Arc<Origins>) -> Self {
        let before = before.map(|read_out| Box::pin(read_out.cancelled_owned()));
        Self { pipe, before, taken: Taken::nothing(), report_after: 1, origins }
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
                if !self.pipe.routing.is_empty() {
                    message.push_front(self.pipe.routing.clone());
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

impl Ahead for Inbox {
    #[inline]
    fn take_ready(&mut self, messages: &mut Vec<Message>, limit: usize) {
        let Some(Incoming::Run(run)) = self.taken.items.list.front_mut() else { return };
        let (first, before) = (messages.len(), run.size());
        run.pop_into(messages, limit.min(self.report_after));
        let after = run.size();
        self.taken.done.messages += before.messages - after.messages;
        self.taken.done.bytes += before.bytes - after.bytes;
        if !self.pipe.routing.is_empty() {
            messages[first..].iter_mut().for_each(|message| message.push_front(self.pipe.routing.clone()));
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
        if let Some(before) = &mut inbox.before {
            ready!(before.as_mut().poll(context));
            inbox.before = None;
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
                    inbox.pipe.is_asked.store(inbox.has_one(), Ordering::Relaxed);
                    // At a quarter of the mark at the latest: the writer waits until half of the
                    // queue is free, and unreported messages count as if they were still there.
                    inbox.report_after = DONE_MESSAGES.min(inbox.pipe.incoming.mark().messages / 4).max(1);
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
        self.origins.remove(self.pipe.id);
        // This comes last: from now on the next connection of the peer can be read.
        self.pipe.read_out.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::bounds::SETTLE_ITEMS;

    fn pipe() -> Pipe {
        let share = Arc::new(Share::unlimited());
        Pipe::new(1, Bytes::new(), CancellationToken::new(), &SocketOptions::new(), share, true)
    }

    fn queued(pipe: &Pipe) -> VecDeque<Outgoing> {
        pipe.outgoing.close_and_take()
    }

    #[test]
    fn subscriptions_that_are_taken_back_while_a_peer_does_not_read_take_no_memory() {
        let pipe = pipe();
        for _ in 0..100 * SETTLE_ITEMS {
            pipe.outgoing.push_uncounted(Outgoing::Subscribe("a".into()));
            pipe.outgoing.push_uncounted(Outgoing::Cancel("a".into()));
        }
        assert!(queued(&pipe).len() <= SETTLE_ITEMS);
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
        Outgoing::settle(&mut list);
        let left: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
        let expected = [subscribe("a"), cancel("told"), message(), subscribe("b")];
        assert_eq!(left, expected.map(|item| format!("{item:?}")));
    }
}
