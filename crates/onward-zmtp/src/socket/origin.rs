//! Who is at the other end of a connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use super::endpoint::Endpoint;
use crate::protocol::{Identity, Metadata, Peer, PublicKey, SocketType};

/// The peer of one connection: the address that it has, the key that it proved to have, and what it says of itself. A clone is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotePeer(Arc<Remote>);

#[derive(Debug, PartialEq, Eq)]
struct Remote {
    endpoint: Endpoint,
    address: Option<SocketAddr>,
    peer: Peer,
}

impl RemotePeer {
    pub(super) fn new(endpoint: Endpoint, address: Option<SocketAddr>, peer: Peer) -> Self {
        Self(Arc::new(Remote { endpoint, address, peer }))
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.0.peer
    }

    /// The endpoint of ours: bound to, or connected to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// The address and the port of the peer, if it is connected over TCP.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address
    }

    /// With CURVE, on the side of the server: the client's long-term key, which it proved to have.
    #[must_use]
    pub fn client_key(&self) -> Option<PublicKey> {
        self.0.peer.client_key()
    }

    /// The type of its socket.
    #[must_use]
    pub fn socket_type(&self) -> SocketType {
        self.0.peer.socket_type()
    }

    /// The identity that it chose, if it did.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.0.peer.identity()
    }

    /// Its version of ZMTP: major and minor.
    #[must_use]
    pub fn version(&self) -> (u8, u8) {
        self.0.peer.version()
    }

    /// All that it said of itself in the handshake.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.0.peer.metadata()
    }
}

/// The peers from which something may still be read, by the numbers of their connections.
#[derive(Debug, Default)]
pub(super) struct Origins(Mutex<HashMap<u64, RemotePeer, RandomState>>);

impl Origins {
    pub(super) fn insert(&self, connection: u64, peer: RemotePeer) {
        self.origins().insert(connection, peer);
    }

    pub(super) fn remove(&self, connection: u64) {
        let removed = self.origins().remove(&connection);
        drop(removed);
    }

    pub(super) fn get(&self, connection: u64) -> Option<RemotePeer> {
        self.origins().get(&connection).cloned()
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<u64, RemotePeer, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
