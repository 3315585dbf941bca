//! A socket, and the endpoints that it is bound and connected to.

use std::fmt;

use crate::fair_queue::FairQueue;
use crate::protocol::Identity;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::kind::{Kind, Router};
use crate::socket::monitor::events::Monitor;
use crate::socket::monitor::statistics::Statistics;
use crate::socket::options::socket_options::SocketOptions;
use crate::socket::owner::Owner;
use crate::socket::patterns::request_reply::RequestState;
use crate::socket::receive::{ReceiveCore, Receiver};
use crate::socket::send::{SendCore, Sender};
use crate::socket::shared::Shared;

/// A socket of one of ZeroMQ's types. The [module's page](crate::socket) has examples.
///
/// Use it by its names: [`PushSocket`](crate::PushSocket), [`PullSocket`](crate::PullSocket) and so
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
/// messages are lost. [`MonitorEvent::Unsent`](crate::socket::MonitorEvent::Unsent) has their
/// number.
pub struct Socket<T> {
    pub(in crate::socket) sender: Sender<T>,
    pub(in crate::socket) receiver: Receiver<T>,
    pub(in crate::socket) request_state: RequestState,
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

    pub(super) fn owner(&self) -> &Owner {
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
    /// [back-off](crate::socket::Reconnect).
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
