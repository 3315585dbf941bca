//! Decides how an attempt ended, from the handler's result and the reason why it was asked to stop.

use std::time::Duration;

use onward_store::bounds::LOST_LEASES;
use onward_store::rules::retry::{FailureClass, RetryPolicy, after_failure};
use onward_store::{AfterFailure, CompletionWait};

use crate::dispatch::run_state::AttemptEnd;
use crate::handlers::{AlternativeEnd, Failure, Interruption, Output};

/// The result of a handler, or `None` if it was aborted after its grace.
pub(crate) type HandlerResult = Option<Result<Output, Failure>>;

/// The conditions of a decision besides the handler's result.
#[derive(Clone, Copy)]
pub(crate) struct EndConditions<'a> {
    /// The reason why the handler was asked to stop, if it was.
    pub(crate) interruption: Option<Interruption>,
    /// Returns the message for a timeout or a missed heartbeat.
    pub(crate) timeout_text: &'a dyn Fn() -> String,
    /// The number of the attempt.
    pub(crate) attempt: u32,
    /// The retry policy that applies.
    pub(crate) policy: RetryPolicy,
    /// True if a retry without delay may stay in this session.
    pub(crate) may_hold: bool,
    /// The function that has the last word about a failure.
    pub(crate) review: &'a dyn Fn(&Failure, AfterFailure) -> AfterFailure,
}

/// Decides how an attempt ended. A result counts, however late it comes. An error after a request
/// to stop is taken for the response to that request, and ends the attempt as the request asked.
pub(crate) fn decide_end(result: HandlerResult, conditions: EndConditions<'_>) -> AttemptEnd {
    use Interruption::{Cancelled, HeartbeatMissed, Preempted, SessionLost, ShuttingDown, TimedOut};
    let failure = match result {
        Some(Ok(output)) => return AttemptEnd::Complete(output.0),
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    match (conditions.interruption, failure) {
        (None | Some(TimedOut | HeartbeatMissed | ShuttingDown | Preempted), Some(failure))
            if failure.alternative_end().is_some() =>
        {
            alternative_end(failure, conditions)
        }
        (Some(Cancelled), failure) => AttemptEnd::ConfirmCancel(failure.map_or(CANCELLED.to_owned(), text_of)),
        (Some(TimedOut | HeartbeatMissed), failure) => {
            failure_end(timeout_text(failure, &(conditions.timeout_text)()), conditions)
        }
        (None, Some(failure)) => failure_end(failure, conditions),
        // A retry elsewhere could not succeed either, so a permanent failure counts.
        (Some(ShuttingDown | Preempted), Some(failure)) if is_permanent(&failure) => failure_end(failure, conditions),
        (Some(ShuttingDown | SessionLost | Preempted) | None, _) => AttemptEnd::Release,
    }
}

fn alternative_end(failure: Failure, conditions: EndConditions<'_>) -> AttemptEnd {
    match failure.alternative_end() {
        None | Some(AlternativeEnd::Release) => AttemptEnd::Release,
        Some(AlternativeEnd::Crashed) => crash(failure, conditions),
        Some(AlternativeEnd::Children(wait)) => AttemptEnd::AwaitChildren(wait.clone()),
        Some(AlternativeEnd::Completion(within)) => AttemptEnd::AwaitCompletion(CompletionWait {
            within: *within,
            retry: conditions.policy,
            random: fastrand::u64(..),
        }),
        Some(AlternativeEnd::Move(queue)) => AttemptEnd::Move(queue.clone()),
        Some(AlternativeEnd::ContinueAsNew(_)) => {
            failed_permanently("only an orchestration continues as new".to_owned())
        }
        Some(AlternativeEnd::Cancelled) => {
            failed_permanently("only an orchestration ends as cancelled by itself".to_owned())
        }
    }
}

/// Returns the end of an attempt whose process has ended: a retry at once, or a dead letter.
fn crash(failure: Failure, conditions: EndConditions<'_>) -> AttemptEnd {
    // A crash says little about the task, so a policy without retries does not end it.
    let attempts = conditions.policy.attempts.max(LOST_LEASES);
    let next = match conditions.attempt {
        attempt if attempt >= attempts => AfterFailure::Dead,
        // The session cannot keep the task, because the process that ran it is gone.
        _ => AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: false },
    };
    AttemptEnd::Fail { error: text_of(failure), next }
}

/// Returns the end of an attempt that was passed to a worker but did not start.
pub(crate) fn end_before_start(interruption: Interruption) -> AttemptEnd {
    if interruption == Interruption::Cancelled {
        return AttemptEnd::ConfirmCancel("cancelled before it started".to_owned());
    }
    AttemptEnd::Release
}

/// Returns the end of an attempt with an error that no retry can fix.
pub(crate) fn failed_permanently(error: String) -> AttemptEnd {
    AttemptEnd::Fail { error, next: AfterFailure::Fail }
}

const CANCELLED: &str = "cancelled while it ran";

fn text_of(failure: Failure) -> String {
    failure.into_parts().0
}

fn is_permanent(failure: &Failure) -> bool {
    failure.class() == FailureClass::Permanent
}

fn timeout_text(failure: Option<Failure>, timeout_text: &str) -> Failure {
    match failure {
        Some(failure) if is_permanent(&failure) => Failure::permanent(format!("{timeout_text}: {failure}")),
        Some(failure) => Failure::retryable(format!("{timeout_text}: {failure}")),
        None => Failure::retryable(timeout_text),
    }
}

fn failure_end(failure: Failure, conditions: EndConditions<'_>) -> AttemptEnd {
    let next = after_failure(&conditions.policy, conditions.attempt, failure.class(), fastrand::u64(..));
    let next = match (conditions.review)(&failure, next) {
        AfterFailure::Retry { after, uses_attempt, hold } => {
            AfterFailure::Retry { after, uses_attempt, hold: hold && conditions.may_hold }
        }
        next => next,
    };
    AttemptEnd::Fail { error: text_of(failure), next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: HandlerResult, interruption: Option<Interruption>) -> AttemptEnd {
        let conditions = EndConditions {
            interruption,
            timeout_text: &|| "timed out after 5s".to_owned(),
            attempt: 1,
            policy: RetryPolicy::NEVER,
            may_hold: true,
            review: &|_, next| next,
        };
        decide_end(result, conditions)
    }

    fn dead(error: &str) -> AttemptEnd {
        AttemptEnd::Fail { error: error.to_owned(), next: AfterFailure::Dead }
    }

    #[test]
    fn a_result_counts_however_late_it_comes() {
        assert_eq!(of(Some(Ok(Output::NONE)), Some(Interruption::TimedOut)), AttemptEnd::Complete(None));
        assert_eq!(of(Some(Ok(Output::NONE)), Some(Interruption::Cancelled)), AttemptEnd::Complete(None));
    }

    #[test]
    fn an_error_after_a_request_to_cancel_confirms_it() {
        let result = Some(Err(Failure::permanent("stopped halfway")));
        assert_eq!(of(result, Some(Interruption::Cancelled)), AttemptEnd::ConfirmCancel("stopped halfway".into()));
    }

    #[test]
    fn overtime_is_a_failure_like_any_other() {
        assert_eq!(of(None, Some(Interruption::TimedOut)), dead("timed out after 5s"));
        for interruption in [Interruption::TimedOut, Interruption::HeartbeatMissed] {
            let result = Some(Err(Failure::retryable("half done")));
            assert_eq!(of(result, Some(interruption)), dead("timed out after 5s: half done"));
        }
    }

    #[test]
    fn a_stopping_engine_gives_back_what_it_interrupts() {
        assert_eq!(of(None, Some(Interruption::ShuttingDown)), AttemptEnd::Release);
        assert_eq!(of(Some(Err(Failure::retryable("stopped"))), Some(Interruption::ShuttingDown)), AttemptEnd::Release);
    }

    #[test]
    fn what_gives_way_is_given_back_unless_it_has_failed_for_good() {
        let interruption = Some(Interruption::Preempted);
        assert_eq!(of(None, interruption), AttemptEnd::Release);
        assert_eq!(of(Some(Err(Failure::retryable("stopped"))), interruption), AttemptEnd::Release);
        assert_eq!(of(Some(Ok(Output::NONE)), interruption), AttemptEnd::Complete(None));
        assert!(matches!(of(Some(Err(Failure::permanent("no such image"))), interruption), AttemptEnd::Fail { .. }));
    }

    #[test]
    fn a_wait_for_children_counts_however_late_it_comes() {
        for interruption in
            [None, Some(Interruption::TimedOut), Some(Interruption::ShuttingDown), Some(Interruption::Preempted)]
        {
            let end = of(Some(Err(Failure::await_children("checkpoint"))), interruption);
            assert!(matches!(&end, AttemptEnd::AwaitChildren(wait) if wait.checkpoint == "checkpoint"), "{end:?}");
        }
    }

    #[test]
    fn a_wait_for_children_after_a_request_to_cancel_confirms_it() {
        let end = of(Some(Err(Failure::await_children("checkpoint"))), Some(Interruption::Cancelled));
        assert!(matches!(end, AttemptEnd::ConfirmCancel(_)), "{end:?}");
    }

    #[test]
    fn a_crash_is_retried_at_once_whatever_the_policy_is_and_dead_after_three() {
        let of_attempt = |attempt| {
            let policy = RetryPolicy::NEVER;
            let conditions = EndConditions {
                interruption: None,
                timeout_text: &String::new,
                attempt,
                policy,
                may_hold: true,
                review: &|_, next| next,
            };
            decide_end(Some(Err(Failure::crashed("killed"))), conditions)
        };
        let again = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: false };
        assert_eq!(of_attempt(2), AttemptEnd::Fail { error: "killed".into(), next: again });
        assert_eq!(of_attempt(3), dead("killed"));
    }

    #[test]
    fn a_permanent_failure_counts_even_while_the_engine_stops() {
        let result = Some(Err(Failure::permanent("no such image")));
        let expected = AttemptEnd::Fail { error: "no such image".into(), next: AfterFailure::Fail };
        assert_eq!(of(result, Some(Interruption::ShuttingDown)), expected);
    }
}
