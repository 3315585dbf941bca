//! The size of a claim and the number of tasks to release, as pure functions.

use super::throughput::Throughput;
use crate::bounds;

/// The load on which the size of a claim depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// The number of handlers that may run at once.
    pub(crate) concurrency: usize,
    /// The number of tasks that may be claimed ahead of free slots.
    pub(crate) prefetch: usize,
    /// The number of taken slots.
    pub(crate) running: usize,
    /// The number of tasks that are claimed and have not started.
    pub(crate) buffered: usize,
    /// The number of attempts that have ended and are not durable.
    pub(crate) uncommitted: usize,
    /// The throughput of attempts.
    pub(crate) throughput: Throughput,
}

/// Returns the number of tasks to claim: those that free slots can start at once, and ahead of them
/// those that will start before a further claim could bring more. Slow handlers thus get nothing
/// ahead, and no-op handlers do not starve on a slow disk.
pub(crate) fn claim_size(load: Load) -> usize {
    let ahead = load.throughput.expected_starts().min(load.prefetch);
    let held = load.running + load.buffered;
    let room = bounds::UNCOMMITTED_ENDS.saturating_sub(load.uncommitted);
    (load.concurrency + ahead).saturating_sub(held).min(room).min(onward_store::bounds::CLAIM)
}

/// Returns the number of buffered tasks to release if `started` tasks have started in the last
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
