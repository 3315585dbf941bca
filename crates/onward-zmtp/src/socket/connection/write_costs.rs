//! The choice of the cheaper of two write methods, learnt from measured writes.

use std::time::Duration;

/// A method to pass pieces to the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteMethod {
    /// Copied together into one piece.
    Joined,
    /// Passed one by one, with a vectored write.
    Gathered,
}

/// The recent cost of each method.
#[derive(Debug, Default)]
pub(super) struct WriteCosts {
    /// The cost in nanoseconds per MiB; `None` before the first write.
    joined: Option<u64>,
    gathered: Option<u64>,
    writes: u32,
}

/// The number of writes in a round. The first [few](TRIALS) of each try the method that seems to
/// cost more.
const ROUND: u32 = 1024;
const TRIALS: u32 = 8;

/// The least size of a write that is measured. The cost of a smaller one says little about larger
/// ones.
const MEASURED_BYTES: usize = 64 * 1024;

/// The divisor for a new measurement: it moves the estimate by this part of the difference. A write
/// counts for at most twice the estimate, because one in which the thread was interrupted says
/// nothing.
const WEIGHT: u64 = 16;

/// The advantage that joining needs: at least this part less time. A copy also takes room in the
/// cache, which slows down other work.
const ADVANTAGE: u64 = 8;

impl WriteCosts {
    /// Returns the method for the next write.
    pub(super) fn next_method(&mut self) -> WriteMethod {
        let is_trial = self.writes < TRIALS;
        self.writes = (self.writes + 1) % ROUND;
        // A trial takes the method that seems to cost more, any other write the cheaper one.
        if is_trial == self.is_joining_cheaper() { WriteMethod::Gathered } else { WriteMethod::Joined }
    }

    fn is_joining_cheaper(&self) -> bool {
        self.joined.zip(self.gathered).is_some_and(|(joined, gathered)| joined < gathered - gathered / ADVANTAGE)
    }

    /// Records that a write of `bytes` bytes took `time`. A time of zero means only that the clock
    /// stands still, and is ignored.
    pub(super) fn record(&mut self, method: WriteMethod, bytes: usize, time: Duration) {
        if bytes < MEASURED_BYTES || time.is_zero() {
            return;
        }
        let cost = (time.as_nanos() << 20) / bytes as u128;
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let known = match method {
            WriteMethod::Joined => &mut self.joined,
            WriteMethod::Gathered => &mut self.gathered,
        };
        *known = Some(known.map_or(cost, |known| mean(known, cost.min(known.saturating_mul(2)))));
    }
}

fn mean(known: u64, cost: u64) -> u64 {
    known - known / WEIGHT + cost / WEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: usize = 256 * 1024;

    /// Does `count` writes with these costs of each method, in microseconds. Returns the number
    /// that were gathered.
    fn write(costs: &mut WriteCosts, count: usize, joined: u64, gathered: u64) -> usize {
        let methods = (0..count).map(|_| {
            let method = costs.next_method();
            let micros = if method == WriteMethod::Joined { joined } else { gathered };
            costs.record(method, BATCH, Duration::from_micros(micros));
            method
        });
        methods.filter(|method| *method == WriteMethod::Gathered).count()
    }

    #[test]
    fn the_cheaper_way_is_taken_and_the_other_tried_now_and_then() {
        for (joined, gathered, expected) in [(80, 100, 8), (95, 100, 1016), (100, 80, 1016)] {
            let mut costs = WriteCosts::default();
            write(&mut costs, ROUND as usize, joined, gathered);
            assert_eq!(write(&mut costs, ROUND as usize, joined, gathered), expected);
        }
    }

    #[test]
    fn what_has_become_cheaper_is_found_out() {
        let mut costs = WriteCosts::default();
        write(&mut costs, 10 * ROUND as usize, 100, 100);
        write(&mut costs, 10 * ROUND as usize, 50, 100);
        assert_eq!(write(&mut costs, ROUND as usize, 50, 100), 8);
    }

    #[test]
    fn a_write_that_was_interrupted_counts_for_little() {
        let mut costs = WriteCosts::default();
        write(&mut costs, ROUND as usize, 80, 100);
        costs.record(WriteMethod::Joined, BATCH, Duration::from_secs(1));
        assert_eq!(write(&mut costs, ROUND as usize, 80, 100), 8);
    }

    #[test]
    fn a_small_write_counts_for_nothing() {
        let mut costs = WriteCosts::default();
        write(&mut costs, ROUND as usize, 80, 100);
        (0..100).for_each(|_| costs.record(WriteMethod::Joined, MEASURED_BYTES - 1, Duration::from_secs(1)));
        assert_eq!(write(&mut costs, ROUND as usize, 80, 100), 8);
    }

    #[test]
    fn nothing_is_learnt_while_the_clock_stands() {
        let mut costs = WriteCosts::default();
        assert_eq!(write(&mut costs, ROUND as usize, 0, 0), 1016);
        write(&mut costs, ROUND as usize, 80, 100);
        assert_eq!(write(&mut costs, ROUND as usize, 80, 100), 8);
    }
}
