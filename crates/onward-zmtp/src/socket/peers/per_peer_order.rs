//! The order of connections of the same peer.

use std::collections::HashMap;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

/// The least number of entries at which stale ones are removed.
const PRUNE_AT_LEAST: usize = 32;

/// The sign by which connections of the same peer are recognised.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::socket) enum PeerKey {
    /// The number of the connector, for a peer that this socket connects to.
    Connector(u64),
    /// The identity that the peer chose, at a ROUTER.
    Identity(Bytes),
}

/// The order of reads across the connections of a peer. All messages of one connection are read
/// before those of the next. A peer that reconnects, or takes over its own identity, therefore
/// never overtakes itself.
///
/// A peer that connects to this socket without an identity cannot be recognised.
#[derive(Debug, Default)]
pub(in crate::socket) struct PerPeerOrder {
    /// The last connection of each peer. Its token is cancelled when the connection has ended and
    /// all of its messages were read.
    last: HashMap<PeerKey, CancellationToken>,
    prune_at: usize,
}

impl PerPeerOrder {
    /// Adds a new connection. Returns the token that must be cancelled before its messages may be
    /// read.
    pub(in crate::socket) fn follow(
        &mut self,
        peer_key: PeerKey,
        fully_read: CancellationToken,
    ) -> Option<CancellationToken> {
        let predecessor = self.last.insert(peer_key, fully_read);
        if self.last.len() > self.prune_at {
            self.last.retain(|_, fully_read| !fully_read.is_cancelled());
            self.prune_at = PRUNE_AT_LEAST.max(self.last.len() * 2);
        }
        predecessor.filter(|fully_read| !fully_read.is_cancelled())
    }
}
