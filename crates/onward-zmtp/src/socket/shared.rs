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
use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::monitor::events::{MonitorEvent, Reporter};
use super::monitor::statistics::Statistics;
use super::options::policies::DuplicateIdentity;
use super::options::send_limits::SendLimits;
use super::options::socket_options::SocketOptions;
use super::patterns::subscriber_table::SubscriberTable;
use super::peers::peer_table::{PeerTable, count_messages};
use super::peers::per_peer_order::PeerKey;
use super::peers::remote_peer::{RemotePeer, RemotePeers};
use super::queue::items::Taken;
use super::queue::quota::Quota;
use super::queue::unread_backlog::UnreadBacklog;
use crate::fair_queue::Handle;
use crate::protocol::{self, Message, SocketType};

/// The shared state of a socket. Its two halves, its endpoints and its connections each hold a
/// reference.
pub(super) struct Shared {
    pub(super) socket_type: SocketType,
    pub(super) options: SocketOptions,
    /// The size limits of messages to send.
    pub(super) send_limits: SendLimits,
    /// The protocol options, the same for every connection.
    pub(super) protocol: Arc<protocol::Options>,
    pub(super) reporter: Reporter,
    /// Ends all tasks of the socket when it is cancelled.
    pub(super) token: CancellationToken,
    sources: Handle<u64, Inbox>,
    pub(super) unread_backlog: Arc<UnreadBacklog>,
    quota: Arc<Quota>,
    peer_table: Mutex<PeerTable>,
    pub(super) remote_peers: Arc<RemotePeers>,
    /// The version of the peer table. It goes up whenever a peer connects or disconnects. Senders
    /// compare it without a lock before they use their own lists of peers.
    version: AtomicU64,
    /// True if the backlog may contain messages.
    has_backlog: AtomicBool,
    /// True if a peer ever refused this socket for good, or an endpoint ended by itself.
    was_refused: AtomicBool,
    subscribers: Mutex<SubscriberTable>,
    next_id: AtomicU64,
    first_identity: u32,
    closed_at: OnceLock<Instant>,
    pub(super) dropped_outgoing: AtomicU64,
    pub(super) dropped_incoming: AtomicU64,
}

/// The context of a socket's task: the shared state, and a receiver whose existence shows that the
/// task runs.
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
            unread_backlog: Arc::new(UnreadBacklog::new(options.receive_high_water_mark)),
            send_limits: SendLimits::new(options.effective_send_limits()),
            options,
            quota: Arc::new(Quota::unlimited()),
            reporter: Reporter::default(),
            token: CancellationToken::new(),
            sources,
            peer_table: Mutex::new(PeerTable::default()),
            remote_peers: Arc::default(),
            version: AtomicU64::new(1),
            has_backlog: AtomicBool::new(false),
            was_refused: AtomicBool::new(false),
            subscribers: Mutex::new(SubscriberTable::default()),
            next_id: AtomicU64::new(1),
            first_identity: fastrand::u32(..),
            closed_at: OnceLock::new(),
            dropped_outgoing: AtomicU64::new(0),
            dropped_incoming: AtomicU64::new(0),
        }
    }

    pub(super) fn peer_table(&self) -> MutexGuard<'_, PeerTable> {
        self.peer_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscribers(&self) -> MutexGuard<'_, SubscriberTable> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn report(&self, event: MonitorEvent) {
        self.reporter.report(event);
    }

    /// Returns true if a socket of this type receives messages.
    pub(super) fn receives(&self) -> bool {
        !matches!(self.socket_type, SocketType::Push | SocketType::Pub)
    }

    fn publishes(&self) -> bool {
        matches!(self.socket_type, SocketType::Pub | SocketType::Xpub)
    }

    /// Returns true if a message that one peer did not get may go to another.
    fn may_redistribute(&self) -> bool {
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
        let mut peer_table = self.peer_table();
        let routing_id = self.choose_routing_id(&peer_table, id, identity);
        let peer_key = match identity {
            Some(_) if !routing_id.is_empty() => Some(PeerKey::Identity(routing_id.clone())),
            _ => connector.map(PeerKey::Connector),
        };
        let pipe = Arc::new(Pipe::new(id, routing_id, stop, &self.options, self.quota.clone(), encodes));
        self.admit(&peer_table, &pipe)?;
        for topic in peer_table.subscriptions.topics() {
            pipe.outgoing.push_uncounted(Outgoing::Subscribe(topic.clone()));
        }
        peer_table.add(pipe.clone());
        self.divide_high_water_mark(&peer_table);
        // A socket that receives nothing has no order of reads to keep.
        let peer_key = peer_key.filter(|_| self.receives());
        let predecessor = peer_key.and_then(|peer_key| peer_table.order.follow(peer_key, pipe.fully_read.clone()));
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = peer_table.take_sender();
        drop(peer_table);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.insert_source(&pipe, predecessor, remote)?;
        Ok(pipe)
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the name by which a ROUTER addresses a peer: the identity that the peer chose, or an
    /// unused one.
    fn choose_routing_id(&self, peer_table: &PeerTable, id: u64, identity: Option<&protocol::Identity>) -> Bytes {
        match (self.socket_type, identity) {
            (SocketType::Router, Some(identity)) => identity.as_bytes().clone(),
            (SocketType::Router, None) => {
                let first = self.first_identity.wrapping_add(id as u32);
                // There are fewer peers than numbers, so one is free.
                let free = (0..=u32::MAX)
                    .map(|step| generated_routing_id(first.wrapping_add(step.wrapping_mul(IDENTITY_STEP))))
                    .find(|routing_id| peer_table.by_identity(routing_id).is_none());
                free.unwrap_or_default()
            }
            _ => Bytes::new(),
        }
    }

    fn admit(&self, peer_table: &PeerTable, pipe: &Pipe) -> Result<()> {
        // A closed socket accepts a peer only for the messages of its backlog.
        if peer_table.is_closed && !self.has_backlog() {
            return Err(Error::closed());
        }
        let limit = self.limit();
        if peer_table.connected.len() >= limit {
            return Err(Error::refused(format!("the socket has {limit} peers already, which is its limit")));
        }
        match peer_table.by_identity(&pipe.routing_id) {
            None => Ok(()),
            Some(known) if self.options.duplicate_identity == DuplicateIdentity::TakeOver => {
                known.stop.cancel();
                Ok(())
            }
            Some(_) => Err(Error::refused("another peer has the same identity; give them different ones")),
        }
    }

    fn insert_source(
        &self,
        pipe: &Arc<Pipe>,
        predecessor: Option<CancellationToken>,
        remote: RemotePeer,
    ) -> Result<()> {
        if !self.receives() {
            return Ok(());
        }
        // This comes before the inbox, which removes the remote peer at its end.
        self.remote_peers.insert(remote.numbered(pipe.id));
        match self.sources.insert(pipe.id, Inbox::new(pipe.clone(), predecessor, self.remote_peers.clone())) {
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

    /// Divides the high-water mark by the new number of peers. The caller holds the lock of the
    /// peer table.
    fn divide_high_water_mark(&self, peer_table: &PeerTable) {
        if self.quota.divide(self.options.receive_high_water_mark.messages, peer_table.connected.len()) {
            peer_table.connected.iter().for_each(|pipe| pipe.incoming.wake_writer());
        }
    }

    /// Stops new messages to and from this peer. Queued messages can still be sent and read.
    pub(super) fn retire(&self, pipe: &Pipe) {
        self.end_incoming(pipe);
        let mut peer_table = self.peer_table();
        peer_table.remove(pipe);
        self.divide_high_water_mark(&peer_table);
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = peer_table.take_sender();
        drop(peer_table);
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
        let mut peer_table = self.peer_table();
        peer_table.remove(pipe);
        self.divide_high_water_mark(&peer_table);
        self.version.fetch_add(1, Ordering::AcqRel);
        // The lock of the peer table is held until the items are in the backlog. A sender that
        // finds the queue closed needs that lock, so its message follows these.
        let queued = pipe.outgoing.close_and_take();
        let lost = if self.may_redistribute() { 0 } else { count_messages(&unsent) + count_messages(&queued) };
        if self.may_redistribute() && !(unsent.is_empty() && queued.is_empty()) {
            peer_table.return_to_backlog(unsent, queued);
            if self.options.conflates {
                peer_table.keep_last();
            }
            self.has_backlog.store(true, Ordering::Release);
        }
        let (sender, others) = (peer_table.take_sender(), peer_table.connected.clone());
        drop(peer_table);
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
        pipe.incoming.close_into(&self.unread_backlog);
        self.unread_backlog.forget(pipe.id);
    }

    /// Removes subscriptions that the program made for a peer that was disconnecting. The peer has
    /// left the peer table, so the program cannot add more.
    fn forget_decisions(&self, pipe: &Pipe) {
        if self.options.is_manual {
            self.subscribers().forget(pipe.id);
        }
    }

    fn forget_subscriptions(&self, pipe: &Pipe) {
        if !self.publishes() {
            return;
        }
        let topics = self.subscribers().forget(pipe.id);
        if self.socket_type == SocketType::Xpub {
            for topic in topics {
                pipe.incoming.push_over_high_water_mark(Incoming::Message(notice(0, &topic)));
            }
        }
    }

    /// Records the subscription of a peer. Returns the notice for an XPUB to receive.
    pub(super) fn subscribed(&self, pipe: &Arc<Pipe>, topic: &Bytes) -> Option<Message> {
        if self.options.is_manual {
            return Some(notice(1, topic));
        }
        let is_new = self.subscribers().subscribe(pipe, topic);
        (self.socket_type == SocketType::Xpub && (is_new || self.options.is_verbose)).then(|| notice(1, topic))
    }

    /// Records a cancellation by a peer. Returns the notice for an XPUB to receive.
    pub(super) fn cancelled(&self, pipe: &Arc<Pipe>, topic: &Bytes) -> Option<Message> {
        if self.options.is_manual {
            return Some(notice(0, topic));
        }
        let was_last = self.subscribers().cancel(pipe.id, topic);
        (self.socket_type == SocketType::Xpub && (was_last || self.options.is_verbose)).then(|| notice(0, topic))
    }

    /// Adds or cancels a subscription of a peer, as the program decided. Returns `false` if the
    /// peer has disconnected.
    pub(super) fn decide_topic(&self, peer: u64, topic: &Bytes, is_subscribed: bool) -> bool {
        let peer_table = self.peer_table();
        let Some(pipe) = peer_table.by_id(peer) else { return false };
        // This happens under the lock of the peer table, so that the peer's end removes the
        // subscription.
        if is_subscribed {
            self.subscribers().subscribe(pipe, topic);
        } else {
            self.subscribers().cancel(peer, topic);
        }
        true
    }

    /// Queues a message for the next peer to connect. The caller has checked that there is room.
    pub(super) fn push_backlog(&self, peer_table: &mut PeerTable, message: Message) {
        peer_table.push_backlog(Outgoing::Message(message));
        if self.options.conflates {
            peer_table.keep_last();
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
    fn take_backlog(&self, pipe: &Pipe, taken: &mut VecDeque<Outgoing>) -> bool {
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

    /// Subscribes to a topic at all current and future peers.
    pub(super) fn subscribe(&self, topic: Bytes) -> Result<()> {
        let mut peer_table = self.peer_table();
        if peer_table.subscriptions.subscribe(&topic)? {
            Self::send_to_peers(&peer_table, &Outgoing::Subscribe(topic));
        }
        Ok(())
    }

    /// Cancels a subscription.
    pub(super) fn cancel(&self, topic: &Bytes) {
        let mut peer_table = self.peer_table();
        if peer_table.subscriptions.cancel(topic) {
            Self::send_to_peers(&peer_table, &Outgoing::Cancel(topic.clone()));
        }
    }

    /// Sends a subscription or a cancellation to all peers. The caller holds the lock of the
    /// peer table, so that a peer that connects at the same time gets it exactly once.
    fn send_to_peers(peer_table: &PeerTable, item: &Outgoing) {
        for pipe in &peer_table.connected {
            pipe.outgoing.push_uncounted(item.clone());
        }
    }

    /// Counts one more endpoint to connect to.
    pub(super) fn begin_connecting(&self) {
        self.change_endpoint_counts(PeerTable::begin_connecting);
    }

    /// Counts one less endpoint to connect to. `refusal` is the reason, if the program did not end
    /// it.
    pub(super) fn end_connecting(&self, refusal: Option<Error>) {
        if refusal.is_some() {
            self.was_refused.store(true, Ordering::Release);
        }
        self.change_endpoint_counts(|peer_table| peer_table.end_connecting(refusal));
        self.wake_refused();
    }

    /// Counts and reports one more endpoint that the socket is bound to.
    pub(super) fn begin_listening(&self, endpoint: &Endpoint) {
        self.change_endpoint_counts(PeerTable::begin_listening);
        self.report(MonitorEvent::Listening { endpoint: endpoint.clone() });
    }

    /// Counts and reports one less endpoint that the socket is bound to. `reason` is the reason, if
    /// the program did not end it.
    pub(super) fn end_listening(&self, endpoint: &Endpoint, reason: Option<Error>) {
        if reason.is_some() {
            self.was_refused.store(true, Ordering::Release);
        }
        self.change_endpoint_counts(|peer_table| peer_table.end_listening(reason));
        self.wake_refused();
        self.report(MonitorEvent::ListeningEnded { endpoint: endpoint.clone() });
    }

    /// Changes the counts of endpoints, and wakes a sender that waits for a peer.
    fn change_endpoint_counts(&self, change: impl FnOnce(&mut PeerTable)) {
        let mut peer_table = self.peer_table();
        change(&mut peer_table);
        let sender = peer_table.take_sender();
        drop(peer_table);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Wakes the receiver, because it may be waiting without any peer left.
    fn wake_refused(&self) {
        if self.was_refused.load(Ordering::Acquire) {
            self.sources.wake_reader();
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
        let peer_table = self.peer_table();
        let unread = peer_table.incoming_size(self.unread_backlog.size()).messages;
        peer_table.refusal().filter(|_| unread == 0).cloned()
    }

    /// Closes the socket: from now on it accepts no peers and no messages, and keeps nothing for
    /// the program. Queued messages are sent for as long as the socket lingers.
    pub(super) fn close(&self) {
        let mut peer_table = self.peer_table();
        peer_table.is_closed = true;
        let _ = self.closed_at.set(Instant::now());
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = peer_table.take_sender();
        drop(peer_table);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.token.cancel();
    }

    /// Returns the time until which an ending connection may send queued messages; `None` for no
    /// limit.
    pub(super) fn linger_deadline(&self) -> Option<Instant> {
        // An endpoint that is disconnected lingers from now on, a closed socket since its close.
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
        let peer_table = self.peer_table();
        Statistics {
            peers: peer_table.connected.len(),
            outgoing: peer_table.outgoing_size().into(),
            incoming: peer_table.incoming_size(self.unread_backlog.size()).into(),
            dropped: self.dropped_outgoing.load(Ordering::Relaxed),
            discarded: self.dropped_incoming.load(Ordering::Relaxed),
        }
    }
}

/// Counts the messages that are left. The socket and all of its tasks are gone, so they cannot be
/// sent any more.
impl Drop for Shared {
    fn drop(&mut self) {
        let messages = self.peer_table().outgoing_size().messages as u64;
        if messages > 0 {
            self.report(MonitorEvent::Unsent { messages });
        }
    }
}

/// The step from a taken identity to the next candidate. It is odd, so that all numbers are tried.
const IDENTITY_STEP: u32 = 0x9E37_79B1;

/// Returns the identity that a ROUTER generates for a peer that chose none.
fn generated_routing_id(number: u32) -> Bytes {
    let mut routing_id = BytesMut::with_capacity(5);
    routing_id.put_u8(0);
    routing_id.put_u32(number);
    routing_id.freeze()
}

/// Returns the notice that an XPUB receives about a topic: 1 or 0, then the topic.
pub(super) fn notice(first: u8, topic: &[u8]) -> Message {
    let mut frame = BytesMut::with_capacity(1 + topic.len());
    frame.put_u8(first);
    frame.put_slice(topic);
    Message::from(frame.freeze())
}
