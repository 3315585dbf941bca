//! Credit: the number of tasks that an engine may start, granted while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The credit of an engine.
#[derive(Debug, Default)]
pub(crate) struct Credit {
    /// The number of starts that were granted over the whole life of the engine.
    granted: AtomicUsize,
    /// The number of starts that called no handler.
    returned: AtomicUsize,
}

impl Credit {
    /// Sets the number of starts that are granted over the whole life of the engine.
    pub(crate) fn grant(&self, total: usize) {
        self.granted.store(total, Ordering::Release);
    }

    /// Gives back the credit of a task that was started, but ended before its handler was called.
    pub(crate) fn give_back(&self) {
        self.returned.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of tasks that may still be claimed, if `started` have started and `held`
    /// are claimed and have not.
    pub(crate) fn claimable(&self, started: usize, held: usize) -> usize {
        let total = self.granted.load(Ordering::Acquire) + self.returned.load(Ordering::Acquire);
        total.saturating_sub(started).saturating_sub(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_what_was_granted_without_what_has_started_or_is_held() {
        let credit = Credit::default();
        assert_eq!(credit.claimable(0, 0), 0);
        credit.grant(10);
        assert_eq!((credit.claimable(4, 3), credit.claimable(10, 1)), (3, 0));
        credit.give_back();
        assert_eq!(credit.claimable(10, 0), 1);
    }
}
