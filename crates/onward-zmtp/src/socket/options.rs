//! What a socket is made with.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::allowed::AddressRange;
use super::authentication::{Authenticator, Candidate, Decision};
use super::error::Result;
use super::keepalive::TcpKeepalive;
use super::limits::{
    CONNECT_TIMEOUT, HIGH_WATER_MARK_BYTES, HIGH_WATER_MARK_MESSAGES, LINGER, PEERS, PENDING_HANDSHAKES,
    RECONNECT_FIRST, RECONNECT_LONGEST,
};
use crate::protocol::{self, Heartbeat, Identity, Limits, Message, Security, SocketType};

/// How a socket behaves. The defaults are safe and bounded; set what differs.
///
/// An option that says for which types it is may be set for those only: a socket of another type is not [bound](super::Socket::bind) or
/// [connected](super::Socket::connect) with it. What is about mechanisms, limits of what is read, and time is for connections over streams; within a process
/// (`inproc`) there are none of these.
///
/// ```
/// use std::time::Duration;
/// use onward_zmtp::socket::{HighWaterMark, SocketOptions};
/// use onward_zmtp::PushSocket;
///
/// let options = SocketOptions::new()
///     .send_mark(HighWaterMark { messages: 10_000, bytes: 64 * 1024 * 1024 })
///     .linger(Duration::from_secs(10));
/// let push = PushSocket::with_options(options);
/// ```
#[derive(Clone)]
pub struct SocketOptions {
    /// The type in it is replaced by the socket's.
    pub(super) protocol: protocol::Options,
    pub(super) send_limits: Option<Limits>,
    pub(super) send_mark: HighWaterMark,
    pub(super) receive_mark: HighWaterMark,
    pub(super) linger: Duration,
    pub(super) reconnect: Reconnect,
    pub(super) on_refusal: Refusal,
    pub(super) connects_once: bool,
    pub(super) hello: Option<Message>,
    pub(super) conflates: bool,
    pub(super) ipc_permissions: Option<u32>,
    pub(super) allowed: Vec<AddressRange>,
    pub(super) connect_timeout: Duration,
    pub(super) keepalive: Option<TcpKeepalive>,
    pub(super) peers: usize,
    pub(super) pending_handshakes: usize,
    pub(super) duplicate_identity: DuplicateIdentity,
    pub(super) overflow: Overflow,
    pub(super) is_verbose: bool,
    pub(super) is_manual: bool,
    pub(super) waits_for_peer: bool,
    pub(super) correlates: bool,
    pub(super) authenticator: Option<Arc<Authenticator>>,
}

/// How much a queue to or from one peer holds, whichever is reached first. Then whoever writes to it waits.
///
/// A single message may be larger than `bytes`; it waits until the queue is empty. At least one message always fits.
///
/// Zero is no bound, as with libzmq. A queue without any bound grows until memory ends if its reader is slower than its writer; so a mark of zero
/// messages still has the default of bytes, unless `bytes` is zero, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWaterMark {
    /// Messages. Default: [`HIGH_WATER_MARK_MESSAGES`].
    pub messages: usize,
    /// Payload, in bytes. Default: [`HIGH_WATER_MARK_BYTES`].
    pub bytes: usize,
}

impl HighWaterMark {
    /// A mark without any bound: see above what that risks.
    pub const UNLIMITED: Self = Self { messages: 0, bytes: 0 };

    /// So many messages (zero for any number), and the default of bytes.
    #[must_use]
    pub fn messages(messages: usize) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Zero is no bound.
    fn usable(self) -> Self {
        let or_any = |bound| if bound == 0 { usize::MAX } else { bound };
        Self { messages: or_any(self.messages), bytes: or_any(self.bytes) }
    }
}

impl Default for HighWaterMark {
    fn default() -> Self {
        Self { messages: HIGH_WATER_MARK_MESSAGES, bytes: HIGH_WATER_MARK_BYTES }
    }
}

/// When a socket connects again after a connection has failed or ended.
///
/// The time doubles from `first` with every attempt that fails, up to `longest`. Each is multiplied by a random number from 0.5 to 1.5, so
/// that clients that lost a server together do not come back together. After a connection that lasted at least as long as the next wait would be, it is
/// `first` again; a peer that ends each connection at once is asked ever more rarely.
///
/// Times below [`RECONNECT_SHORTEST`](super::limits::RECONNECT_SHORTEST), zero too, count as that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// Before the first new attempt. Default: [`RECONNECT_FIRST`].
    pub first: Duration,
    /// The most, before it is multiplied. Default: [`RECONNECT_LONGEST`].
    pub longest: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { first: RECONNECT_FIRST, longest: RECONNECT_LONGEST }
    }
}

/// What a ROUTER does about a peer with the identity of another that is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateIdentity {
    /// The newcomer is disconnected.
    #[default]
    Refuse,
    /// The newcomer takes the identity over, and the other is disconnected. Only where peers are trusted, or authenticated: any of
    /// them can so cut off any other.
    TakeOver,
}

/// The reaction of a socket that connects and is refused: by an `ERROR` of the peer, because the peer uses another mechanism, because the two socket types do
/// not go together, or by a server of CURVE that closes the connection [several times](super::limits::UNANSWERED_HANDSHAKES) in place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Refusal {
    /// The socket does not connect to this endpoint again. When it has no other endpoint and no peer, `send` and `recv` return an error for which
    /// [`Error::is_refused`](super::Error::is_refused) holds, instead of waiting.
    #[default]
    GiveUp,
    /// The socket connects again, as after any other failure: for a peer whose configuration is about to change.
    Retry,
}

/// What PUB, XPUB and XSUB do about a peer whose queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// It misses the message, which is [counted](super::Statistics::dropped). The others get it.
    #[default]
    Drop,
    /// The sender waits for it, and so do all others. One peer that does not read then stops everything.
    Wait,
}

impl SocketOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            protocol: protocol::Options::new(SocketType::Pair),
            send_limits: None,
            send_mark: HighWaterMark::default(),
            receive_mark: HighWaterMark::default(),
            linger: LINGER,
            reconnect: Reconnect::default(),
            on_refusal: Refusal::default(),
            connects_once: false,
            hello: None,
            conflates: false,
            ipc_permissions: None,
            allowed: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            keepalive: None,
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

    /// For REQ, DEALER and ROUTER: the identity that a ROUTER will know this socket by. Default: none.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.protocol = self.protocol.identity(identity);
        self
    }

    /// The mechanism, and which side of it we are. Default: [`Security::Null`].
    ///
    /// A server of PLAIN or CURVE accepts nobody without [`authenticate_with`](Self::authenticate_with).
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.protocol = self.protocol.security(security);
        self
    }

    /// Who may connect, for a server of PLAIN or CURVE. `decide` is asked once for each handshake, concurrently for several, and has what is
    /// left of the handshake's time; then the peer is disconnected.
    ///
    /// It is what ZAP (RFC 27) is in libzmq, as a function. Only with [`security`](Self::security) of a server.
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

    /// What is accepted from a peer. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.protocol = self.protocol.limits(limits);
        self
    }

    /// Sets how large the messages are that the socket sends: the fields `frame_bytes`, `message_bytes` and `message_parts` count. A larger message is
    /// refused by `send` before it is queued ([`Error::is_limit`](super::Error::is_limit)), since a peer with the same limits would end the connection.
    ///
    /// Default: of each field the larger of [`Limits::default`] and [`limits`](Self::limits). So raising the limits of both sides is enough, and a
    /// socket that accepts little may send more.
    #[must_use]
    pub fn send_limits(mut self, limits: Limits) -> Self {
        self.send_limits = Some(limits);
        self
    }

    /// Whether a connection from this address is accepted.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|range| range.contains(address))
    }

    /// Returns the limits of what is sent.
    pub(super) fn limits_of_sending(&self) -> Limits {
        let (accepted, mut limits) = (&self.protocol.limits, Limits::default());
        limits.frame_bytes = limits.frame_bytes.max(accepted.frame_bytes);
        limits.message_bytes = limits.message_bytes.max(accepted.message_bytes);
        limits.message_parts = limits.message_parts.max(accepted.message_parts);
        self.send_limits.unwrap_or(limits)
    }

    /// How long a handshake may take. Default: [`HANDSHAKE_TIMEOUT`](protocol::HANDSHAKE_TIMEOUT).
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.protocol = self.protocol.handshake_timeout(timeout);
        self
    }

    /// Asks silent peers for signs of life, and gives those up that give none. Default: does not ask.
    ///
    /// It goes on while the program does not receive. A peer is not given up while we do not read from it because the queue is full.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Heartbeat) -> Self {
        self.protocol = self.protocol.heartbeat(heartbeat);
        self
    }

    /// Tells peers a property more; by convention its name begins with `X-`.
    ///
    /// # Errors
    ///
    /// As [`protocol::Options::property`].
    pub fn property(mut self, name: &str, value: impl Into<Bytes>) -> Result<Self> {
        self.protocol = self.protocol.property(name, value)?;
        Ok(self)
    }

    /// Payloads of at least so many bytes are written from where they are; smaller ones are copied into the write buffer.
    /// Default: [`GATHER_BYTES`](protocol::limits::GATHER_BYTES).
    #[must_use]
    pub fn gather_bytes(mut self, bytes: usize) -> Self {
        self.protocol = self.protocol.gather_bytes(bytes);
        self
    }

    /// How much may wait to be sent to one peer. Default: [`HighWaterMark::default`]. (PULL and SUB send no messages.)
    #[must_use]
    pub fn send_mark(mut self, mark: HighWaterMark) -> Self {
        self.send_mark = mark.usable();
        self
    }

    /// How much may have been received from one peer and wait for the program. Default: [`HighWaterMark::default`]. (PUSH and PUB receive none.)
    ///
    /// Several peers share its messages, as long as each has [`READ_AHEAD_MESSAGES`](super::limits::READ_AHEAD_MESSAGES): what each of many had read ahead would be more
    /// than fits a processor's cache, and is quicker to read later.
    ///
    /// It holds once more for all that connections left unread when they ended. While they have left that much, a connection that begins is not read
    /// until half of it was: a peer that comes back again and again feels it as one that stays, and nothing is lost. So no more is received than the
    /// mark for each of the [peers](Self::peers), and as much again as those left who were there when it was reached.
    ///
    /// A program that never receives from a socket that can, an XPUB say, stops hearing those who come.
    #[must_use]
    pub fn receive_mark(mut self, mark: HighWaterMark) -> Self {
        self.receive_mark = mark.usable();
        self
    }

    /// How long a closed socket goes on sending what was queued. Zero drops it at once. Default: [`LINGER`].
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// When to connect again. Default: [`Reconnect::default`].
    #[must_use]
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Connects to each endpoint once: when the attempt fails, or the connection ends, the socket does not connect to it again. When it has no other endpoint and
    /// no peer, `send` and `recv` return an error for which [`Error::is_gone`](super::Error::is_gone) holds. Default: connects again and again.
    #[must_use]
    pub fn connect_once(mut self) -> Self {
        self.connects_once = true;
        self
    }

    /// Sends this message to every peer, before all others, when it is connected: a greeting, the current state for a new subscriber, or an empty one for a
    /// ROUTER that is to learn who is there. Not for REQ, REP, PULL and SUB. A SUB drops it if it is not subscribed to it. Default: none.
    #[must_use]
    pub fn hello(mut self, message: impl Into<Message>) -> Self {
        self.hello = Some(message.into());
        self
    }

    /// For PUSH, PULL, PUB, SUB and DEALER: keeps of each queue the last message only, for values of which only the newest counts. A message replaces the one
    /// that waits, which is dropped and not counted; sending never waits for room. On a SUB the newest of all topics is kept, so subscribe to one. What
    /// is in the buffers of the operating system is not replaced, so set it on the receiving side, too. Default: no.
    #[must_use]
    pub fn conflate(mut self) -> Self {
        self.conflates = true;
        self
    }

    /// Sets the permissions of the files of Unix sockets that the socket is bound to, as `0o660`. They are set before anybody can connect. Default: what
    /// the process' umask leaves of `0o777`.
    #[must_use]
    pub fn ipc_permissions(mut self, mode: u32) -> Self {
        self.ipc_permissions = Some(mode);
        self
    }

    /// Accepts TCP connections from these addresses only; others are closed before anything is read from them. May be called several times: a connection from any of
    /// the ranges is accepted. Default: from everywhere.
    ///
    /// It keeps strangers from costing anything, and does not replace CURVE: addresses can be forged and shared.
    #[must_use]
    pub fn allow_from(mut self, range: AddressRange) -> Self {
        self.allowed.push(range);
        self
    }

    /// Sets what to do when a peer refuses the socket. Default: [`Refusal::GiveUp`].
    #[must_use]
    pub fn on_refusal(mut self, refusal: Refusal) -> Self {
        self.on_refusal = refusal;
        self
    }

    /// How long an attempt to connect a stream may take, before its handshake. Default: [`CONNECT_TIMEOUT`].
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Has the operating system probe TCP connections over which nothing passes, and end those whose peer does not answer. It needs nothing of the peer, so
    /// it also serves for peers that know no [heartbeats](Self::heartbeat). Default: not; connections use no probes.
    #[must_use]
    pub fn tcp_keepalive(mut self, keepalive: TcpKeepalive) -> Self {
        self.keepalive = Some(keepalive);
        self
    }

    /// How many peers the socket has at a time; more are refused. Default: [`PEERS`], which is also the most. (A PAIR has one, whatever this says.)
    #[must_use]
    pub fn peers(mut self, peers: usize) -> Self {
        self.peers = peers.min(PEERS);
        self
    }

    /// How many connections of one listener may be in their handshakes at a time. When there is one more, the oldest is closed, so that
    /// those who say nothing keep nobody out. Default: [`PENDING_HANDSHAKES`].
    #[must_use]
    pub fn pending_handshakes(mut self, handshakes: usize) -> Self {
        self.pending_handshakes = handshakes.max(1);
        self
    }

    /// For ROUTER: what to do about a second peer of the same identity. Default: [`DuplicateIdentity::Refuse`].
    #[must_use]
    pub fn duplicate_identity(mut self, duplicate: DuplicateIdentity) -> Self {
        self.duplicate_identity = duplicate;
        self
    }

    /// For PUB, XPUB and XSUB: what to do about a peer whose queue is full. Default: [`Overflow::Drop`].
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// For XPUB: receive every subscription and cancellation of every peer, not only the first subscription to a topic and its last
    /// cancellation. Default: no.
    #[must_use]
    pub fn verbose(mut self) -> Self {
        self.is_verbose = true;
        self
    }

    /// For XPUB: subscribes no peer to anything by itself. The program receives every subscription and cancellation with
    /// [`recv_with_peer`](super::Socket::recv_with_peer), and subscribes the peer to that topic, to others or to none with
    /// [`subscribe_peer`](super::XpubSocket::subscribe_peer) and [`cancel_peer`](super::XpubSocket::cancel_peer). Default: no.
    #[must_use]
    pub fn manual(mut self) -> Self {
        self.is_manual = true;
        self
    }

    /// For REQ: number the questions, so that one can be asked anew before the answer has come, and a late answer to an earlier one is not
    /// taken for the answer to this one. The peer must send envelopes back as they came, as REP and ROUTER do. Default: no.
    #[must_use]
    pub fn correlate(mut self) -> Self {
        self.correlates = true;
        self
    }

    /// For PUSH, DEALER and PAIR: sending waits until a peer is connected. Default: no; up to the mark for sending is queued for whoever
    /// is connected to first.
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
        fields.field("send_mark", &self.send_mark).field("receive_mark", &self.receive_mark);
        fields.field("linger", &self.linger).field("reconnect", &self.reconnect).finish_non_exhaustive()
    }
}
