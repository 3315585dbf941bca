//! Which tasks of a series are reserved for a session, and for how long that is remembered.
//!
//! A **series** is what tasks with the same [affinity](crate::NewTask::affinity) are. The session
//! that started one of them last is preferred for the next. Tasks of a series that share queue,
//! kind and group stand in one line, and its first task decides for all of it: a series keeps its
//! order, and who may not have the first has no reason to look at the rest.

use std::time::Duration;

use crate::api::timestamp::Timestamp;
use crate::bounds;

/// Until when a line is reserved whose first task has been due since `run_at`.
#[must_use]
pub fn reserved_until(run_at: Timestamp, wait: Duration) -> Timestamp {
    run_at.plus(wait)
}

/// Whether a start at `now` is to be noted of a series whose last noted start was at `noted_at`:
/// not each, for that would be a write for every task.
#[must_use]
pub fn is_to_be_noted(noted_at: Timestamp, now: Timestamp) -> bool {
    now < noted_at || now - noted_at >= bounds::AFFINITY_KEPT / 10
}

/// Whether it is forgotten by now which session a series prefers, whose last noted start was at
/// `noted_at`.
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
        assert!(is_to_be_noted(noon(), noon().plus(TENTH)) && !is_to_be_noted(noon(), noon().plus(almost)));
    }

    #[test]
    fn a_start_is_noted_after_the_clock_was_set_back() {
        assert!(is_to_be_noted(noon().plus(TENTH), noon()));
    }

    #[test]
    fn what_was_started_within_the_time_is_remembered() {
        let almost = bounds::AFFINITY_KEPT - Duration::from_micros(1);
        assert!(is_forgotten(noon(), noon().plus(bounds::AFFINITY_KEPT)) && !is_forgotten(noon(), noon().plus(almost)));
    }
}
