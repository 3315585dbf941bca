//! The throughput of attempts, which determines how many tasks are claimed ahead of free slots.

use std::collections::VecDeque;
use std::time::Duration;

use crate::bounds;

/// The recent throughput of attempts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Throughput {
    /// The number of attempts that ended.
    pub(crate) ended: usize,
    /// The slot time in which they ended, as if all slots had been taken for all of it.
    pub(crate) elapsed: Duration,
    /// The number of them that ended since the newest sample that is at least two commits old, or
    /// since the last sample if none is so old.
    pub(crate) recently_ended: usize,
    /// The duration of a commit.
    pub(crate) commit: Duration,
}

impl Throughput {
    /// Returns the number of tasks that will start within two commits, or within
    /// [`bounds::BUFFER_HORIZON`] if that is longer, at this throughput. A small sample has little
    /// weight: the number is at most eight times the recent ends.
    pub(crate) fn expected_starts(self) -> usize {
        let horizon = (self.commit * 2).max(bounds::BUFFER_HORIZON);
        if self.elapsed.is_zero() {
            return self.recently_ended.saturating_mul(2);
        }
        scaled(self.ended, horizon, self.elapsed).min(self.recently_ended.saturating_mul(8))
    }
}

fn scaled(count: usize, numerator: Duration, denominator: Duration) -> usize {
    let product = (count as u128).saturating_mul(numerator.as_nanos());
    usize::try_from(product / denominator.as_nanos().max(1)).unwrap_or(usize::MAX)
}

/// A meter of the throughput over the last [`bounds::THROUGHPUT_WINDOW`] of slot time, or over four
/// commits if those take longer. A burst of handlers that end at once has little weight, because
/// the tasks claimed ahead because of it may be slow. Idle time of slots is not counted, and
/// samples older than [`bounds::THROUGHPUT_MEMORY`] are ignored.
#[derive(Debug, Default)]
pub(crate) struct ThroughputMeter {
    /// Some samples of that time, the oldest first.
    samples: VecDeque<ThroughputSample>,
    last: ThroughputSample,
    /// The samples of the last two commits' time, and one from before it, the oldest first. The
    /// ends since the last sample would not be enough. Handlers that end during a commit and then
    /// wait for it would count as none, and nothing would be claimed ahead of them.
    recent: VecDeque<ThroughputSample>,
    /// The durations of the last two commits.
    durations: [Duration; 2],
}

/// The counters at the beginning of a commit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThroughputSample {
    /// The steady time.
    pub(crate) at: Duration,
    /// The time for which each slot had been taken by then.
    pub(crate) time: Duration,
    /// The number of attempts that had ended by then.
    pub(crate) ended: usize,
}

impl ThroughputMeter {
    /// Records a commit: the counters at its beginning, and its duration.
    pub(crate) fn note(&mut self, sample: ThroughputSample, duration: Duration) {
        self.last = sample;
        self.durations = [self.durations[1], duration];
        self.recent.push_back(sample);
        let since = sample.at.saturating_sub(self.commit() * 2);
        let is_enough = |second: &ThroughputSample| second.at <= since;
        while self.recent.len() > bounds::THROUGHPUT_CALLS || self.recent.get(1).is_some_and(is_enough) {
            self.recent.pop_front();
        }
        let is_distinct = |newest: &ThroughputSample| {
            sample.time.saturating_sub(newest.time) >= self.window() / bounds::THROUGHPUT_SAMPLES
                || sample.at.saturating_sub(newest.at) >= bounds::THROUGHPUT_MEMORY / bounds::THROUGHPUT_SAMPLES
        };
        if self.samples.back().is_none_or(is_distinct) {
            self.samples.push_back(sample);
        }
        while self.samples.front().is_some_and(|oldest| !self.counts(oldest, sample.time, sample.at)) {
            self.samples.pop_front();
        }
    }

    /// Returns true if a sample is recent enough at this time.
    fn counts(&self, sample: &ThroughputSample, time: Duration, now: Duration) -> bool {
        sample.time.saturating_add(self.window()) >= time && sample.at.saturating_add(bounds::THROUGHPUT_MEMORY) >= now
    }

    /// Returns the throughput if `ended` attempts have ended by now and each slot was taken for
    /// `time`.
    pub(crate) fn throughput(&self, ended: usize, time: Duration, now: Duration) -> Throughput {
        let sample = self.samples.iter().find(|sample| self.counts(sample, time, now)).unwrap_or(&self.last);
        Throughput {
            ended: ended.saturating_sub(sample.ended),
            elapsed: time.saturating_sub(sample.time),
            recently_ended: ended.saturating_sub(self.two_commits_before(now).ended),
            commit: self.commit(),
        }
    }

    fn two_commits_before(&self, now: Duration) -> &ThroughputSample {
        let is_before = |sample: &&ThroughputSample| sample.at.saturating_add(self.commit() * 2) <= now;
        self.recent.iter().rev().find(is_before).unwrap_or(&self.last)
    }

    fn window(&self) -> Duration {
        (self.commit() * 4).max(bounds::THROUGHPUT_WINDOW)
    }

    /// Returns the shorter of the last two durations: one commit that the disk delayed does not
    /// predict the next.
    fn commit(&self) -> Duration {
        self.durations[0].min(self.durations[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn microseconds(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    /// Returns a meter after commits of 100 µs that began at these microseconds, with these numbers
    /// of ended attempts. All slots were always taken.
    fn meter(commits: &[(u64, usize)]) -> ThroughputMeter {
        let mut meter = ThroughputMeter::default();
        for &(began, ended) in commits {
            let at = microseconds(began);
            meter.note(ThroughputSample { at, time: at, ended }, microseconds(100));
        }
        meter
    }

    #[test]
    fn a_burst_after_a_slow_time_changes_the_rate_little() {
        let commits: Vec<_> = (0..50).map(|step| (step * 100, 0)).collect();
        let now = microseconds(5000);
        assert_eq!(meter(&commits).throughput(50, now, now).expected_starts(), 5);
    }

    #[test]
    fn time_in_which_slots_had_nothing_to_do_does_not_make_the_pace_slow() {
        let throughput = meter(&[(0, 0)]).throughput(50, microseconds(500), microseconds(5000));
        assert_eq!(throughput.expected_starts(), 50);
    }

    #[test]
    fn what_was_before_a_time_with_nothing_to_do_still_counts() {
        let mut meter = meter(&[(0, 0), (2000, 20)]);
        let (at, time) = (microseconds(30_000), microseconds(2100));
        meter.note(ThroughputSample { at, time, ended: 21 }, microseconds(100));
        let throughput = meter.throughput(71, microseconds(2200), microseconds(30_100));
        assert_eq!((throughput.ended, throughput.elapsed), (71, microseconds(2200)));
    }

    #[test]
    fn what_ended_a_while_ago_does_not_make_up_for_little_since_the_last_commit() {
        let now = microseconds(1200);
        assert_eq!(meter(&[(0, 0), (1000, 10_000)]).throughput(10_001, now, now).expected_starts(), 8);
    }

    #[test]
    fn what_ended_while_the_last_commit_was_under_way_and_before_it_counts_alike() {
        // Two hundred handlers end within 100 µs, and then wait for the commit.
        let meter = meter(&[(0, 0), (200, 200), (400, 400), (600, 600)]);
        let now = microseconds(700);
        assert!(meter.throughput(600, now, now).expected_starts() >= 200);
    }

    #[test]
    fn a_meter_keeps_few_calls_however_many_there_are_within_a_commit() {
        let mut meter = ThroughputMeter::default();
        for _ in 0..10_000 {
            meter.note(ThroughputSample::default(), microseconds(100));
        }
        assert!(meter.recent.len() <= bounds::THROUGHPUT_CALLS);
    }

    #[test]
    fn one_slow_commit_does_not_extend_the_look_ahead() {
        let mut meter = meter(&[(0, 0), (1000, 10)]);
        let at = microseconds(2000);
        meter.note(ThroughputSample { at, time: at, ended: 20 }, microseconds(100_000));
        let now = microseconds(102_000);
        assert!(meter.throughput(1020, now, now).expected_starts() <= 10);
    }

    #[test]
    fn after_a_pause_only_what_came_since_counts() {
        let now = microseconds(1_000_400);
        let throughput = meter(&[(0, 0), (1_000_000, 10)]).throughput(30, now, now);
        assert_eq!((throughput.ended, throughput.elapsed), (20, microseconds(400)));
    }

    #[test]
    fn a_stopped_clock_repeats_the_ends_since_the_last_commit() {
        assert_eq!(
            meter(&[(0, 0), (0, 10), (0, 30)]).throughput(31, Duration::ZERO, Duration::ZERO).expected_starts(),
            2
        );
    }

    #[test]
    fn a_meter_keeps_few_marks_however_many_commits_there_are() {
        let commits: Vec<_> = (0..100_000).map(|step| (step, 0)).collect();
        assert!(meter(&commits).samples.len() <= 2 * usize::try_from(bounds::THROUGHPUT_SAMPLES).unwrap() + 1);
    }
}
