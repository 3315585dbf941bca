//! The time for which slots were taken.

use std::time::Duration;

/// The time for which slots were taken, summed over all slots. An hour without work adds nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlotTime {
    /// The sum up to `since`.
    total: Duration,
    since: Duration,
    /// The number of slots taken since `since`.
    taken: usize,
}

impl SlotTime {
    /// No slot was ever taken.
    #[cfg(test)]
    pub(crate) const ZERO: Self = Self { total: Duration::ZERO, since: Duration::ZERO, taken: 0 };

    /// Records the number of slots that are taken from `now` on, in steady time.
    pub(crate) fn note(&mut self, taken: usize, now: Duration) {
        if taken != self.taken {
            *self = Self { total: self.at(now), since: now.max(self.since), taken };
        }
    }

    /// Returns the sum at a steady time.
    pub(crate) fn at(&self, now: Duration) -> Duration {
        let taken = u32::try_from(self.taken).unwrap_or(u32::MAX);
        self.total.saturating_add(now.saturating_sub(self.since).saturating_mul(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_taken_slot_adds_its_time_and_a_free_one_none() {
        let mut time = SlotTime::ZERO;
        for (taken, second) in [(2, 1), (3, 2), (0, 4), (1, 10)] {
            time.note(taken, SECOND * second);
        }
        assert_eq!(time.at(SECOND * 11), SECOND * (2 + 2 * 3 + 1));
    }
}
