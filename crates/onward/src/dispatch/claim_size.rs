//! What the dispatcher decides: plain functions from values to values.

use std::time::Duration;

use onward_store::Timestamp;
use onward_store::rules::retry::RetryPolicy;

use super::throughput::Pace;
use crate::bounds;

/// What the size of a claim depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// How many handlers may run at once.
    pub(crate) concurrency: usize,
    /// How many tasks may be claimed ahead of free slots.
    pub(crate) prefetch: usize,
    /// How many slots are taken.
    pub(crate) running: usize,
    /// How many tasks are claimed and have not started.
    pub(crate) buffered: usize,
    /// How many attempts have ended and are not durable.
    pub(crate) unsettled: usize,
    /// How fast attempts end.
    pub(crate) pace: Pace,
}

/// How many tasks to claim: what free slots can start at once, and ahead of them what will start
/// before a further claim could bring it. Slow handlers thus get nothing ahead, and no-op handlers
/// do not starve on a slow disk.
pub(crate) fn claim_size(load: Load) -> usize {
    let ahead = load.pace.ahead().min(load.prefetch);
    let held = load.running + load.buffered;
    let room = bounds::UNSETTLED.saturating_sub(load.unsettled);
    (load.concurrency + ahead).saturating_sub(held).min(room).min(onward_store::bounds::CLAIM)
}

/// How many buffered tasks to give back when `started` have started in the last
/// [`bounds::BUFFER_PATIENCE`].
pub(crate) fn hoarded(buffered: usize, started: usize) -> usize {
    buffered.saturating_sub(started)
}

/// How long an attempt may take that starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// As long as it likes.
    Unlimited,
    /// This long, because of its timeout.
    Timeout(Duration),
    /// This long, because of its deadline.
    Deadline(Duration),
    /// It may not start: the deadline has passed.
    Passed,
}

/// The earlier of the timeout and the deadline.
pub(crate) fn allowance(
    timeout: Option<Duration>,
    deadline: Option<Timestamp>,
    now: impl FnOnce() -> Timestamp,
) -> Allowance {
    let Some(deadline) = deadline else { return timeout.map_or(Allowance::Unlimited, Allowance::Timeout) };
    let left = deadline - now();
    match timeout {
        _ if left.is_zero() => Allowance::Passed,
        Some(timeout) if timeout <= left => Allowance::Timeout(timeout),
        _ => Allowance::Deadline(left),
    }
}

/// The policies that may hold for a task, the nearest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policies {
    pub(crate) task: Option<RetryPolicy>,
    pub(crate) kind: Option<RetryPolicy>,
    pub(crate) queue: Option<RetryPolicy>,
    pub(crate) engine: RetryPolicy,
}

impl Policies {
    /// The one that holds.
    pub(crate) fn nearest(self) -> RetryPolicy {
        self.task.or(self.kind).or(self.queue).unwrap_or(self.engine)
    }
}

/// How long to wait after the `failures`-th store error in a row (counted from 1).
pub(crate) fn store_retry(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (bounds::STORE_RETRY_FIRST * 2u32.pow(doublings)).min(bounds::STORE_RETRY_LONGEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDLE: Load = Load { concurrency: 8, prefetch: 1024, running: 0, buffered: 0, unsettled: 0, pace: Pace::NONE };

    impl Pace {
        const NONE: Self = Self { ended: 0, elapsed: Duration::ZERO, lately: 0, commit: Duration::ZERO };
    }

    fn pace(ended: usize, elapsed: u64, commit: u64) -> Pace {
        Pace { ended, elapsed: Duration::from_micros(elapsed), lately: ended, commit: Duration::from_micros(commit) }
    }

    #[test]
    fn an_idle_engine_claims_for_its_free_slots() {
        assert_eq!(claim_size(IDLE), 8);
    }

    #[test]
    fn slow_handlers_get_nothing_ahead() {
        let load = Load { running: 7, pace: pace(1, 50_000, 100), ..IDLE };
        assert_eq!(claim_size(load), 1);
    }

    #[test]
    fn fast_handlers_on_a_slow_disk_get_two_commits_ahead() {
        let load = Load { running: 8, pace: pace(200, 2_000, 2_000), ..IDLE };
        assert_eq!(claim_size(load), 400);
    }

    #[test]
    fn a_stopped_clock_claims_twice_what_ended() {
        assert_eq!(claim_size(Load { running: 8, pace: pace(10, 0, 0), ..IDLE }), 20);
    }

    #[test]
    fn results_that_cannot_be_written_hold_back_claims() {
        assert_eq!(claim_size(Load { unsettled: bounds::UNSETTLED, ..IDLE }), 0);
    }

    #[test]
    fn the_earlier_of_timeout_and_deadline_counts() {
        let now = Timestamp::from_microseconds(1_000_000);
        let second = Duration::from_secs(1);
        let deadline = Some(now.plus(second));
        assert_eq!(allowance(Some(second * 2), deadline, || now), Allowance::Deadline(second));
        assert_eq!(allowance(Some(second / 2), deadline, || now), Allowance::Timeout(second / 2));
        assert_eq!(allowance(Some(second), Some(now), || now), Allowance::Passed);
    }

    #[test]
    fn the_nearest_policy_holds() {
        let of = |attempts| RetryPolicy { attempts, ..RetryPolicy::default() };
        let policies = Policies { task: None, kind: None, queue: Some(of(3)), engine: of(4) };
        assert_eq!(policies.nearest().attempts, 3);
        assert_eq!(Policies { kind: Some(of(2)), ..policies }.nearest().attempts, 2);
        assert_eq!(Policies { kind: Some(of(2)), task: Some(of(1)), ..policies }.nearest().attempts, 1);
        assert_eq!(Policies { queue: None, ..policies }.nearest().attempts, 4);
    }

    #[test]
    fn store_errors_are_met_with_longer_and_longer_pauses_up_to_a_limit() {
        assert_eq!(store_retry(1), Duration::from_millis(50));
        assert_eq!(store_retry(3), Duration::from_millis(200));
        assert_eq!(store_retry(u32::MAX), Duration::from_secs(5));
    }

    proptest! {
        #[test]
        fn no_claim_passes_what_slots_and_prefetch_allow(
            concurrency in 1usize..100, prefetch in 0usize..100, running in 0usize..100, buffered in 0usize..100,
            ended: usize, elapsed: u64, commit in 0u64..1_000_000_000_000,
        ) {
            let load = Load { concurrency, prefetch, running, buffered, unsettled: 0, pace: pace(ended, elapsed, commit) };
            let held = running + buffered;
            let claimed = claim_size(load);
            prop_assert!(claimed == 0 || held + claimed <= concurrency + prefetch);
            prop_assert!(claimed >= concurrency.saturating_sub(held));
        }
    }
}
