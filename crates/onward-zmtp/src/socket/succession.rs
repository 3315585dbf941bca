//! Connections of the same peer, one after the other.

use std::collections::HashMap;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

/// How many entries there are at least before those that are of no use any more are looked for.
const PRUNE_AT_LEAST: usize = 32;

/// What connections of the same peer have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// The endpoint that is connected to, by the number of its connector.
    Connector(u64),
    /// What the peer calls itself, at a ROUTER.
    Identity(Bytes),
}

/// What came over a connection is read before what comes over the next one of the same peer, so that a peer that comes back, or takes its own
/// place, does not get ahead of itself.
///
/// Of a peer that connects to us and tells no identity, nobody knows that it is the same.
#[derive(Debug, Default)]
pub(super) struct Succession {
    /// Of each peer the last connection. Its token is cancelled when it has ended and all that came over it was read.
    last: HashMap<Origin, CancellationToken>,
    prune_at: usize,
}

impl Succession {
    /// A connection begins. Answers what has to be cancelled before anything of it may be read.
    pub(super) fn follow(&mut self, origin: Origin, read_out: CancellationToken) -> Option<CancellationToken> {
        let before = self.last.insert(origin, read_out);
        if self.last.len() > self.prune_at {
            self.last.retain(|_, read_out| !read_out.is_cancelled());
            self.prune_at = PRUNE_AT_LEAST.max(self.last.len() * 2);
        }
        before.filter(|read_out| !read_out.is_cancelled())
    }
}
