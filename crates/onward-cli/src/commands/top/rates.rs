//! Rates of submitted and ended tasks, computed from successive readings.

use std::collections::VecDeque;
use std::time::Duration;

use onward_store::EndedCounts;

use super::reading::Reading;

/// The time over which a rate is measured.
const WINDOW: Duration = Duration::from_secs(10);

/// The largest number of counts kept. At the fastest refresh the window contains fewer.
const MAX_COUNTS: usize = 256;

/// The counts of one reading.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counts {
    steady: Duration,
    submitted: u64,
    ended: EndedCounts,
}

/// Tasks per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rate {
    pub(super) submitted: f64,
    pub(super) completed: f64,
    pub(super) failed: f64,
    pub(super) dead: f64,
    pub(super) cancelled: f64,
    pub(super) expired: f64,
}

impl Rate {
    /// Returns true if no tasks are submitted and none end.
    pub(super) fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// The counts of the last seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rates {
    counts: VecDeque<Counts>,
}

impl Rates {
    /// Records the counts of a reading.
    pub(super) fn add(&mut self, reading: &Reading) {
        let newest = reading.newest.and_then(|task| u64::try_from(task.0).ok()).unwrap_or(0);
        // The newest task may have been deleted since the last reading.
        let submitted = self.counts.back().map_or(newest, |last| last.submitted.max(newest));
        self.counts.push_back(Counts { steady: reading.at.steady, submitted, ended: reading.ended });
        self.forget(reading.at.steady);
    }

    /// Drops old counts. Keeps those within the window, and the last one before it as the base.
    fn forget(&mut self, now: Duration) {
        let begin = now.saturating_sub(WINDOW);
        while self.counts.len() > MAX_COUNTS || self.counts.get(1).is_some_and(|second| second.steady <= begin) {
            self.counts.pop_front();
        }
    }

    /// Returns the rates at a moment. Assumes that nothing has happened since the newest reading,
    /// because a change causes a newer one.
    pub(super) fn at(&self, now: Duration) -> Rate {
        let begin = now.saturating_sub(WINDOW);
        let before = self.counts.iter().rev().find(|counted| counted.steady <= begin);
        let (Some(from), Some(to)) = (before.or(self.counts.front()), self.counts.back()) else {
            return Rate::default();
        };
        let elapsed = now.saturating_sub(from.steady.max(begin)).as_secs_f64();
        let rate = |from: u64, to: u64| if elapsed > 0.0 { tasks(to.saturating_sub(from)) / elapsed } else { 0.0 };
        Rate {
            submitted: rate(from.submitted, to.submitted),
            completed: rate(from.ended.completed, to.ended.completed),
            failed: rate(from.ended.failed, to.ended.failed),
            dead: rate(from.ended.dead, to.ended.dead),
            cancelled: rate(from.ended.cancelled, to.ended.cancelled),
            expired: rate(from.ended.expired, to.ended.expired),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown with three digits")]
fn tasks(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use onward_store::TaskId;

    use super::*;
    use crate::commands::top::reading::ReadingTime;

    fn look(seconds: u64, submitted: i64, completed: u64) -> Reading {
        let at = ReadingTime { steady: Duration::from_secs(seconds), ..ReadingTime::default() };
        let ended = EndedCounts { completed, ..EndedCounts::default() };
        Reading { at, ended, newest: Some(TaskId(submitted)), ..Reading::default() }
    }

    fn rates(counts: &[(u64, i64, u64)]) -> Rates {
        let mut rates = Rates::default();
        counts.iter().for_each(|(seconds, submitted, completed)| rates.add(&look(*seconds, *submitted, *completed)));
        rates
    }

    fn shown(rate: Rate) -> [f64; 2] {
        [rate.submitted, rate.completed]
    }

    #[test]
    fn one_reading_has_no_rate() {
        assert!(rates(&[(5, 100, 90)]).at(Duration::from_secs(6)).is_zero());
    }

    #[test]
    fn a_rate_is_what_came_since_the_first_reading() {
        assert_eq!(shown(rates(&[(5, 100, 90), (9, 120, 94)]).at(Duration::from_secs(9))), [5.0, 1.0]);
    }

    #[test]
    fn a_rate_forgets_what_is_longer_ago_than_its_window() {
        let rates = rates(&[(0, 0, 0), (100, 1000, 1000), (105, 1010, 1020)]);
        assert_eq!(shown(rates.at(Duration::from_secs(110))), [1.0, 2.0]);
    }

    #[test]
    fn a_rate_falls_to_zero_when_nothing_happens_any_more() {
        assert!(rates(&[(0, 0, 0), (1, 10, 10)]).at(Duration::from_secs(11)).is_zero());
    }

    #[test]
    fn a_deleted_newest_task_is_no_negative_submit() {
        assert_eq!(shown(rates(&[(0, 10, 0), (1, 8, 0), (2, 11, 0)]).at(Duration::from_secs(2))), [0.5, 0.0]);
    }
}
