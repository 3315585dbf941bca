//! The socket from the user's side.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_sink::Sink;

use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::kind::{Kind, Receives, Router, Sends, Subscribes, Xpub};
use super::monitor::events::Monitor;
use super::monitor::statistics::Statistics;
use super::options::socket_options::SocketOptions;
use super::owner::Owner;
use super::patterns::request_reply::RequestState;
use super::peers::remote_peer::RemotePeer;
use super::receive::{ReceiveCore, Receiver};
use super::send::{SendCore, Sender, TrySendError};
use super::shared::Shared;
use crate::fair_queue::FairQueue;
use crate::protocol::{Identity, IntoFrame, Message};

/// A socket of one of ZeroMQ's types. The [module's page](super) has examples.
///
/// Use it by its names: [`PushSocket`](super::PushSocket), [`PullSocket`](super::PullSocket) and so
/// on. A type has no method for an operation that it does not support.
///
/// A socket may be bound and connected to many endpoints at a time, also while messages are
/// exchanged. Its connections run in tasks of the tokio runtime in which `bind` and `connect` are
/// called. The runtime needs I/O and time enabled, as `#[tokio::main]` does. Heartbeats, reconnects
/// and disconnects continue while the program does something else.
///
/// Dropping the socket closes it: it receives and accepts no more messages. Queued messages are
/// sent for up to [`SocketOptions::linger`]; then every connection and every task of the socket
/// ends. [`close`](Self::close) does the same and waits for it. If the runtime ends earlier, queued
/// messages are lost, and [`MonitorEvent::Unsent`](super::MonitorEvent::Unsent) has their number.
pub struct Socket<T> {
    pub(super) sender: Sender<T>,
    pub(super) receiver: Receiver<T>,
    pub(super) request_state: RequestState,
}

impl<T: Kind> Socket<T> {
    /// Creates a socket with the default options. It does nothing until it is bound or connected.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(SocketOptions::default())
    }

    /// Creates a socket with these options. `bind` and `connect` return an error if the socket type
    /// has no use for one of them.
    #[must_use]
    pub fn with_options(options: SocketOptions) -> Self {
        // The sources are the inboxes of connected peers, those of peers that were connected when
        // the unread backlog became full, and one for each message of that backlog.
        let sources = options.peers.max(1).saturating_mul(2).saturating_add(options.receive_high_water_mark.messages);
        let queue = FairQueue::with_limit(sources);
        let owner = Owner::new(Shared::new(T::TYPE, options, queue.handle()));
        Self {
            sender: Sender::new(SendCore::new(owner.clone())),
            receiver: Receiver::new(ReceiveCore::new(owner, queue)),
            request_state: RequestState::Idle,
        }
    }

    fn owner(&self) -> &Owner {
        &self.sender.core.owner
    }

    /// Listens on an endpoint, and returns it with the port or path that was chosen.
    ///
    /// A Unix socket file without a listener is replaced. The file is removed when the socket is
    /// unbound or closed, unless another process has replaced it.
    ///
    /// Cancel safe: if the future is dropped before it is ready, nothing is bound.
    ///
    /// # Errors
    ///
    /// - [`Error::is_endpoint`] if the text is not an endpoint.
    /// - [`Error::is_io`] if the operating system refuses.
    /// - [`Error::is_limit`] if there are too many endpoints.
    /// - [`Error::is_misuse`] if an option would be ignored or could never work.
    /// - An error if the name of an inproc endpoint is taken, or the call is outside a tokio
    ///   runtime.
    pub fn bind<E>(&self, endpoint: E) -> impl Future<Output = Result<Endpoint>> + Send + use<T, E>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        // The future holds no reference to the socket, so that a task may bind one.
        let owner = self.sender.core.owner.clone();
        let endpoint = endpoint.try_into().map_err(Error::from);
        async move { owner.bind(endpoint?).await }
    }

    /// Connects to an endpoint, and reconnects whenever the connection fails or ends, after a
    /// [back-off](super::Reconnect).
    ///
    /// Returns at once. Messages can be sent from now on, and wait until there is a connection,
    /// which a [`monitor`](Self::monitor) reports. If a peer refuses the socket, the socket does
    /// not reconnect, unless the [option](SocketOptions::on_refusal) is set.
    ///
    /// A socket has one connection to an endpoint. Returns `false`, without any effect, if the
    /// socket is already connected to an endpoint with the same text; otherwise `true`.
    ///
    /// # Errors
    ///
    /// - [`Error::is_endpoint`] if the text is not an endpoint, or one that can only be bound to.
    /// - [`Error::is_limit`] if there are too many endpoints.
    /// - [`Error::is_misuse`] if an option would be ignored or could never work.
    /// - An error if the call is outside a tokio runtime.
    pub fn connect<E>(&self, endpoint: E) -> Result<bool>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.owner().connect(endpoint.try_into()?, None)
    }

    /// Stops listening on an endpoint that [`bind`](Self::bind) returned. When this returns,
    /// another socket can be bound to the address. Existing connections continue.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_endpoint`]) if the socket is not bound to it.
    pub fn unbind<E>(&self, endpoint: E) -> Result<()>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.owner().detach(&endpoint.try_into()?, true)
    }

    /// Ends every connection to an endpoint, and does not reconnect to it. Messages queued for it
    /// are sent for up to [`SocketOptions::linger`].
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_endpoint`]) if the socket is not connected to it.
    pub fn disconnect<E>(&self, endpoint: E) -> Result<()>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.owner().detach(&endpoint.try_into()?, false)
    }

    /// Returns a monitor, which reads the events of the socket's connections from now on.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.owner().shared.reporter.monitor()
    }

    /// Returns the number of peers, and the number of queued and dropped messages. The cost is
    /// linear in the number of peers.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.owner().shared.statistics()
    }

    /// Closes the socket and waits until all of its tasks have ended. That is at once if nothing is
    /// queued and the peers close, too, and at the latest after [`SocketOptions::linger`]. Returns
    /// the number of messages that were not sent.
    ///
    /// If the future is dropped, the socket is closed anyway; its tasks then end in the background.
    pub async fn close(self) -> u64 {
        let Self { sender, receiver, .. } = self;
        let owner = sender.core.owner.clone();
        drop((sender, receiver));
        let before = owner.shared.statistics().dropped;
        owner.close().await;
        let after = owner.shared.statistics();
        after.dropped - before + after.outgoing.messages as u64
    }
}

impl<T: Sends> Socket<T> {
    /// Sends a message: queues it for one peer, or for all that are to get it.
    ///
    /// | type | to | when the queue is full, or no peer is connected |
    /// |---|---|---|
    /// | PUSH, DEALER | next with room | waits; without a peer, queues up to the high-water mark |
    /// | PAIR | the peer | as PUSH |
    /// | ROUTER | the peer named by the first frame | waits, or fails if it is gone |
    /// | PUB, XPUB | all subscribers | drops it for full queues, or [waits](super::Overflow) |
    /// | XSUB | all publishers | drops it for full queues, or waits |
    ///
    /// A ROUTER does not send the first frame. A publication goes to the subscribers of every topic
    /// with which its first frame begins. An XSUB subscribes or cancels with a frame of 1 or 0 and
    /// a topic.
    ///
    /// `Ok` means that the message is queued, not that it has arrived or has left this process.
    /// [`close`](Self::close) the socket before the runtime ends (`main` returns), or queued
    /// messages are lost.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the message is not sent. Use
    /// [`try_send`](Self::try_send) to keep it.
    ///
    /// # Errors
    ///
    /// - [`Error::is_state`] if the message has no frame.
    /// - [`Error::is_limit`] if it is larger than [`SocketOptions::send_limits`] allow.
    /// - [`Error::is_unroutable`] if a ROUTER has no peer of this identity.
    /// - [`Error::is_refused`] if every peer refused the socket, so that none will come.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        self.sender.send(message).await
    }

    /// Sends all messages of a list in order, each like [`send`](Self::send), and leaves the list
    /// empty. Many short messages cost a fraction of what they cost one by one.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the list contains exactly the
    /// messages that were not sent.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`send`](Self::send). The message that failed is then the first of
    /// those left in the list.
    pub async fn send_many(&mut self, messages: &mut Vec<Message>) -> Result<()> {
        self.sender.send_many(messages).await
    }

    /// Sends a message if that can be done at once.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`send`](Self::send), and [`TrySendError::is_full`] if the call would
    /// have to wait. The error contains the message.
    pub fn try_send(&mut self, message: impl Into<Message>) -> std::result::Result<(), TrySendError> {
        self.sender.try_send(message)
    }
}

impl<T: Receives> Socket<T> {
    /// Waits for the next message and returns it. Peers take turns.
    ///
    /// The first frame of a message to a ROUTER is the identity of its peer. An XPUB receives a
    /// subscription as one frame: 1 or 0, then the topic.
    ///
    /// Cancel safe: a future that is dropped before it is ready has taken nothing.
    ///
    /// # Errors
    ///
    /// - [`Error::is_refused`] if every peer refused the socket and all messages were read, so that
    ///   none will come.
    /// - [`Error::is_gone`] if the socket [connects once](SocketOptions::connect_once) and has lost
    ///   its last connection, or the runtime of its last endpoint has ended.
    pub async fn recv(&mut self) -> Result<Message> {
        self.receiver.recv().await
    }

    /// Waits for the next message and returns it with the peer that sent it. The peer has its
    /// address, and the key of CURVE that it proved to have. Costs a look-up for each message.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer)> {
        self.receiver.recv_with_peer().await
    }

    /// Waits for a message, then appends it and all others that are ready to `messages`, at most
    /// `limit`. Returns their number, which is zero only if `limit` is zero.
    ///
    /// Cancel safe: nothing is appended before the future is ready.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_many(&mut self, messages: &mut Vec<Message>, limit: usize) -> Result<usize> {
        self.receiver.recv_many(messages, limit).await
    }

    /// Returns the next message if one is ready.
    pub fn try_recv(&mut self) -> Option<Message> {
        self.receiver.try_recv()
    }
}

impl<T: Sends + Receives> Socket<T> {
    /// Splits the socket into two halves for two tasks. Each half can bind and connect the socket,
    /// which closes when both are dropped.
    #[must_use]
    pub fn split(self) -> (Sender<T>, Receiver<T>) {
        (self.sender, self.receiver)
    }
}

impl Socket<Router> {
    /// Connects to an endpoint like [`connect`](Self::connect), and assigns this identity to the
    /// peer there, regardless of the identity that it chose. Messages can be addressed to it as
    /// soon as it is connected.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`connect`](Self::connect).
    pub fn connect_as<E>(&self, endpoint: E, identity: Identity) -> Result<bool>
    where
        E: TryInto<Endpoint>,
        Error: From<E::Error>,
    {
        self.owner().connect(endpoint.try_into()?, Some(identity))
    }
}

impl Socket<Xpub> {
    /// Subscribes a peer to a topic, for a socket with [manual](SocketOptions::manual)
    /// subscriptions. Subscriptions add up. Returns `false` if the peer has disconnected.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if the socket subscribes peers by itself.
    pub fn subscribe_peer(&self, peer: &RemotePeer, topic: impl IntoFrame) -> Result<bool> {
        self.decide_topic(peer, topic, true)
    }

    /// Cancels one subscription of a peer, for a socket with [manual](SocketOptions::manual)
    /// subscriptions. Returns `false` if the peer has disconnected.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`subscribe_peer`](Self::subscribe_peer).
    pub fn cancel_peer(&self, peer: &RemotePeer, topic: impl IntoFrame) -> Result<bool> {
        self.decide_topic(peer, topic, false)
    }

    fn decide_topic(&self, peer: &RemotePeer, topic: impl IntoFrame, is_subscribed: bool) -> Result<bool> {
        let shared = &self.owner().shared;
        if !shared.options.is_manual {
            return Err(Error::misuse(
                "the socket subscribes its peers by itself; make it with `SocketOptions::manual`",
            ));
        }
        Ok(shared.decide_topic(peer.connection, &topic.into_frame(), is_subscribed))
    }
}

impl<T: Subscribes> Socket<T> {
    /// Subscribes to all messages whose first frame begins with `topic`, at every current and
    /// future publisher. The empty topic matches every message.
    ///
    /// Subscriptions add up: two subscriptions to a topic need two cancellations.
    ///
    /// A publisher sends matching messages from the moment at which it receives the subscription.
    /// Earlier messages are not sent.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_limit`]) if the topic is longer than
    /// [`TOPIC_BYTES`](crate::protocol::bounds::TOPIC_BYTES), or there are more than
    /// [`SUBSCRIPTIONS`](super::bounds::SUBSCRIPTIONS) topics.
    pub fn subscribe(&self, topic: impl IntoFrame) -> Result<()> {
        self.owner().shared.subscribe(topic.into_frame())
    }

    /// Cancels one subscription. Does nothing if there is none to this topic. After the last
    /// cancellation no message of the topic is received any more, even if it was on its way.
    pub fn cancel(&self, topic: impl IntoFrame) {
        self.owner().shared.cancel(&topic.into_frame());
    }
}

impl<T: Kind> Default for Socket<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Kind> fmt::Debug for Socket<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Socket").field("type", &T::TYPE).finish_non_exhaustive()
    }
}

/// A stream of the messages. It does not end while the socket lives.
impl<T: Receives> Stream for Socket<T> {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        self.receiver.core.poll_recv(context).map(Some)
    }
}

/// A sink like that of [`Sender`].
impl<T: Sends> Sink<Message> for Socket<T> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender.core.poll_sink_ready(context)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<()> {
        self.sender.core.start_sink_send(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender.core.poll_sink_ready(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender.core.poll_sink_ready(context)
    }
}
