//! Decides how many tasks to claim and how many to give back: plain functions from values to
//! values.

use super::throughput::Throughput;
use crate::bounds;

/// The load that decides the size of a claim.
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
    pub(crate) uncommitted: usize,
    /// How fast attempts end.
    pub(crate) throughput: Throughput,
}

/// How many tasks to claim: what free slots can start at once, and ahead of them what will start
/// before a further claim could bring it. Slow handlers thus get nothing ahead, and no-op handlers
/// do not starve on a slow disk.
pub(crate) fn claim_size(load: Load) -> usize {
    let ahead = load.throughput.expected_starts().min(load.prefetch);
    let held = load.running + load.buffered;
    let room = bounds::UNCOMMITTED_ENDS.saturating_sub(load.uncommitted);
    (load.concurrency + ahead).saturating_sub(held).min(room).min(onward_store::bounds::CLAIM)
}

/// How many buffered tasks to give back when `started` have started in the last
/// [`bounds::BUFFER_WAIT`].
pub(crate) fn over_fetched(buffered: usize, started: usize) -> usize {
    buffered.saturating_sub(started)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const IDLE: Load =
        Load { concurrency: 8, prefetch: 1024, running: 0, buffered: 0, uncommitted: 0, throughput: Throughput::NONE };

    impl Throughput {
        const NONE: Self = Self { ended: 0, elapsed: Duration::ZERO, recently_ended: 0, commit: Duration::ZERO };
    }

    fn throughput(ended: usize, elapsed: u64, commit: u64) -> Throughput {
        Throughput {
            ended,
            elapsed: Duration::from_micros(elapsed),
            recently_ended: ended,
            commit: Duration::from_micros(commit),
        }
    }

    #[test]
    fn an_idle_engine_claims_for_its_free_slots() {
        assert_eq!(claim_size(IDLE), 8);
    }

    #[test]
    fn slow_handlers_get_nothing_ahead() {
        let load = Load { running: 7, throughput: throughput(1, 50_000, 100), ..IDLE };
        assert_eq!(claim_size(load), 1);
    }

    #[test]
    fn fast_handlers_on_a_slow_disk_get_two_commits_ahead() {
        let load = Load { running: 8, throughput: throughput(200, 2_000, 2_000), ..IDLE };
        assert_eq!(claim_size(load), 400);
    }

    #[test]
    fn a_stopped_clock_claims_twice_what_ended() {
        assert_eq!(claim_size(Load { running: 8, throughput: throughput(10, 0, 0), ..IDLE }), 20);
    }

    #[test]
    fn results_that_cannot_be_written_hold_back_claims() {
        assert_eq!(claim_size(Load { uncommitted: bounds::UNCOMMITTED_ENDS, ..IDLE }), 0);
    }

    proptest! {
        #[test]
        fn no_claim_passes_what_slots_and_prefetch_allow(
            concurrency in 1usize..100, prefetch in 0usize..100, running in 0usize..100, buffered in 0usize..100,
            ended: usize, elapsed: u64, commit in 0u64..1_000_000_000_000,
        ) {
            let load = Load { concurrency, prefetch, running, buffered, uncommitted: 0, throughput: throughput(ended, elapsed, commit) };
            let held = running + buffered;
            let claimed = claim_size(load);
            prop_assert!(claimed == 0 || held + claimed <= concurrency + prefetch);
            prop_assert!(claimed >= concurrency.saturating_sub(held));
        }
    }
}
