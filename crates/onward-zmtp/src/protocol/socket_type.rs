//! Socket types, and which of them are compatible.

use std::fmt;

/// The type of a socket, which determines the messages that it sends and expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SocketType {
    /// `REQ`: sends a request, then receives its reply.
    Req,
    /// `REP`: replies to requests.
    Rep,
    /// `DEALER`: like REQ, but asynchronous.
    Dealer,
    /// `ROUTER`: like REP, but asynchronous; addresses peers by identity.
    Router,
    /// `PUB`: sends to all subscribers.
    Pub,
    /// `XPUB`: a PUB that reports subscriptions.
    Xpub,
    /// `SUB`: receives messages of the topics it subscribed to.
    Sub,
    /// `XSUB`: a SUB that sends subscriptions as messages.
    Xsub,
    /// `PUSH`: sends each message to one of its peers.
    Push,
    /// `PULL`: receives from all its peers.
    Pull,
    /// `PAIR`: exactly one peer.
    Pair,
    /// `CLIENT` (RFC 41).
    Client,
    /// `SERVER` (RFC 41).
    Server,
    /// `RADIO` (RFC 48).
    Radio,
    /// `DISH` (RFC 48).
    Dish,
    /// `SCATTER` (RFC 49).
    Scatter,
    /// `GATHER` (RFC 49).
    Gather,
    /// `PEER` (RFC 51).
    Peer,
    /// `CHANNEL` (RFC 52).
    Channel,
}

use SocketType::{
    Channel, Client, Dealer, Dish, Gather, Pair, Peer, Pub, Pull, Push, Radio, Rep, Req, Router, Scatter, Server, Sub,
    Xpub, Xsub,
};

/// Each socket type, its name on the wire, and its compatible types (RFC 37, "The Socket-Type
/// Property").
const TABLE: [(SocketType, &str, &[SocketType]); 19] = [
    (Req, "REQ", &[Rep, Router]),
    (Rep, "REP", &[Req, Dealer]),
    (Dealer, "DEALER", &[Rep, Dealer, Router]),
    (Router, "ROUTER", &[Req, Dealer, Router]),
    (Pub, "PUB", &[Sub, Xsub]),
    (Xpub, "XPUB", &[Sub, Xsub]),
    (Sub, "SUB", &[Pub, Xpub]),
    (Xsub, "XSUB", &[Pub, Xpub]),
    (Push, "PUSH", &[Pull]),
    (Pull, "PULL", &[Push]),
    (Pair, "PAIR", &[Pair]),
    (Client, "CLIENT", &[Server]),
    (Server, "SERVER", &[Client]),
    (Radio, "RADIO", &[Dish]),
    (Dish, "DISH", &[Radio]),
    (Scatter, "SCATTER", &[Gather]),
    (Gather, "GATHER", &[Scatter]),
    (Peer, "PEER", &[Peer]),
    (Channel, "CHANNEL", &[Channel]),
];

impl SocketType {
    /// All socket types.
    pub const ALL: [Self; 19] = [
        Req, Rep, Dealer, Router, Pub, Xpub, Sub, Xsub, Push, Pull, Pair, Client, Server, Radio, Dish, Scatter, Gather,
        Peer, Channel,
    ];

    /// Returns the name on the wire, in capital letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// Returns the type with this name, which must match exactly.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        TABLE.iter().find(|entry| entry.1.as_bytes() == name).map(|entry| entry.0)
    }

    /// Returns the types that are compatible with this type.
    #[must_use]
    pub fn peers(self) -> &'static [Self] {
        self.entry().2
    }

    /// Returns whether the two types are compatible. The relation is symmetric.
    ///
    /// ```
    /// use onward_zmtp::protocol::SocketType;
    /// assert!(SocketType::Dealer.is_compatible_with(SocketType::Router));
    /// assert!(!SocketType::Push.is_compatible_with(SocketType::Push));
    /// ```
    #[must_use]
    pub fn is_compatible_with(self, peer: Self) -> bool {
        self.peers().contains(&peer)
    }

    /// Returns whether peers of this socket subscribe.
    pub(crate) fn has_subscribers(self) -> bool {
        matches!(self, Pub | Xpub)
    }

    /// Returns whether this socket subscribes.
    pub(crate) fn subscribes(self) -> bool {
        matches!(self, Sub | Xsub)
    }

    /// Returns whether this socket sends its identity.
    pub(crate) fn sends_identity(self) -> bool {
        matches!(self, Req | Dealer | Router)
    }

    fn entry(self) -> &'static (Self, &'static str, &'static [Self]) {
        // The table is in the order of the variants, which
        // `the_table_is_in_the_order_of_the_variants` checks.
        &TABLE[self as usize]
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (index, socket_type) in SocketType::ALL.iter().enumerate() {
            assert_eq!(*socket_type as usize, index);
            assert_eq!(TABLE[index].0, *socket_type);
        }
    }
}
