//! What a connection tells.

use bytes::Bytes;

use super::identity::Identity;
use super::mechanism::{Credentials, PublicKey};
use super::message::Message;
use super::metadata::Metadata;
use super::socket_type::SocketType;

/// What happened on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A client showed these credentials. Decide with
    /// [`Connection::accept`](super::Connection::accept) or
    /// [`Connection::refuse`](super::Connection::refuse), before the time for the handshake is
    /// over. Nothing is decoded until then, so there is no message from a peer that was not
    /// accepted.
    Authenticate(Credentials),
    /// Who the peer is, before it is told that it may send: only of a connection that was
    /// [accepted](super::Connection::accepted). Decide as above. To drop the connection refuses the
    /// peer for now: it was told nothing, and has sent nothing that could be lost.
    Introduced(Box<Peer>),
    /// The handshake is done: messages may be sent, and will come.
    Ready(Box<Peer>),
    /// A whole message.
    Message(Message),
    /// The peer subscribed to a topic. Only for PUB and XPUB; it is in
    /// [`Connection::subscriptions`](super::Connection::subscriptions) already.
    Subscribe(Bytes),
    /// The peer took back one subscription to a topic, which was there.
    Cancel(Bytes),
    /// The peer answered a heartbeat, with the context that it was asked with.
    Pong(Bytes),
}

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub(crate) socket_type: SocketType,
    pub(crate) identity: Option<Identity>,
    pub(crate) version: (u8, u8),
    pub(crate) client_key: Option<PublicKey>,
    pub(crate) metadata: Metadata,
}

impl Peer {
    /// The type of its socket.
    #[must_use]
    pub fn socket_type(&self) -> SocketType {
        self.socket_type
    }

    /// The identity that it chose, if it did. Nothing says that no other peer chose the same.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Its version of ZMTP: major and minor.
    #[must_use]
    pub fn version(&self) -> (u8, u8) {
        self.version
    }

    /// With CURVE, on the server's side: the client's long-term key, which it proved to have.
    #[must_use]
    pub fn client_key(&self) -> Option<PublicKey> {
        self.client_key
    }

    /// All that it told about itself.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether it knows subscriptions as commands, and heartbeats.
    pub(crate) fn knows_3_1(&self) -> bool {
        self.version >= (3, 1)
    }
}
