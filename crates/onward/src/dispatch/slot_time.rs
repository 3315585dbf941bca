//! For how long slots were taken.

use std::time::Duration;

/// The time for which slots were taken, added up over all of them. An hour in which none had
/// anything to do adds nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlotTime {
    /// Until `since`.
    total: Duration,
    since: Duration,
    /// How many are taken since then.
    taken: usize,
}

impl SlotTime {
    /// Nobody has taken any.
    #[cfg(test)]
    pub(crate) const ZERO: Self = Self { total: Duration::ZERO, since: Duration::ZERO, taken: 0 };

    /// Notes how many slots are taken from `now` on, a steady time.
    pub(crate) fn note(&mut self, taken: usize, now: Duration) {
        if taken != self.taken {
            *self = Self { total: self.at(now), since: now.max(self.since), taken };
        }
    }

    /// What it is at a steady time.
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
