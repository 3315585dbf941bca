//! The rate at which attempts end, from which the number of tasks to claim ahead of free slots
//! follows.

use std::collections::VecDeque;
use std::time::Duration;

use crate::bounds;

/// The rate at which attempts ended recently.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Throughput {
    /// How many ended.
    pub(crate) ended: usize,
    /// In what time, as if all slots had been taken for all of it.
    pub(crate) elapsed: Duration,
    /// How many of them ended since the newest commit that began two commits' time ago; since the
    /// last one where none is so old.
    pub(crate) recently_ended: usize,
    /// How long a commit takes.
    pub(crate) commit: Duration,
}

impl Throughput {
    /// How many tasks will start within two commits, and at least within
    /// [`bounds::BUFFER_HORIZON`], at this throughput. A small sample does not count for much: at
    /// most eight times as many as ended lately.
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

/// Tells the throughput of the last [`bounds::THROUGHPUT_WINDOW`] for which slots were taken, or of
/// four commits if those take longer. A burst of handlers that end at once thus says little: what
/// is claimed ahead because of it may be slow. Time in which slots had nothing to do says nothing
/// at all, and what was longer than [`bounds::THROUGHPUT_MEMORY`] ago says nothing any more.
#[derive(Debug, Default)]
pub(crate) struct ThroughputMeter {
    /// Some commits of that time, the oldest first.
    samples: VecDeque<ThroughputSample>,
    last: ThroughputSample,
    /// Those of the last two commits' time, and one from before it, the oldest first. What ended
    /// since the last one alone would not do: handlers that are done while a commit is under way
    /// and then wait for it would have ended none, and nothing would be claimed ahead of them.
    recent: VecDeque<ThroughputSample>,
    /// How long the last two commits took.
    durations: [Duration; 2],
}

/// The counts when a commit began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThroughputSample {
    /// When, in steady time.
    pub(crate) at: Duration,
    /// How long slots had been taken by then, each.
    pub(crate) time: Duration,
    /// How many had ended by then.
    pub(crate) ended: usize,
}

impl ThroughputMeter {
    /// Notes a commit: how it stood when it began, and how long it took.
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

    /// Whether what has come since a sample says something at this time.
    fn counts(&self, sample: &ThroughputSample, time: Duration, now: Duration) -> bool {
        sample.time.saturating_add(self.window()) >= time && sample.at.saturating_add(bounds::THROUGHPUT_MEMORY) >= now
    }

    /// The throughput, if by now `ended` have ended and slots have been taken for this time each.
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

    /// The quicker of the last two: one that the disk held up says nothing about the next.
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

    /// A meter after commits of 100 µs that began at these microseconds, when so many had ended and
    /// all slots were always taken.
    fn meter(commits: &[(u64, usize)]) -> ThroughputMeter {
        let mut meter = ThroughputMeter::default();
        for &(began, ended) in commits {
            let at = microseconds(began);
            meter.note(ThroughputSample { at, time: at, ended }, microseconds(100));
        }
        meter
    }

    #[test]
    fn a_burst_after_a_slow_time_is_told_as_what_it_is_on_the_whole() {
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
        // Two hundred handlers are done within 100 µs, and then wait for the commit.
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
    fn one_slow_commit_makes_nobody_look_far_ahead() {
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
    fn a_stopped_clock_tells_twice_what_ended_since_the_last_commit() {
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
