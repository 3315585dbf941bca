//! The errors that a task keeps of its attempts.

use crate::api::task::{AttemptError, SessionId};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::attempt::cut;

/// Adds an error to those of a task. The message is cut at [`bounds::ERROR_BYTES`]. If there are
/// more than [`bounds::ERRORS_KEPT`] errors, the first one and the newest ones stay.
pub fn push(errors: &mut Vec<AttemptError>, attempt: u32, at: Timestamp, message: String) {
    while errors.len() >= bounds::ERRORS_KEPT {
        // The first error stays, so the oldest of the others is removed.
        errors.remove(1);
    }
    errors.push(AttemptError { attempt, at, message: cut(message, bounds::ERROR_BYTES) });
}

/// Returns the error of an attempt whose session lapsed.
#[must_use]
pub fn lost_lease(session: SessionId) -> String {
    format!(
        "the lease of session {session} lapsed: its process ended, hung or lost the store before the attempt was over"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_errors_the_first_and_the_newest_stay() {
        let mut errors = Vec::new();
        for attempt in 1..=100 {
            push(&mut errors, attempt, Timestamp::MIN, String::new());
        }
        let attempts: Vec<u32> = errors.iter().map(|error| error.attempt).collect();
        assert_eq!(attempts, std::iter::once(1).chain(38..=100).collect::<Vec<_>>());
    }
}
