//! What a connection is made with.

use std::time::Duration;

use bytes::Bytes;

use super::error::{Error, Result};
use super::event::Peer;
use super::identity::Identity;
use super::limits::{GATHER_BYTES, Limits, METADATA_BYTES, METADATA_PROPERTIES, PING_CONTEXT_BYTES};
use super::mechanism::Security;
use super::metadata::property_name;
use super::socket_type::SocketType;

/// How long a handshake may take, unless the connection was made with another time.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time to live that a heartbeat can tell: 65535 tenths of a second.
pub const HEARTBEAT_TTL_LONGEST: Duration = Duration::from_millis(6_553_500);

/// How a connection presents itself and what it accepts. All connections of a socket share one.
///
/// ```
/// use onward_zmtp::protocol::{Identity, Options, SocketType};
/// let options = Options::new(SocketType::Dealer).identity(Identity::new("worker-7")?);
/// # Ok::<(), onward_zmtp::protocol::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) socket_type: SocketType,
    pub(crate) identity: Option<Identity>,
    pub(crate) security: Security,
    pub(crate) limits: Limits,
    pub(crate) handshake_timeout: Duration,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) gather_bytes: usize,
    pub(crate) properties: Vec<(String, Bytes)>,
}

impl Options {
    /// A socket of this type: mechanism NULL, no identity, no heartbeats, default limits.
    #[must_use]
    pub fn new(socket_type: SocketType) -> Self {
        Self {
            socket_type,
            identity: None,
            security: Security::Null,
            limits: Limits::default(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            heartbeat: None,
            gather_bytes: GATHER_BYTES,
            properties: Vec::new(),
        }
    }

    /// The identity that a ROUTER will know this socket by. Told by REQ, DEALER and ROUTER sockets
    /// only. Default: none.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The mechanism, and which side of it we are. The peer must use exactly the same. Default:
    /// [`Security::Null`].
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// What is accepted from the peer. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long the whole handshake may take, the decision about the peer included. Default:
    /// [`HANDSHAKE_TIMEOUT`].
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Asks a silent peer for signs of life. Default: does not ask. (Heartbeats of the peer are
    /// answered in any case.)
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Heartbeat) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Payloads of at least so many bytes are written from where they are; smaller ones are copied
    /// into the write buffer. Default: [`GATHER_BYTES`].
    #[must_use]
    pub fn gather_bytes(mut self, bytes: usize) -> Self {
        self.gather_bytes = bytes;
        self
    }

    /// Whether heartbeats are wanted and this peer is not asked for them.
    #[cfg(feature = "tokio")]
    pub(crate) fn lacks_heartbeat(&self, peer: &Peer) -> bool {
        self.heartbeat.is_some() && self.heartbeat_for(peer).is_none()
    }

    /// Returns how this peer is asked for signs of life.
    pub(crate) fn heartbeat_for(&self, peer: &Peer) -> Option<&Heartbeat> {
        self.heartbeat.as_ref().filter(|heartbeat| peer.knows_3_1() || heartbeat.asks_version_3_0)
    }

    /// Tells the peer a property more; by convention its name begins with `X-`.
    ///
    /// # Errors
    ///
    /// If the name is not 1 to 255 letters, digits and `-_.+`, is one that the protocol uses or was
    /// given before, or if all of it is more than [`METADATA_BYTES`] or [`METADATA_PROPERTIES`]:
    /// [`Error::is_misuse`].
    pub fn property(mut self, name: &str, value: impl Into<Bytes>) -> Result<Self> {
        let value = value.into();
        property_name(name.as_bytes()).map_err(|error| Error::misuse(error.to_string()))?;
        let is_name = |known: &str| known.eq_ignore_ascii_case(name);
        if ["Socket-Type", "Identity"].into_iter().any(is_name)
            || self.properties.iter().any(|(known, _)| is_name(known))
        {
            return Err(Error::misuse(format!("the property `{name}` is there already")));
        }
        let bytes: usize = self.properties.iter().map(|(name, value)| name.len() + value.len() + 5).sum();
        // Half is left to what the protocol itself says there.
        if bytes + name.len() + value.len() + 5 > METADATA_BYTES / 2 || self.properties.len() + 2 >= METADATA_PROPERTIES
        {
            return Err(Error::misuse(format!("there is no room for the property `{name}`")));
        }
        self.properties.push((name.to_owned(), value));
        Ok(self)
    }
}

/// How we ask a silent peer for signs of life.
///
/// A `PING` goes out every `interval`, unless the one before is unanswered. Anything that the peer
/// sends counts as an answer.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) ttl: Duration,
    pub(crate) context: Bytes,
    pub(crate) asks_version_3_0: bool,
}

impl Heartbeat {
    /// Asks so often, and takes the peer for dead when nothing came for as long after a question.
    /// Tells the peer no time to live.
    ///
    /// More than zero: with none, the peer has no time to answer. (A socket is not bound or
    /// connected with that; to ask nobody, set no heartbeat.)
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { interval, timeout: interval, ttl: Duration::ZERO, context: Bytes::new(), asks_version_3_0: false }
    }

    /// How long the peer may be silent after a `PING` before it is taken for dead; more than zero.
    /// Default: the interval.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Tells the peer to take us for dead when it has not heard from us for so long; rounded down
    /// to tenths of a second, but to no less than one. Default: zero, which says nothing. At most
    /// [`HEARTBEAT_TTL_LONGEST`]; what is longer is cut.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.min(HEARTBEAT_TTL_LONGEST);
        self
    }

    /// What the peer sends back with its answer. Default: nothing.
    ///
    /// # Errors
    ///
    /// If it is longer than 16 bytes: [`Error::is_misuse`].
    pub fn context(mut self, context: impl Into<Bytes>) -> Result<Self> {
        self.context = context.into();
        if self.context.len() > PING_CONTEXT_BYTES {
            return Err(Error::misuse(format!("a heartbeat's context has at most {PING_CONTEXT_BYTES} bytes")));
        }
        Ok(self)
    }

    /// Asks peers of ZMTP 3.0 too, which does not know `PING`. libzmq 4.2 understands it all the
    /// same; others may disconnect. Default: no.
    #[must_use]
    pub fn ask_version_3_0(mut self) -> Self {
        self.asks_version_3_0 = true;
        self
    }

    pub(crate) fn ttl_in_tenths(&self) -> u16 {
        let tenths = u16::try_from(self.ttl.as_millis() / 100).unwrap_or(u16::MAX);
        // Zero would say that we may be silent for ever.
        tenths.max(u16::from(!self.ttl.is_zero()))
    }
}
