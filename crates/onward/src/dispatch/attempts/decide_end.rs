//! How an attempt ended, told from what its handler did and why it was asked to stop.

use onward_store::rules::retry::{FailureClass, RetryPolicy, after_failure};
use onward_store::{AfterFailure, CompletionWait};

use crate::dispatch::run_state::End;
use crate::handlers::{Failure, Instead, Interruption, Output};

/// What the handler did: `None` if it was aborted after its grace.
pub(crate) type Answer = Option<Result<Output, Failure>>;

/// What a verdict depends on beside the answer.
#[derive(Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    /// Why the handler was asked to stop, if it was.
    pub(crate) interruption: Option<Interruption>,
    /// What to say of a handler whose time was over, or that was silent for too long.
    pub(crate) overtime: &'a dyn Fn() -> String,
    /// Which attempt it was.
    pub(crate) attempt: u32,
    /// The policy that holds.
    pub(crate) policy: RetryPolicy,
    /// What has the last word about a failure.
    pub(crate) review: &'a dyn Fn(&Failure, AfterFailure) -> AfterFailure,
}

/// Decides how an attempt ended. A result counts, however late it comes; an error after a request
/// to stop is the answer to that request.
pub(crate) fn verdict(answer: Answer, circumstances: Circumstances<'_>) -> End {
    use Interruption::{Cancelled, Preempted, SessionLost, ShuttingDown, Silent, TimedOut};
    let failure = match answer {
        Some(Ok(output)) => return End::Complete(output.0),
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    match (circumstances.interruption, failure) {
        (None | Some(TimedOut | Silent | ShuttingDown | Preempted), Some(failure)) if failure.instead().is_some() => {
            failure.instead().map_or(End::Release, |instead| instead_of_failing(instead, circumstances))
        }
        (Some(Cancelled), failure) => End::ConfirmCancel(failure.map_or(CANCELLED.to_owned(), message)),
        (Some(TimedOut | Silent), failure) => failed(overtime(failure, &(circumstances.overtime)()), circumstances),
        (None, Some(failure)) => failed(failure, circumstances),
        (Some(ShuttingDown | Preempted), Some(failure)) if is_permanent(&failure) => failed(failure, circumstances),
        (Some(ShuttingDown | SessionLost | Preempted) | None, _) => End::Release,
    }
}

fn instead_of_failing(instead: &Instead, circumstances: Circumstances<'_>) -> End {
    match instead {
        Instead::Children(wait) => End::AwaitChildren(wait.clone()),
        Instead::Completion(within) => End::AwaitCompletion(CompletionWait {
            within: *within,
            retry: circumstances.policy,
            random: fastrand::u64(..),
        }),
        Instead::Move(queue) => End::Move(queue.clone()),
        Instead::ContinueAsNew(_) => failed_for_good("only an orchestration continues as new".to_owned()),
        Instead::Cancelled => failed_for_good("only an orchestration ends as cancelled by itself".to_owned()),
    }
}

/// The end of an attempt that did not start although it was handed to a slot.
pub(crate) fn not_started(interruption: Interruption) -> End {
    if interruption == Interruption::Cancelled {
        return End::ConfirmCancel("cancelled before it started".to_owned());
    }
    End::Release
}

/// The end of an attempt with an error that no policy can mend.
pub(crate) fn failed_for_good(error: String) -> End {
    End::Fail { error, next: AfterFailure::Fail }
}

const CANCELLED: &str = "cancelled while it ran";

fn message(failure: Failure) -> String {
    failure.into_parts().0
}

fn is_permanent(failure: &Failure) -> bool {
    failure.class() == FailureClass::Permanent
}

fn overtime(failure: Option<Failure>, overtime: &str) -> Failure {
    match failure {
        Some(failure) if is_permanent(&failure) => Failure::permanent(format!("{overtime}: {failure}")),
        Some(failure) => Failure::retryable(format!("{overtime}: {failure}")),
        None => Failure::retryable(overtime),
    }
}

fn failed(failure: Failure, circumstances: Circumstances<'_>) -> End {
    let next = after_failure(&circumstances.policy, circumstances.attempt, failure.class(), fastrand::u64(..));
    let next = (circumstances.review)(&failure, next);
    End::Fail { error: message(failure), next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer: Answer, interruption: Option<Interruption>) -> End {
        let circumstances = Circumstances {
            interruption,
            overtime: &|| "timed out after 5s".to_owned(),
            attempt: 1,
            policy: RetryPolicy::NEVER,
            review: &|_, next| next,
        };
        verdict(answer, circumstances)
    }

    fn dead(error: &str) -> End {
        End::Fail { error: error.to_owned(), next: AfterFailure::Dead }
    }

    #[test]
    fn a_result_counts_however_late_it_comes() {
        assert_eq!(of(Some(Ok(Output::NONE)), Some(Interruption::TimedOut)), End::Complete(None));
        assert_eq!(of(Some(Ok(Output::NONE)), Some(Interruption::Cancelled)), End::Complete(None));
    }

    #[test]
    fn an_error_after_a_request_to_cancel_confirms_it() {
        let answer = Some(Err(Failure::permanent("stopped halfway")));
        assert_eq!(of(answer, Some(Interruption::Cancelled)), End::ConfirmCancel("stopped halfway".into()));
    }

    #[test]
    fn overtime_is_a_failure_like_any_other() {
        assert_eq!(of(None, Some(Interruption::TimedOut)), dead("timed out after 5s"));
        for interruption in [Interruption::TimedOut, Interruption::Silent] {
            let answer = Some(Err(Failure::retryable("half done")));
            assert_eq!(of(answer, Some(interruption)), dead("timed out after 5s: half done"));
        }
    }

    #[test]
    fn a_stopping_engine_gives_back_what_it_interrupts() {
        assert_eq!(of(None, Some(Interruption::ShuttingDown)), End::Release);
        assert_eq!(of(Some(Err(Failure::retryable("stopped"))), Some(Interruption::ShuttingDown)), End::Release);
    }

    #[test]
    fn what_gives_way_is_given_back_unless_it_has_failed_for_good() {
        let interruption = Some(Interruption::Preempted);
        assert_eq!(of(None, interruption), End::Release);
        assert_eq!(of(Some(Err(Failure::retryable("stopped"))), interruption), End::Release);
        assert_eq!(of(Some(Ok(Output::NONE)), interruption), End::Complete(None));
        assert!(matches!(of(Some(Err(Failure::permanent("no such image"))), interruption), End::Fail { .. }));
    }

    #[test]
    fn a_wait_for_children_counts_however_late_it_comes() {
        for interruption in
            [None, Some(Interruption::TimedOut), Some(Interruption::ShuttingDown), Some(Interruption::Preempted)]
        {
            let end = of(Some(Err(Failure::await_children("memo"))), interruption);
            assert!(matches!(&end, End::AwaitChildren(wait) if wait.memo == "memo"), "{end:?}");
        }
    }

    #[test]
    fn a_wait_for_children_after_a_request_to_cancel_confirms_it() {
        let end = of(Some(Err(Failure::await_children("memo"))), Some(Interruption::Cancelled));
        assert!(matches!(end, End::ConfirmCancel(_)), "{end:?}");
    }

    #[test]
    fn a_permanent_failure_counts_even_while_the_engine_stops() {
        let answer = Some(Err(Failure::permanent("no such image")));
        let expected = End::Fail { error: "no such image".into(), next: AfterFailure::Fail };
        assert_eq!(of(answer, Some(Interruption::ShuttingDown)), expected);
    }
}
