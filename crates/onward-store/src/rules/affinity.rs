//! Affinity keys: the time for which waiting tasks are reserved for a session, and the time for
//! which a store remembers that session.
//!
//! Tasks with the same [affinity key](crate::NewTask::affinity) prefer the session that last
//! started one of them. Waiting tasks with the same affinity key, queue, kind and group form a
//! sub-queue. The reservation of its first task applies to the whole sub-queue. So tasks of a key
//! keep their order, and a session that cannot have the first task need not examine the others.

use std::time::Duration;

use crate::api::timestamp::Timestamp;
use crate::bounds;

/// Returns the time until which a sub-queue is reserved. Its first task has been due since
/// `run_at`.
#[must_use]
pub fn reserved_until(run_at: Timestamp, wait: Duration) -> Timestamp {
    run_at.plus(wait)
}

/// Returns whether a start at `now` is stored for an affinity key whose last stored start was at
/// `noted_at`. Most starts are not stored, because each would be a write.
#[must_use]
pub fn must_store_start(noted_at: Timestamp, now: Timestamp) -> bool {
    now < noted_at || now - noted_at >= bounds::AFFINITY_KEPT / 10
}

/// Returns whether a store has forgotten by `now` which session an affinity key prefers. The last
/// stored start was at `noted_at`.
#[must_use]
pub fn is_forgotten(noted_at: Timestamp, now: Timestamp) -> bool {
    noted_at.plus(bounds::AFFINITY_KEPT) <= now
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Duration = Duration::from_secs(360);

    fn noon() -> Timestamp {
        Timestamp::from_microseconds(1_750_000_000_000_000)
    }

    #[test]
    fn a_start_is_noted_when_a_tenth_of_the_time_is_over() {
        let almost = TENTH - Duration::from_micros(1);
        assert!(must_store_start(noon(), noon().plus(TENTH)) && !must_store_start(noon(), noon().plus(almost)));
    }

    #[test]
    fn a_start_is_noted_after_the_clock_was_set_back() {
        assert!(must_store_start(noon().plus(TENTH), noon()));
    }

    #[test]
    fn what_was_started_within_the_time_is_remembered() {
        let almost = bounds::AFFINITY_KEPT - Duration::from_micros(1);
        assert!(is_forgotten(noon(), noon().plus(bounds::AFFINITY_KEPT)) && !is_forgotten(noon(), noon().plus(almost)));
    }
}
