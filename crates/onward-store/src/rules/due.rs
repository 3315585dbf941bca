//! The due time of a task, and its state until then.

use crate::api::task::{TaskState, When};
use crate::api::timestamp::Timestamp;

/// Returns the time at which a task that is accepted now is due. A time in the past becomes `now`.
#[must_use]
pub fn run_at(when: When, now: Timestamp) -> Timestamp {
    match when {
        When::Now => now,
        When::After(duration) => now.plus(duration),
        When::At(at) => at.max(now),
    }
}

/// Returns the state of a task that is due at `run_at`. A task that is due now waits at once,
/// without a sweep.
#[must_use]
pub fn state(run_at: Timestamp, now: Timestamp) -> TaskState {
    if run_at <= now { TaskState::Waiting } else { TaskState::Scheduled }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::MIN;

    #[test]
    fn a_moment_in_the_past_means_now() {
        let now = Timestamp::from_microseconds(5);
        assert_eq!(run_at(When::At(Timestamp::from_microseconds(3)), now), now);
    }

    #[test]
    fn no_delay_means_waiting() {
        assert_eq!(state(run_at(When::After(Duration::ZERO), NOW), NOW), TaskState::Waiting);
    }

    #[test]
    fn a_microsecond_of_delay_means_scheduled() {
        assert_eq!(state(run_at(When::After(Duration::from_micros(1)), NOW), NOW), TaskState::Scheduled);
    }
}
