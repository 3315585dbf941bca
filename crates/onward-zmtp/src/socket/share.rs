//! How far ahead of the program each peer is read.

use super::limits::READ_AHEAD_MESSAGES;
use crate::fair_queue::sync::{AtomicUsize, Ordering};

/// The messages of one mark, divided among the peers there are, as long as each has [`READ_AHEAD_MESSAGES`].
///
/// The program reads the queues of all peers in turn. Were each of many as long as its mark, they would be far more than a processor's cache holds, and every message
/// would be fetched from memory once more; and a peer that floods would have others behind it more often.
pub(super) struct Share(AtomicUsize);

impl Share {
    /// No bound at all.
    pub(super) fn unlimited() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }

    /// Divides the messages of a mark. True if each has more than before.
    pub(super) fn divide(&self, messages: usize, peers: usize) -> bool {
        let share = (messages / peers.max(1)).max(READ_AHEAD_MESSAGES);
        self.0.swap(share, Ordering::Relaxed) < share
    }

    /// What each has.
    #[inline]
    pub(super) fn messages(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_peer_has_the_whole_mark_and_each_of_many_enough_to_be_read_in_batches() {
        let share = Share::unlimited();
        assert!(!share.divide(1000, 1));
        assert_eq!(share.messages(), 1000);
        assert!(!share.divide(1000, 4));
        assert_eq!(share.messages(), 250);
        assert!(!share.divide(1000, 10_000));
        assert_eq!(share.messages(), READ_AHEAD_MESSAGES);
        assert!(share.divide(1000, 0));
        assert_eq!(share.messages(), 1000);
    }
}
