//! The quota of messages that are read ahead for each peer.

use crate::fair_queue::sync::{AtomicUsize, Ordering};
use crate::socket::bounds::READ_AHEAD_MESSAGES;

/// The quota of each peer: the messages of one high-water mark, divided by the number of peers, but
/// at least [`READ_AHEAD_MESSAGES`].
///
/// The program reads the queues of all peers in turn. With many peers and a full high-water mark
/// for each, the queues would be far larger than a processor's cache, and every message would be
/// fetched from memory once more. A peer that floods would also have more messages ahead of those
/// of others.
pub(in crate::socket) struct Quota(AtomicUsize);

impl Quota {
    /// Returns a quota without a bound.
    pub(in crate::socket) fn unlimited() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }

    /// Divides the messages of a high-water mark among the peers. Returns true if the quota of each
    /// has grown.
    pub(in crate::socket) fn divide(&self, messages: usize, peers: usize) -> bool {
        let quota = (messages / peers.max(1)).max(READ_AHEAD_MESSAGES);
        self.0.swap(quota, Ordering::Relaxed) < quota
    }

    /// Returns the quota of each peer.
    #[inline]
    pub(super) fn messages(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_peer_has_the_whole_high_water_mark_and_each_of_many_enough_to_be_read_in_batches() {
        let quota = Quota::unlimited();
        assert!(!quota.divide(1000, 1));
        assert_eq!(quota.messages(), 1000);
        assert!(!quota.divide(1000, 4));
        assert_eq!(quota.messages(), 250);
        assert!(!quota.divide(1000, 10_000));
        assert_eq!(quota.messages(), READ_AHEAD_MESSAGES);
        assert!(quota.divide(1000, 0));
        assert_eq!(quota.messages(), 1000);
    }
}
