//! The options of a socket.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::high_water_mark::HighWaterMark;
use super::keepalive::TcpKeepalive;
use super::policies::{DuplicateIdentity, Overflow, Reconnect, RefusalPolicy};
use crate::protocol::{self, Heartbeat, Identity, Limits, Message, Security, SocketType};
use crate::socket::bounds::{CONNECT_TIMEOUT, LINGER, PEERS, PENDING_HANDSHAKES};
use crate::socket::endpoint::Endpoint;
use crate::socket::error::Result;
use crate::socket::security::address_range::AddressRange;
use crate::socket::security::authentication::{Authenticator, Candidate, Decision};
use crate::socket::socks::options::{Route, SocksProxy};

/// The options of a socket. The defaults are safe and bounded; set only those that differ.
///
/// Some options are for certain types only. A socket of another type cannot be
/// [bound](crate::socket::Socket::bind) or [connected](crate::socket::Socket::connect) with them.
/// Options on mechanisms, limits of received data, and times apply to connections over streams.
/// Connections within a process (`inproc`) have none of these.
///
/// ```
/// use std::time::Duration;
/// use onward_zmtp::socket::{HighWaterMark, SocketOptions};
/// use onward_zmtp::PushSocket;
///
/// let options = SocketOptions::new()
///     .send_high_water_mark(HighWaterMark { messages: 10_000, bytes: 64 * 1024 * 1024 })
///     .linger(Duration::from_secs(10));
/// let push = PushSocket::with_options(options);
/// ```
#[derive(Clone)]
pub struct SocketOptions {
    /// The protocol options. Their socket type is replaced by that of the socket.
    pub(in crate::socket) protocol: protocol::Options,
    pub(super) send_limits: Option<Limits>,
    pub(in crate::socket) send_high_water_mark: HighWaterMark,
    pub(in crate::socket) receive_high_water_mark: HighWaterMark,
    pub(in crate::socket) linger: Duration,
    pub(in crate::socket) reconnect: Reconnect,
    pub(in crate::socket) on_refusal: RefusalPolicy,
    pub(in crate::socket) connects_once: bool,
    pub(in crate::socket) hello: Option<Message>,
    pub(in crate::socket) conflates: bool,
    pub(in crate::socket) ipc_permissions: Option<u32>,
    pub(super) allowed: Vec<AddressRange>,
    pub(in crate::socket) connect_timeout: Duration,
    pub(in crate::socket) keepalive: Option<TcpKeepalive>,
    pub(in crate::socket) socks_proxy: Option<SocksProxy>,
    pub(in crate::socket) peers: usize,
    pub(in crate::socket) pending_handshakes: usize,
    pub(in crate::socket) duplicate_identity: DuplicateIdentity,
    pub(in crate::socket) overflow: Overflow,
    pub(in crate::socket) is_verbose: bool,
    pub(in crate::socket) is_manual: bool,
    pub(in crate::socket) waits_for_peer: bool,
    pub(in crate::socket) correlates: bool,
    pub(in crate::socket) authenticator: Option<Arc<Authenticator>>,
}

impl SocketOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self {
            protocol: protocol::Options::new(SocketType::Pair),
            send_limits: None,
            send_high_water_mark: HighWaterMark::default(),
            receive_high_water_mark: HighWaterMark::default(),
            linger: LINGER,
            reconnect: Reconnect::default(),
            on_refusal: RefusalPolicy::default(),
            connects_once: false,
            hello: None,
            conflates: false,
            ipc_permissions: None,
            allowed: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            keepalive: None,
            socks_proxy: None,
            peers: PEERS,
            pending_handshakes: PENDING_HANDSHAKES,
            duplicate_identity: DuplicateIdentity::default(),
            overflow: Overflow::default(),
            is_verbose: false,
            is_manual: false,
            waits_for_peer: false,
            correlates: false,
            authenticator: None,
        }
    }

    /// Sets the identity by which a ROUTER addresses this socket. For REQ, DEALER and ROUTER.
    /// Default: none.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.protocol = self.protocol.identity(identity);
        self
    }

    /// Sets the mechanism and the side of it. Default: [`Security::Null`].
    ///
    /// A server of PLAIN or CURVE accepts no peer without
    /// [`authenticate_with`](Self::authenticate_with).
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.protocol = self.protocol.security(security);
        self
    }

    /// Sets the function that decides which peers may connect, for a server of PLAIN or CURVE. It
    /// is called once for each handshake, concurrently for several. When the time of the handshake
    /// is over, the peer is disconnected.
    ///
    /// The function corresponds to ZAP (RFC 27) in libzmq. It requires [`security`](Self::security)
    /// with a server.
    ///
    /// ```
    /// use onward_zmtp::protocol::{Credentials, KeyPair, Security};
    /// use onward_zmtp::socket::{Decision, SocketOptions};
    ///
    /// let (ours, welcome) = (KeyPair::generate()?, KeyPair::generate()?.public());
    /// let options = SocketOptions::new()
    ///     .security(Security::CurveServer { keys: ours })
    ///     .authenticate_with(move |candidate| async move {
    ///         match candidate.credentials() {
    ///             Credentials::Curve { key } if *key == welcome => Decision::Accept,
    ///             _ => Decision::refuse(),
    ///         }
    ///     });
    /// # Ok::<(), onward_zmtp::protocol::Error>(())
    /// ```
    #[must_use]
    pub fn authenticate_with<F, D>(mut self, decide: F) -> Self
    where
        F: Fn(Candidate) -> D + Send + Sync + 'static,
        D: Future<Output = Decision> + Send + 'static,
    {
        self.authenticator = Some(Arc::new(move |candidate| Box::pin(decide(candidate))));
        self
    }

    /// Sets the limits of data accepted from a peer. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.protocol = self.protocol.limits(limits);
        self
    }

    /// Sets the limits of messages to send. Only the fields `frame_bytes`, `message_bytes` and
    /// `message_parts` apply. `send` rejects a larger message before it is queued
    /// ([`Error::is_limit`](crate::socket::Error::is_limit)), because a peer with the same limits
    /// would end the connection.
    ///
    /// Default: for each field, the larger of [`Limits::default`] and [`limits`](Self::limits). It
    /// is therefore enough to raise the limits of both sides, and a socket with low limits may
    /// still send larger messages.
    #[must_use]
    pub fn send_limits(mut self, limits: Limits) -> Self {
        self.send_limits = Some(limits);
        self
    }

    /// Returns true if a connection from this address is accepted.
    pub(in crate::socket) fn allows(&self, address: IpAddr) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|range| range.contains(address))
    }

    /// Returns an endpoint together with the proxy on the way to it.
    pub(in crate::socket) fn route<'a>(&'a self, endpoint: &'a Endpoint) -> Route<'a> {
        let is_tcp = matches!(endpoint, Endpoint::Tcp { .. } | Endpoint::TcpFrom { .. });
        Route { endpoint, proxy: self.socks_proxy.as_ref().filter(|_| is_tcp) }
    }

    /// Returns the limits of messages to send.
    pub(in crate::socket) fn effective_send_limits(&self) -> Limits {
        let (accepted, mut limits) = (&self.protocol.limits, Limits::default());
        limits.frame_bytes = limits.frame_bytes.max(accepted.frame_bytes);
        limits.message_bytes = limits.message_bytes.max(accepted.message_bytes);
        limits.message_parts = limits.message_parts.max(accepted.message_parts);
        self.send_limits.unwrap_or(limits)
    }

    /// Sets the longest time of a handshake. Default:
    /// [`HANDSHAKE_TIMEOUT`](protocol::HANDSHAKE_TIMEOUT).
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.protocol = self.protocol.handshake_timeout(timeout);
        self
    }

    /// Sends heartbeats to silent peers, and disconnects peers that do not reply. Default: none.
    ///
    /// Heartbeats continue while the program does not receive. A peer is not disconnected while
    /// this socket does not read from it because its queue is full.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Heartbeat) -> Self {
        self.protocol = self.protocol.heartbeat(heartbeat);
        self
    }

    /// Adds a property that is sent to peers. By convention its name begins with `X-`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`protocol::Options::property`].
    pub fn property(mut self, name: &str, value: impl Into<Bytes>) -> Result<Self> {
        self.protocol = self.protocol.property(name, value)?;
        Ok(self)
    }

    /// Sets the least size of payloads that are written without a copy. Smaller ones are copied
    /// into the write buffer. Default: [`GATHER_BYTES`](protocol::bounds::GATHER_BYTES).
    #[must_use]
    pub fn gather_bytes(mut self, bytes: usize) -> Self {
        self.protocol = self.protocol.gather_bytes(bytes);
        self
    }

    /// Sets the high-water mark of messages that wait to be sent to one peer. Default:
    /// [`HighWaterMark::default`]. (PULL and SUB send no messages.)
    #[must_use]
    pub fn send_high_water_mark(mut self, high_water_mark: HighWaterMark) -> Self {
        self.send_high_water_mark = high_water_mark.usable();
        self
    }

    /// Sets the high-water mark of messages that were received from one peer and wait for the
    /// program. Default: [`HighWaterMark::default`]. (PUSH and PUB receive none.)
    ///
    /// Several peers share the messages of the high-water mark, but each has at least
    /// [`READ_AHEAD_MESSAGES`](crate::socket::bounds::READ_AHEAD_MESSAGES). The full high-water
    /// mark for each of many peers would not fit into a processor's cache, and such messages are
    /// faster to read later.
    ///
    /// The high-water mark applies once more to all messages that ended connections left unread.
    /// While they have reached it, a new connection is not read until half of them were read. A
    /// peer that reconnects again and again is slowed down like one that stays, and nothing is
    /// lost.
    ///
    /// In total no more is received than the high-water mark for each of the [peers](Self::peers),
    /// plus the unread backlog. The backlog can exceed its high-water mark by the messages of peers
    /// that were connected when it was reached.
    ///
    /// If a program never receives from a socket that can receive, for example an XPUB, the socket
    /// stops reading from new peers.
    #[must_use]
    pub fn receive_high_water_mark(mut self, high_water_mark: HighWaterMark) -> Self {
        self.receive_high_water_mark = high_water_mark.usable();
        self
    }

    /// Sets the time for which a closed socket continues to send queued messages. Zero drops them
    /// at once. Default: [`LINGER`].
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Sets the delays before reconnects. Default: [`Reconnect::default`].
    #[must_use]
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Connects to each endpoint once: when the attempt fails or the connection ends, the socket
    /// does not connect again. If it has no other endpoint and no peer, `send` and `recv` return an
    /// error for which [`Error::is_gone`](crate::socket::Error::is_gone) is true. Default:
    /// reconnects.
    #[must_use]
    pub fn connect_once(mut self) -> Self {
        self.connects_once = true;
        self
    }

    /// Sets a message that every peer is sent first when it connects. It can be a greeting, the
    /// current state for a new subscriber, or an empty message that makes a ROUTER aware of the
    /// peer. Not for REQ, REP, PULL and SUB. A SUB drops it if it is not subscribed to it. Default:
    /// none.
    #[must_use]
    pub fn hello(mut self, message: impl Into<Message>) -> Self {
        self.hello = Some(message.into());
        self
    }

    /// Keeps only the last message of each queue, for values of which only the newest counts. For
    /// PUSH, PULL, PUB, SUB and DEALER. Default: no.
    ///
    /// A message replaces the one that waits, which is dropped and not counted. Sending never waits
    /// for room. A SUB keeps the newest message of all topics, so it should subscribe to one topic
    /// only. Messages in the buffers of the operating system are not replaced, so set this option
    /// on the receiving side, too.
    #[must_use]
    pub fn conflate(mut self) -> Self {
        self.conflates = true;
        self
    }

    /// Sets the permissions of the files of Unix sockets that the socket is bound to, such as
    /// `0o660`, at most `0o777`. They are set before a peer can connect. Default: `0o777` less the
    /// process' umask.
    #[must_use]
    pub fn ipc_permissions(mut self, mode: u32) -> Self {
        self.ipc_permissions = Some(mode);
        self
    }

    /// Accepts TCP connections only from these addresses. Other connections are closed before
    /// anything is read from them. Several calls add up: a connection from any of the ranges is
    /// accepted. Default: from everywhere.
    ///
    /// This keeps the cost of unknown peers low and does not replace CURVE: addresses can be forged
    /// and shared.
    #[must_use]
    pub fn allow_from(mut self, range: AddressRange) -> Self {
        self.allowed.push(range);
        self
    }

    /// Sets the reaction to a peer that refuses the socket. Default: [`RefusalPolicy::GiveUp`].
    #[must_use]
    pub fn on_refusal(mut self, refusal: RefusalPolicy) -> Self {
        self.on_refusal = refusal;
        self
    }

    /// Sets the longest time of an attempt to connect a stream, before its handshake. It includes
    /// the handshake with a [proxy](Self::socks_proxy). Default: [`CONNECT_TIMEOUT`].
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Lets the operating system probe idle TCP connections, and end those whose peer does not
    /// reply. The peer needs no support for it, so it also works with peers without
    /// [heartbeats](Self::heartbeat). Default: no probes.
    #[must_use]
    pub fn tcp_keepalive(mut self, keepalive: TcpKeepalive) -> Self {
        self.keepalive = Some(keepalive);
        self
    }

    /// Connects to `tcp` endpoints through a SOCKS 5 proxy, which resolves their names. The source
    /// of `tcp://SOURCE;DESTINATION` is that of the connection to the proxy. Default: none.
    ///
    /// If the proxy rejects the user name and the password, or does not allow the connection, the
    /// socket reacts as to a [refusal](Self::on_refusal) by the peer. After other failures it tries
    /// again.
    #[must_use]
    pub fn socks_proxy(mut self, proxy: SocksProxy) -> Self {
        self.socks_proxy = Some(proxy);
        self
    }

    /// Sets the limit of peers at a time. More are refused. Default: [`PEERS`], which is also the
    /// highest value; the lowest is one. (A PAIR always has one.)
    #[must_use]
    pub fn peers(mut self, peers: usize) -> Self {
        self.peers = peers.min(PEERS);
        self
    }

    /// Sets the limit of connections of one listener that are in their handshakes at a time. One
    /// more closes the oldest, so that silent peers do not block others. Default:
    /// [`PENDING_HANDSHAKES`].
    #[must_use]
    pub fn pending_handshakes(mut self, handshakes: usize) -> Self {
        self.pending_handshakes = handshakes.max(1);
        self
    }

    /// Sets the reaction to a second peer of the same identity. For ROUTER. Default:
    /// [`DuplicateIdentity::Refuse`].
    #[must_use]
    pub fn duplicate_identity(mut self, duplicate: DuplicateIdentity) -> Self {
        self.duplicate_identity = duplicate;
        self
    }

    /// Sets the reaction to a peer whose queue is full. For PUB, XPUB and XSUB. Default:
    /// [`Overflow::Drop`].
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Receives every subscription and cancellation of every peer, instead of only the first
    /// subscription to a topic and its last cancellation. For XPUB. Default: no.
    #[must_use]
    pub fn verbose(mut self) -> Self {
        self.is_verbose = true;
        self
    }

    /// Disables automatic subscriptions of peers. The program receives every subscription and
    /// cancellation with [`recv_with_peer`](crate::socket::Socket::recv_with_peer). It subscribes
    /// the peer to that topic, to others or to none with
    /// [`subscribe_peer`](crate::socket::XpubSocket::subscribe_peer) and
    /// [`cancel_peer`](crate::socket::XpubSocket::cancel_peer). For XPUB. Default: no.
    #[must_use]
    pub fn manual(mut self) -> Self {
        self.is_manual = true;
        self
    }

    /// Numbers the requests. A request can then be sent again before its reply has come, and a late
    /// reply to an earlier request is not taken for the reply to this one. The peer must return
    /// envelopes unchanged, as REP and ROUTER do. For REQ. Default: no.
    #[must_use]
    pub fn correlate(mut self) -> Self {
        self.correlates = true;
        self
    }

    /// Makes `send` wait until a peer is connected. For PUSH, DEALER and PAIR. Default: no;
    /// messages up to the high-water mark for sending are queued for the first peer to connect.
    #[must_use]
    pub fn wait_for_peer(mut self) -> Self {
        self.waits_for_peer = true;
        self
    }
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SocketOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("SocketOptions");
        fields.field("protocol", &self.protocol);
        fields
            .field("send_high_water_mark", &self.send_high_water_mark)
            .field("receive_high_water_mark", &self.receive_high_water_mark);
        fields.field("linger", &self.linger).field("reconnect", &self.reconnect);
        fields.field("socks_proxy", &self.socks_proxy).finish_non_exhaustive()
    }
}
