//! The options of a connection.

use std::time::Duration;

use bytes::Bytes;

use super::bounds::{GATHER_BYTES, METADATA_BYTES, METADATA_PROPERTIES, PING_CONTEXT_BYTES};
use super::error::{Error, Result};
use super::event::Peer;
use super::identity::Identity;
use super::limits::Limits;
use super::mechanism::Security;
use super::metadata::property_name;
use super::socket_type::SocketType;

/// The default for the duration of a handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time to live that a heartbeat can announce: 65535 tenths of a second.
pub const HEARTBEAT_TTL_LONGEST: Duration = Duration::from_millis(6_553_500);

/// The options by which a connection presents itself and accepts its peer. All connections of a
/// socket share one value.
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
    /// Returns the options of a socket of this type: mechanism NULL, no identity, no heartbeats,
    /// default limits.
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

    /// Sets the identity by which a ROUTER addresses this socket. Only REQ, DEALER and ROUTER
    /// sockets send it. Default: none.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the mechanism and the local side of it. The peer must use exactly the same mechanism.
    /// Default: [`Security::Null`].
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// Sets the limits on what the peer may send. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the longest duration of the whole handshake, including the decision about the peer.
    /// Default: [`HANDSHAKE_TIMEOUT`].
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Sends heartbeats to the peer. Default: none. The connection always replies to heartbeats of
    /// the peer.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Heartbeat) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Sets the size of a payload, in bytes, from which it is written from where it is. Smaller
    /// payloads are copied into the write buffer. Default: [`GATHER_BYTES`].
    #[must_use]
    pub fn gather_bytes(mut self, bytes: usize) -> Self {
        self.gather_bytes = bytes;
        self
    }

    /// Returns whether heartbeats are set but are not sent to this peer.
    #[cfg(feature = "tokio")]
    pub(crate) fn lacks_heartbeat(&self, peer: &Peer) -> bool {
        self.heartbeat.is_some() && self.heartbeat_for(peer).is_none()
    }

    /// Returns the heartbeats to send to this peer.
    pub(crate) fn heartbeat_for(&self, peer: &Peer) -> Option<&Heartbeat> {
        self.heartbeat.as_ref().filter(|heartbeat| peer.knows_3_1() || heartbeat.pings_version_3_0)
    }

    /// Adds a property to the metadata for the peer. By convention its name begins with `X-`.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) in these cases:
    ///
    /// * The name is not 1 to 255 letters, digits and `-_.+`.
    /// * The protocol uses the name, or it was given before.
    /// * The properties would take more than half of [`METADATA_BYTES`], or more than
    ///   [`METADATA_PROPERTIES`] with the protocol's own.
    pub fn property(mut self, name: &str, value: impl Into<Bytes>) -> Result<Self> {
        let value = value.into();
        property_name(name.as_bytes()).map_err(|error| Error::misuse(error.to_string()))?;
        let is_name = |known: &str| known.eq_ignore_ascii_case(name);
        if ["Socket-Type", "Identity"].into_iter().any(is_name)
            || self.properties.iter().any(|(known, _)| is_name(known))
        {
            return Err(Error::misuse(format!(
                "the property `{name}` was given before or belongs to the protocol; choose another name"
            )));
        }
        // A property has one octet for the length of its name and four for that of its value.
        let bytes: usize = self.properties.iter().map(|(name, value)| name.len() + value.len() + 5).sum();
        // The other half is left to the protocol's own properties.
        if bytes + name.len() + value.len() + 5 > METADATA_BYTES / 2 || self.properties.len() + 2 >= METADATA_PROPERTIES
        {
            return Err(Error::misuse(format!("there is no room for the property `{name}`")));
        }
        self.properties.push((name.to_owned(), value));
        Ok(self)
    }
}

/// The heartbeats to a silent peer.
///
/// A `PING` goes out every `interval`, unless the previous one is unanswered. Anything that the
/// peer sends counts as a reply.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) ttl: Duration,
    pub(crate) context: Bytes,
    pub(crate) pings_version_3_0: bool,
}

impl Heartbeat {
    /// Sends a `PING` at this interval, and ends the connection if nothing arrives for the same
    /// time after one. Announces no time to live to the peer.
    ///
    /// The interval must be more than zero, because otherwise the peer has no time to reply. A
    /// socket rejects a zero interval when it binds or connects. To send no heartbeats, set none.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { interval, timeout: interval, ttl: Duration::ZERO, context: Bytes::new(), pings_version_3_0: false }
    }

    /// Sets the time for which the peer may be silent after a `PING` before the connection ends. It
    /// must be more than zero. Default: the interval.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Announces to the peer the time for which this side may be silent before the peer ends the
    /// connection. The time is rounded down to tenths of a second, but to no less than one. A time
    /// above [`HEARTBEAT_TTL_LONGEST`] is cut to it. Default: zero, which announces nothing.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.min(HEARTBEAT_TTL_LONGEST);
        self
    }

    /// Sets the context that the peer returns with its reply. Default: empty.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if it is longer than 16 bytes.
    pub fn context(mut self, context: impl Into<Bytes>) -> Result<Self> {
        self.context = context.into();
        if self.context.len() > PING_CONTEXT_BYTES {
            return Err(Error::misuse(format!("a heartbeat's context has at most {PING_CONTEXT_BYTES} bytes")));
        }
        Ok(self)
    }

    /// Sends heartbeats also to peers of ZMTP 3.0, which does not define `PING`. libzmq 4.2
    /// understands it anyway; other peers may disconnect. Default: no.
    #[must_use]
    pub fn ping_version_3_0(mut self) -> Self {
        self.pings_version_3_0 = true;
        self
    }

    pub(crate) fn ttl_in_tenths(&self) -> u16 {
        let tenths = u16::try_from(self.ttl.as_millis() / 100).unwrap_or(u16::MAX);
        // Zero would announce that this side may be silent without limit.
        tenths.max(u16::from(!self.ttl.is_zero()))
    }
}
