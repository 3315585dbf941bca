//! The reactions of a socket to lost connections, refusals, duplicate identities and full queues.

use std::time::Duration;

use crate::socket::bounds::{RECONNECT_FIRST, RECONNECT_LONGEST};

/// The delays of a socket before it reconnects after a connection has failed or ended.
///
/// The delay doubles from `first` with every failed attempt, up to `longest`. Each is multiplied by
/// a random number from 0.5 to 1.5, so that clients that lost a server together do not come back
/// together.
///
/// A connection that lasted at least as long as the next delay resets it to `first`. If a peer ends
/// each connection at once, the delay therefore grows.
///
/// Delays below [`RECONNECT_SHORTEST`](crate::socket::bounds::RECONNECT_SHORTEST), including zero,
/// are raised to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// The delay before the first new attempt. Default: [`RECONNECT_FIRST`].
    pub first: Duration,
    /// The longest delay, before it is multiplied. Default: [`RECONNECT_LONGEST`].
    pub longest: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { first: RECONNECT_FIRST, longest: RECONNECT_LONGEST }
    }
}

/// The reaction of a ROUTER to a peer with the identity of another connected peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateIdentity {
    /// The new peer is disconnected.
    #[default]
    Refuse,
    /// The new peer takes over the identity, and the old one is disconnected. Use this only if
    /// peers are trusted or authenticated: each of them can cut off any other.
    TakeOver,
}

/// The reaction of a socket whose peer refuses it. There are four kinds of refusal:
///
/// - an `ERROR` of the peer,
/// - another mechanism,
/// - an incompatible socket type,
/// - a server of CURVE that closes the connection [several
///   times](crate::socket::bounds::UNANSWERED_HANDSHAKES) without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RefusalPolicy {
    /// The socket does not connect to this endpoint again. If it has no other endpoint and no peer,
    /// `send` and `recv` return an error for which
    /// [`Error::is_refused`](crate::socket::Error::is_refused) is true, instead of waiting.
    #[default]
    GiveUp,
    /// The socket reconnects, as after any other failure. This is for a peer whose configuration is
    /// about to change.
    Retry,
}

/// The reaction of PUB, XPUB and XSUB to a peer whose queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The peer misses the message, which is [counted](crate::socket::Statistics::dropped). Other
    /// peers get it.
    #[default]
    Drop,
    /// The sender waits for the peer, and so do all other peers. One peer that does not read then
    /// stops everything.
    Wait,
}
