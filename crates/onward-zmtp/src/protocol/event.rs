//! The events of a connection.

use bytes::Bytes;

use super::identity::Identity;
use super::mechanism::{Credentials, PublicKey};
use super::message::Message;
use super::metadata::Metadata;
use super::socket_type::SocketType;

/// An event on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A client showed these credentials. Decide with
    /// [`Connection::accept`](super::Connection::accept) or
    /// [`Connection::refuse`](super::Connection::refuse) before the time for the handshake is over.
    /// Nothing is decoded until then, so an unaccepted peer never delivers a message.
    Authenticate(Credentials),
    /// The peer introduced itself and does not know yet that it may send. Only a connection made
    /// with [`accepted`](super::Connection::accepted) reports this event. Decide as for
    /// `Authenticate`.
    ///
    /// A program that drops the connection rejects the peer for now. The peer was told nothing and
    /// has sent nothing that could be lost.
    Introduced(Box<Peer>),
    /// The handshake is done: messages can be sent and received.
    Ready(Box<Peer>),
    /// A complete message.
    Message(Message),
    /// The peer subscribed to a topic. Only PUB and XPUB report it. The topic is in
    /// [`Connection::subscriptions`](super::Connection::subscriptions) already.
    Subscribe(Bytes),
    /// The peer cancelled one existing subscription to a topic.
    Cancel(Bytes),
    /// The peer replied to a heartbeat, with the context that the `PING` carried.
    Pong(Bytes),
}

/// The peer at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub(crate) socket_type: SocketType,
    pub(crate) identity: Option<Identity>,
    pub(crate) version: (u8, u8),
    pub(crate) client_key: Option<PublicKey>,
    pub(crate) metadata: Metadata,
}

impl Peer {
    /// Returns the type of the peer's socket.
    #[must_use]
    pub fn socket_type(&self) -> SocketType {
        self.socket_type
    }

    /// Returns the identity that the peer chose, if any. Another peer may have chosen the same.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Returns the peer's version of ZMTP: major and minor.
    #[must_use]
    pub fn version(&self) -> (u8, u8) {
        self.version
    }

    /// Returns the client's long-term key, which it proved to have. Only the server of CURVE has
    /// one.
    #[must_use]
    pub fn client_key(&self) -> Option<PublicKey> {
        self.client_key
    }

    /// Returns all properties that the peer sent about itself.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns whether the peer knows the commands for subscriptions and heartbeats.
    pub(crate) fn knows_3_1(&self) -> bool {
        self.version >= (3, 1)
    }
}
