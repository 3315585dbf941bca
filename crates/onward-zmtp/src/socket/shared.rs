//! The state that a socket shares with the tasks of its connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::inbox::Inbox;
use super::connection::pipe::Pipe;
use super::connection::queue_items::{Incoming, Outgoing};
use super::error::{Error, Result};
use super::monitor::events::{MonitorEvent, Reporter};
use super::monitor::statistics::Statistics;
use super::options::policies::DuplicateIdentity;
use super::options::send_limits::SendBounds;
use super::options::socket_options::SocketOptions;
use super::patterns::subscriber_table::Topics;
use super::peers::peer_table::{Roster, messages};
use super::peers::per_peer_order::Origin;
use super::peers::remote_peer::{Origins, RemotePeer};
use super::queue::bounded_queue::Taken;
use super::queue::quota::Share;
use super::queue::unread_backlog::Leftovers;
use crate::fair_queue::Handle;
use crate::protocol::{self, Message, SocketType};

/// The shared state of a socket. Its two halves, its endpoints and its connections each hold a
/// reference.
pub(super) struct Shared {
    pub(super) socket_type: SocketType,
    pub(super) options: SocketOptions,
    /// The size limits of messages to send.
    pub(super) bounds: SendBounds,
    /// The protocol options, the same for every connection.
    pub(super) protocol: Arc<protocol::Options>,
    pub(super) reporter: Reporter,
    /// Ends all tasks of the socket when it is cancelled.
    pub(super) token: CancellationToken,
    sources: Handle<u64, Inbox>,
    pub(super) leftovers: Arc<Leftovers>,
    share: Arc<Share>,
    roster: Mutex<Roster>,
    pub(super) origins: Arc<Origins>,
    /// The version of the peer table. It goes up whenever a peer connects or disconnects.
    version: AtomicU64,
    /// True if the backlog may contain messages.
    has_backlog: AtomicBool,
    /// True if a peer ever refused this socket for good.
    was_refused: AtomicBool,
    topics: Mutex<Topics>,
    next_id: AtomicU64,
    first_identity: u32,
    closed_at: OnceLock<Instant>,
    pub(super) dropped_outgoing: AtomicU64,
    pub(super) dropped_incoming: AtomicU64,
}

/// The context of a socket's task: the shared state, and a sign that the task is alive.
#[derive(Clone)]
pub(super) struct TaskContext {
    pub(super) shared: Arc<Shared>,
    /// Closing a socket waits until all of these are dropped.
    pub(super) _alive: watch::Receiver<()>,
}

impl Shared {
    pub(super) fn new(socket_type: SocketType, mut options: SocketOptions, sources: Handle<u64, Inbox>) -> Self {
        options.protocol.socket_type = socket_type;
        Self {
            socket_type,
            protocol: Arc::new(options.protocol.clone()),
            leftovers: Arc::new(Leftovers::new(options.receive_mark)),
            bounds: SendBounds::new(options.limits_of_sending()),
            options,
            share: Arc::new(Share::unlimited()),
            reporter: Reporter::default(),
            token: CancellationToken::new(),
            sources,
            roster: Mutex::new(Roster::default()),
            origins: Arc::default(),
            version: AtomicU64::new(1),
            has_backlog: AtomicBool::new(false),
            was_refused: AtomicBool::new(false),
            topics: Mutex::new(Topics::default()),
            next_id: AtomicU64::new(1),
            first_identity: fastrand::u32(..),
            closed_at: OnceLock::new(),
            dropped_outgoing: AtomicU64::new(0),
            dropped_incoming: AtomicU64::new(0),
        }
    }

    pub(super) fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn topics(&self) -> MutexGuard<'_, Topics> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn tell(&self, event: MonitorEvent) {
        self.reporter.tell(event);
    }

    /// Returns true if a socket of this type receives messages.
    pub(super) fn receives(&self) -> bool {
        !matches!(self.socket_type, SocketType::Push | SocketType::Pub)
    }

    fn publishes(&self) -> bool {
        matches!(self.socket_type, SocketType::Pub | SocketType::Xpub)
    }

    /// Returns true if a message that one peer did not get may go to another.
    fn hands_on(&self) -> bool {
        matches!(self.socket_type, SocketType::Push | SocketType::Dealer | SocketType::Pair)
    }

    fn limit(&self) -> usize {
        if self.socket_type == SocketType::Pair { 1 } else { self.options.peers }
    }

    /// Adds a connected peer. From now on messages are sent to it and received from it.
    ///
    /// `connector` is the number of the connector that made the connection, if this socket
    /// connected. `encodes` is true if the connection has a stream.
    pub(super) fn attach(
        &self,
        identity: Option<&protocol::Identity>,
        connector: Option<u64>,
        stop: CancellationToken,
        encodes: bool,
        remote: RemotePeer,
    ) -> Result<Arc<Pipe>> {
        let id = self.next_id();
        let mut roster = self.roster();
        let routing = self.routing(&roster, id, identity);
        let origin = match identity {
            Some(_) if !routing.is_empty() => Some(Origin::Identity(routing.clone())),
            _ => connector.map(Origin::Connector),
        };
        let pipe = Arc::new(Pipe::new(id, routing, stop, &self.options, self.share.clone(), encodes));
        self.admit(&roster, &pipe)?;
        for topic in roster.interest.topics() {
            pipe.outgoing.push_uncounted(Outgoing::Subscribe(topic.clone()));
        }
        roster.add(pipe.clone());
        self.share_mark(&roster);
        // A socket that receives nothing has no order of reads to keep.
        let origin = origin.filter(|_| self.receives());
        let before = origin.and_then(|origin| roster.succession.follow(origin, pipe.read_out.clone()));
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = roster.take_sender();
        drop(roster);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.insert_source(&pipe, before, remote)?;
        Ok(pipe)
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the name by which a ROUTER addresses a peer: the identity that the peer chose, or an
    /// unused one.
    fn routing(&self, roster: &Roster, id: u64, identity: Option<&protocol::Identity>) -> Bytes {
        match (self.socket_type, identity) {
            (SocketType::Router, Some(identity)) => identity.as_bytes().clone(),
            (SocketType::Router, None) => {
                let first = self.first_identity.wrapping_add(id as u32);
                // There are fewer peers than numbers, so one is free.
                let free = (0..=u32::MAX)
                    .map(|step| generated(first.wrapping_add(step.wrapping_mul(IDENTITY_STEP))))
                    .find(|routing| roster.by_identity(routing).is_none());
                free.unwrap_or_default()
            }
            _ => Bytes::new(),
        }
    }

    fn admit(&self, roster: &Roster, pipe: &Pipe) -> Result<()> {
        if roster.is_closed && !self.has_backlog() {
            return Err(Error::closed());
        }
        let limit = self.limit();
        if roster.live.len() >= limit {
            return Err(Error::refused(format!("the socket has {limit} peers already, which is its limit")));
        }
        match roster.by_identity(&pipe.routing) {
            None => Ok(()),
            Some(known) if self.options.duplicate_identity == DuplicateIdentity::TakeOver => {
                known.stop.cancel();
                Ok(())
            }
            Some(_) => Err(Error::refused("another peer has the same identity; give them different ones")),
        }
    }

    fn insert_source(&self, pipe: &Arc<Pipe>, before: Option<CancellationToken>, remote: RemotePeer) -> Result<()> {
        if !self.receives() {
            return Ok(());
        }
        // This comes before the inbox, which removes the origin at its end.
        self.origins.insert(remote.numbered(pipe.id));
        match self.sources.insert(pipe.id, Inbox::new(pipe.clone(), before, self.origins.clone())) {
            Ok(source) => {
                // Only this call sets it, so it cannot have been set before.
                let _ = pipe.source.set(source);
                Ok(())
            }
            // The receiving half was dropped. Dropping the error also drops the inbox, which closes
            // the queue.
            Err(error) if error.is_closed() => Ok(()),
            Err(error) => {
                self.detach(pipe, VecDeque::new());
                Err(Error::limit(error.to_string()))
            }
        }
    }

    /// Divides the mark by the new number of peers. The caller holds the lock of the roster.
    fn share_mark(&self, roster: &Roster) {
        if self.share.divide(self.options.receive_mark.messages, roster.live.len()) {
            roster.live.iter().for_each(|pipe| pipe.incoming.wake_writer());
        }
    }

    /// Stops new messages to and from this peer. Queued messages can still be sent and read.
    pub(super) fn retire(&self, pipe: &Pipe) {
        self.end_incoming(pipe);
        let mut roster = self.roster();
        roster.remove(pipe);
        self.share_mark(&roster);
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = roster.take_sender();
        drop(roster);
        pipe.outgoing.close();
        self.forget_decisions(pipe);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Removes the peer of an ended connection. Unsent messages are kept for other peers if the
    /// socket type allows it. Received messages can still be read. Returns the number of messages
    /// that are lost.
    pub(super) fn detach(&self, pipe: &Arc<Pipe>, unsent: VecDeque<Outgoing>) -> usize {
        self.end_incoming(pipe);
        let mut roster = self.roster();
        roster.remove(pipe);
        self.share_mark(&roster);
        self.version.fetch_add(1, Ordering::AcqRel);
        let queued = pipe.outgoing.close_and_take();
        let lost = if self.hands_on() { 0 } else { messages(&unsent) + messages(&queued) };
        if self.hands_on() && !(unsent.is_empty() && queued.is_empty()) {
            roster.return_to_backlog(unsent, queued);
            if self.options.conflates {
                roster.keep_last();
            }
            self.has_backlog.store(true, Ordering::Release);
        }
        let (sender, others) = (roster.take_sender(), roster.live.clone());
        drop(roster);
        self.dropped_outgoing.fetch_add(lost as u64, Ordering::Relaxed);
        self.remove_source(pipe);
        self.forget_decisions(pipe);
        self.wake_refused();
        if let Some(sender) = sender {
            sender.wake();
        }
        if self.has_backlog.load(Ordering::Acquire) {
            // The other drivers wait for their own queues, so they must be woken for the backlog.
            others.iter().for_each(|other| other.outgoing.wake_reader());
        }
        lost
    }

    /// Removes the inbox of a disconnected peer from the fair queue if it has nothing to read.
    /// Otherwise the inbox leaves once it is read. Without this, inboxes would pile up in a program
    /// that never receives.
    fn remove_source(&self, pipe: &Pipe) {
        if let Some(source) = pipe.source.get().filter(|_| pipe.incoming.is_idle()) {
            self.sources.remove(*source);
        }
    }

    /// Ends the receipt from this peer. An XPUB is notified first. The notice belongs to this
    /// connection, so it is read before the messages of the next one.
    fn end_incoming(&self, pipe: &Pipe) {
        self.forget_subscriptions(pipe);
        pipe.incoming.close_leaving(&self.leftovers);
        self.leftovers.forget(pipe.id);
    }

    /// Removes subscriptions that the program made for a peer that was disconnecting. The peer has
    /// left the roster, so the program cannot add more.
    fn forget_decisions(&self, pipe: &Pipe) {
        if self.options.is_manual {
            self.topics().forget(pipe.id);
        }
    }

    fn forget_subscriptions(&self, pipe: &Pipe) {
        if !self.publishes() {
            return;
        }
        let topics = self.topics().forget(pipe.id);
        if self.socket_type == SocketType::Xpub {
            for topic in topics {
                pipe.incoming.push_beyond_mark(Incoming::Message(notice(0, &topic)));
            }
        }
    }

    /// Records the subscription of a peer. Returns the notice for an XPUB to receive.
    pub(super) fn subscribed(&self, pipe: &Arc<Pipe>, topic: &Bytes) -> Option<Message> {
        if self.options.is_manual {
            return Some(notice(1, topic));
        }
        let is_new = self.topics().subscribe(pipe, topic);
        (self.socket_type == SocketType::Xpub && (is_new || self.options.is_verbose)).then(|| notice(1, topic))
    }

    /// Records a cancellation by a peer. Returns the notice for an XPUB to receive.
    pub(super) fn cancelled(&self, pipe: &Arc<Pipe>, topic: &Bytes) -> Option<Message> {
        if self.options.is_manual {
            return Some(notice(0, topic));
        }
        let was_last = self.topics().cancel(pipe.id, topic);
        (self.socket_type == SocketType::Xpub && (was_last || self.options.is_verbose)).then(|| notice(0, topic))
    }

    /// Adds or cancels a subscription of a peer, as the program decided. Returns `false` if the
    /// peer has disconnected.
    pub(super) fn decide_topic(&self, peer: u64, topic: &Bytes, is_subscribed: bool) -> bool {
        let roster = self.roster();
        let Some(pipe) = roster.by_id(peer) else { return false };
        // This happens under the lock of the roster, so that the peer's end removes the
        // subscription.
        if is_subscribed {
            self.topics().subscribe(pipe, topic);
        } else {
            self.topics().cancel(peer, topic);
        }
        true
    }

    /// Queues a message for the next peer to connect. The caller has checked that there is room.
    pub(super) fn push_backlog(&self, roster: &mut Roster, message: Message) {
        roster.push_backlog(Outgoing::Message(message));
        if self.options.conflates {
            roster.keep_last();
        }
        self.has_backlog.store(true, Ordering::Release);
    }

    /// Takes the hello message if it is still to be sent, else items of the backlog, else those
    /// queued for this peer. The backlog is older than the queue, so this keeps the order of the
    /// messages. Returns `false` when there is nothing and the queue is closed.
    pub(super) fn poll_next_batch(
        &self,
        pipe: &Pipe,
        context: &mut Context<'_>,
        taken: &mut Taken<Outgoing>,
    ) -> Poll<bool> {
        if pipe.is_to_be_greeted() {
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
            answer => answer,
        }
    }

    /// Takes messages of the backlog for this peer. Costs one load if there are none.
    fn take_backlog(&self, pipe: &Pipe, taken: &mut VecDeque<Outgoing>) -> bool {
        if !self.has_backlog.load(Ordering::Acquire) {
            return false;
        }
        let mut roster = self.roster();
        let size = roster.take_backlog(taken);
        if roster.backlog_size().messages == 0 {
            self.has_backlog.store(false, Ordering::Release);
        }
        let sender = roster.take_sender();
        drop(roster);
        pipe.outgoing.adopt(size);
        if let Some(sender) = sender {
            sender.wake();
        }
        size.messages > 0
    }

    /// Subscribes to a topic at all current and future peers.
    pub(super) fn subscribe(&self, topic: Bytes) -> Result<()> {
        let mut roster = self.roster();
        if roster.interest.subscribe(&topic)? {
            Self::tell_peers(&roster, &Outgoing::Subscribe(topic));
        }
        Ok(())
    }

    /// Cancels a subscription.
    pub(super) fn cancel(&self, topic: &Bytes) {
        let mut roster = self.roster();
        if roster.interest.cancel(topic) {
            Self::tell_peers(&roster, &Outgoing::Cancel(topic.clone()));
        }
    }

    /// Sends a subscription or a cancellation to all peers. The caller holds the lock of the
    /// roster, so that a peer that connects at the same time gets it exactly once.
    fn tell_peers(roster: &Roster, item: &Outgoing) {
        for pipe in &roster.live {
            pipe.outgoing.push_uncounted(item.clone());
        }
    }

    /// Counts one more endpoint to connect to.
    pub(super) fn begin_connecting(&self) {
        self.change_ways(Roster::begin_connecting);
    }

    /// Counts one less endpoint to connect to. `refusal` is the reason, if its peer refused the
    /// socket.
    pub(super) fn end_connecting(&self, refusal: Option<Error>) {
        if refusal.is_some() {
            self.was_refused.store(true, Ordering::Release);
        }
        self.change_ways(|roster| roster.end_connecting(refusal));
        self.wake_refused();
    }

    /// Counts one more or one less endpoint that the socket is bound to.
    pub(super) fn count_listening(&self, is_more: bool) {
        self.change_ways(|roster| {
            roster.listening = if is_more { roster.listening + 1 } else { roster.listening.saturating_sub(1) };
        });
        self.wake_refused();
    }

    /// Changes the counts of endpoints, and wakes a sender that waits for a peer.
    fn change_ways(&self, change: impl FnOnce(&mut Roster)) {
        let mut roster = self.roster();
        change(&mut roster);
        let sender = roster.take_sender();
        drop(roster);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Wakes the receiver, because it may be waiting without any peer left.
    fn wake_refused(&self) {
        if self.was_refused.load(Ordering::Acquire) {
            self.sources.nudge();
        }
    }

    /// Returns the reason why no message will come, if every peer refused the socket and all
    /// messages were read. Costs one load otherwise.
    #[inline]
    pub(super) fn refusal(&self) -> Option<Error> {
        if self.was_refused.load(Ordering::Acquire) { self.look_for_refusal() } else { None }
    }

    #[cold]
    fn look_for_refusal(&self) -> Option<Error> {
        let roster = self.roster();
        let unread = roster.incoming_size(self.leftovers.size()).messages;
        roster.refusal().filter(|_| unread == 0).cloned()
    }

    /// Closes the socket: from now on it accepts no peers and no messages, and keeps nothing for
    /// the program. Queued messages are sent for as long as the socket lingers.
    pub(super) fn close(&self) {
        let mut roster = self.roster();
        roster.is_closed = true;
        let _ = self.closed_at.set(Instant::now());
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = roster.take_sender();
        drop(roster);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.token.cancel();
    }

    /// Returns the time until which an ending connection may send queued messages; `None` for no
    /// limit.
    pub(super) fn linger_deadline(&self) -> Option<Instant> {
        let since = self.closed_at.get().copied().unwrap_or_else(Instant::now);
        since.checked_add(self.options.linger)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed_at.get().is_some()
    }

    /// Returns true if messages wait in the backlog for a peer.
    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Acquire)
    }

    pub(super) fn drop_outgoing(&self, messages: usize) {
        self.dropped_outgoing.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(super) fn drop_incoming(&self, messages: usize) {
        self.dropped_incoming.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// Returns the counts of peers, of queued messages and of dropped ones.
    pub(super) fn statistics(&self) -> Statistics {
        let roster = self.roster();
        Statistics {
            peers: roster.live.len(),
            outgoing: roster.outgoing_size().into(),
            incoming: roster.incoming_size(self.leftovers.size()).into(),
            dropped: self.dropped_outgoing.load(Ordering::Relaxed),
            discarded: self.dropped_incoming.load(Ordering::Relaxed),
        }
    }
}

/// Counts the messages that are left. The socket and all of its tasks are gone, so they cannot be
/// sent any more.
impl Drop for Shared {
    fn drop(&mut self) {
        let messages = self.roster().outgoing_size().messages as u64;
        if messages > 0 {
            self.tell(MonitorEvent::Unsent { messages });
        }
    }
}

/// The step from a taken identity to the next candidate. It is odd, so that all numbers are tried.
const IDENTITY_STEP: u32 = 0x9E37_79B1;

/// Returns the identity that a ROUTER generates for a peer that chose none.
fn generated(number: u32) -> Bytes {
    let mut routing = BytesMut::with_capacity(5);
    routing.put_u8(0);
    routing.put_u32(number);
    routing.freeze()
}

/// Returns the notice that an XPUB receives about a topic: 1 or 0, then the topic.
pub(super) fn notice(first: u8, topic: &[u8]) -> Message {
    let mut frame = BytesMut::with_capacity(1 + topic.len());
    frame.put_u8(first);
    frame.put_slice(topic);
    Message::from(frame.freeze())
}
