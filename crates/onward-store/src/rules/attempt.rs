//! The effect of the end of an attempt on its task.

use std::time::Duration;

use crate::api::outcome::Refusal;
use crate::api::task::{ByteProgress, TaskId, TaskState, Ttl, TtlFrom};
use crate::api::timestamp::Timestamp;
use crate::api::write::AfterFailure;
use crate::bounds;

/// The effect of a failed attempt on its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// The task ends in this state.
    End(TaskState),
    /// The task waits, or is scheduled, to run again.
    Again {
        /// The time at which it is due.
        at: Timestamp,
        /// The number of attempts used up so far.
        attempts: u32,
    },
    /// The session keeps the task and starts another attempt at once.
    Hold {
        /// The number of attempts used up so far, without the one that starts.
        attempts: u32,
    },
}

/// The facts about a task that [`failed`] needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// True if the task was asked to stop.
    pub cancel_requested: bool,
    /// The number of attempts used up before this one.
    pub attempts: u32,
    /// The time at which the task expires.
    pub expires_at: Option<Timestamp>,
    /// True if a rate applies to the task. A rate counts starts, so the session cannot keep the
    /// task.
    pub is_rated: bool,
    /// True if the task is to move to another queue.
    pub is_moving: bool,
}

/// Decides the effect of a failed attempt. A session cannot keep a task that has expired, to which
/// a rate applies, or that is to move.
#[must_use]
pub fn failed(task: FailedAttempt, next: AfterFailure, now: Timestamp) -> AfterAttempt {
    match next {
        AfterFailure::Dead => AfterAttempt::End(TaskState::Dead),
        AfterFailure::Fail => AfterAttempt::End(TaskState::Failed),
        AfterFailure::Retry { .. } if task.cancel_requested => AfterAttempt::End(TaskState::Cancelled),
        AfterFailure::Retry { after, uses_attempt, hold } => {
            let attempts = task.attempts.saturating_add(u32::from(uses_attempt));
            let expired = task.expires_at.is_some_and(|at| at <= now);
            if hold && after.is_zero() && !expired && !task.is_rated && !task.is_moving {
                AfterAttempt::Hold { attempts }
            } else {
                AfterAttempt::Again { at: now.plus(after), attempts }
            }
        }
    }
}

/// Decides the effect on a task whose session has lapsed. `lost` is the number of leases that the
/// task lost in a row before this one.
#[must_use]
pub fn lease_lost(cancel_requested: bool, lost: u32, attempts: u32, now: Timestamp) -> AfterAttempt {
    if cancel_requested {
        AfterAttempt::End(TaskState::Cancelled)
    } else if lost.saturating_add(1) >= bounds::LOST_LEASES {
        AfterAttempt::End(TaskState::Dead)
    } else {
        AfterAttempt::Again { at: now, attempts: attempts.saturating_add(1) }
    }
}

/// Returns the expiry of a task that is submitted now: the end of its time to live or its deadline,
/// whichever is earlier.
#[must_use]
pub fn expiry_at_submission(ttl: Option<Ttl>, deadline: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let end = ttl.filter(|ttl| ttl.from == TtlFrom::Submission).map(|ttl| now.plus(ttl.duration));
    [end, deadline].into_iter().flatten().min()
}

/// Returns the expiry of a task whose attempt starts now. `expires_at` is the expiry before the
/// start.
///
/// A time to live from the submission ends with the first start. A time to live from the first
/// attempt begins with it and then stays. A deadline applies to every attempt.
#[must_use]
pub fn expiry_at_start(
    ttl: Option<Ttl>,
    deadline: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    match ttl {
        // If the expiry is the deadline, the first attempt may not have started, or the time to
        // live would end later. In both cases the earlier of the two is computed again.
        Some(Ttl { from: TtlFrom::FirstAttempt, duration }) => expires_at
            .filter(|at| Some(*at) != deadline)
            .or_else(|| [Some(now.plus(duration)), deadline].into_iter().flatten().min()),
        Some(Ttl { from: TtlFrom::Submission, .. }) | None => deadline,
    }
}

/// Checks that the deadline of an ended task has not passed, so that the task can be retried.
///
/// # Errors
/// [`Refusal::Invalid`] with the deadline and the remedy.
pub fn check_deadline(task: TaskId, deadline: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    match deadline.filter(|deadline| *deadline <= now) {
        Some(deadline) => Err(Refusal::Invalid(format!(
            "task {task} cannot be retried: its deadline {deadline} has passed; submit it again with a later one"
        ))),
        None => Ok(()),
    }
}

/// Returns `text`, cut to at most `bytes` bytes. A cut text ends with a mark.
#[must_use]
pub fn cut(mut text: String, bytes: usize) -> String {
    const MARK: &str = " … (cut)";
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
    text
}

/// Returns a reported fraction as it is stored: clamped to 0.0 to 1.0, or `None` if it is not a
/// number.
#[must_use]
pub fn fraction(reported: Option<f32>) -> Option<f32> {
    reported.filter(|fraction| !fraction.is_nan()).map(|fraction| fraction.clamp(0.0, 1.0))
}

/// Returns reported bytes as they are stored: each count fits into a signed 64-bit integer.
#[must_use]
pub fn bytes(reported: Option<ByteProgress>) -> Option<ByteProgress> {
    let kept = |count: u64| count.min(i64::MAX.cast_unsigned());
    reported.map(|bytes| ByteProgress { done: kept(bytes.done), total: bytes.total.map(kept) })
}

/// Returns the time until `at`; zero if it has passed.
#[must_use]
pub fn until(at: Timestamp, now: Timestamp) -> Duration {
    at - now
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::MIN;

    #[test]
    fn a_third_lost_lease_in_a_row_is_the_end() {
        assert_eq!(lease_lost(false, 2, 2, NOW), AfterAttempt::End(TaskState::Dead));
    }

    #[test]
    fn a_cancelled_task_is_not_tried_again() {
        let retry = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
        let task =
            FailedAttempt { cancel_requested: true, attempts: 0, expires_at: None, is_rated: false, is_moving: false };
        assert_eq!(failed(task, retry, NOW), AfterAttempt::End(TaskState::Cancelled));
    }

    #[test]
    fn a_time_to_live_under_a_second_is_kept_exactly() {
        let ttl = Ttl { duration: Duration::from_millis(250), from: TtlFrom::Submission };
        let now = Timestamp::from_microseconds(1_000_000);
        assert_eq!(expiry_at_submission(Some(ttl), None, now), Some(Timestamp::from_microseconds(1_250_000)));
    }

    #[test]
    fn the_earlier_of_time_to_live_and_deadline_counts_before_and_after_a_start() {
        let at = |seconds: i64| Timestamp::from_microseconds(seconds * 1_000_000);
        let ttl = |from| Some(Ttl { duration: Duration::from_secs(10), from });
        assert_eq!(expiry_at_submission(ttl(TtlFrom::Submission), Some(at(20)), at(0)), Some(at(10)));
        assert_eq!(expiry_at_start(ttl(TtlFrom::Submission), Some(at(20)), Some(at(10)), at(5)), Some(at(20)));
        let first = expiry_at_start(ttl(TtlFrom::FirstAttempt), Some(at(20)), Some(at(20)), at(5));
        assert_eq!(first, Some(at(15)));
        assert_eq!(expiry_at_start(ttl(TtlFrom::FirstAttempt), Some(at(20)), first, at(14)), Some(at(15)));
        assert_eq!(expiry_at_start(ttl(TtlFrom::FirstAttempt), Some(at(20)), Some(at(20)), at(12)), Some(at(20)));
    }

    #[test]
    fn a_long_error_is_cut_at_a_character() {
        let text = cut("é".repeat(50), 41);
        assert!(text.len() <= 41 && text.ends_with("(cut)"), "{text}");
    }
}
