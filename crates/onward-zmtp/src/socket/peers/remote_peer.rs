//! The peer at the other end of a connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::protocol::{Identity, Metadata, Peer, PublicKey, SocketType};
use crate::socket::endpoint::Endpoint;

/// The peer of one connection: its address, the key that it proved to have, and its metadata. A
/// clone is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotePeer {
    /// The number of the connection, unique within the socket.
    pub(in crate::socket) connection: u64,
    remote: Arc<Remote>,
}

#[derive(Debug, PartialEq, Eq)]
struct Remote {
    endpoint: Endpoint,
    address: Option<SocketAddr>,
    peer: Peer,
}

impl RemotePeer {
    pub(in crate::socket) fn new(endpoint: Endpoint, address: Option<SocketAddr>, peer: Peer) -> Self {
        Self { connection: 0, remote: Arc::new(Remote { endpoint, address, peer }) }
    }

    /// Returns this peer with the number of its connection.
    pub(in crate::socket) fn numbered(&self, connection: u64) -> Self {
        Self { connection, remote: self.remote.clone() }
    }

    pub(in crate::socket) fn peer(&self) -> &Peer {
        &self.remote.peer
    }

    /// Returns the local endpoint: bound to, or connected to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.remote.endpoint
    }

    /// Returns the address and the port of the peer, if it is connected over TCP and not through a
    /// proxy.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.remote.address
    }

    /// Returns the long-term key that a client of CURVE proved to have. Only a server has it.
    #[must_use]
    pub fn client_key(&self) -> Option<PublicKey> {
        self.remote.peer.client_key()
    }

    /// Returns the type of the peer's socket.
    #[must_use]
    pub fn socket_type(&self) -> SocketType {
        self.remote.peer.socket_type()
    }

    /// Returns the identity that the peer chose, if it did.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.remote.peer.identity()
    }

    /// Returns the peer's version of ZMTP: major and minor.
    #[must_use]
    pub fn version(&self) -> (u8, u8) {
        self.remote.peer.version()
    }

    /// Returns all metadata that the peer sent in the handshake.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.remote.peer.metadata()
    }
}

/// The peers whose messages may still be read, by connection number.
#[derive(Debug, Default)]
pub(in crate::socket) struct RemotePeers(Mutex<HashMap<u64, RemotePeer, RandomState>>);

impl RemotePeers {
    pub(in crate::socket) fn insert(&self, peer: RemotePeer) {
        self.remote_peers().insert(peer.connection, peer);
    }

    pub(in crate::socket) fn remove(&self, connection: u64) {
        // The peer is dropped after the lock is released.
        let removed = self.remote_peers().remove(&connection);
        drop(removed);
    }

    pub(in crate::socket) fn get(&self, connection: u64) -> Option<RemotePeer> {
        self.remote_peers().get(&connection).cloned()
    }

    fn remote_peers(&self) -> MutexGuard<'_, HashMap<u64, RemotePeer, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
