//! External completion of attempts.

use crate::api::completion::{CompletionToken, CompletionWait, ExternalCompletion};
use crate::api::outcome::Refusal;
use crate::api::task::TaskState;
use crate::api::timestamp::Timestamp;
use crate::api::write::AfterFailure;
use crate::rules::attempt::{self, AfterAttempt, FailedAttempt};
use crate::rules::retry::{FailureClass, after_failure};

/// The state of a live task whose attempt is to be completed externally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveAttempt {
    /// The state.
    pub state: TaskState,
    /// The number of the claim that runs, or that waits for external completion.
    pub claim: u32,
    /// True if an attempt waits for external completion.
    pub waits: bool,
}

/// Checks that an external completion of an attempt is accepted.
///
/// An attempt that still runs can be completed by its token: its handler is about to end it with
/// [`Write::AwaitCompletion`](crate::Write::AwaitCompletion). It cannot be failed, because another
/// attempt could then start while the handler still runs.
///
/// # Errors
/// [`Refusal::TokenOutdated`] if another attempt runs or waits, [`Refusal::NotAwaited`] if no
/// attempt waits.
pub fn check(token: CompletionToken, completion: &ExternalCompletion, standing: LiveAttempt) -> Result<(), Refusal> {
    let runs = standing.state == TaskState::Running;
    if (runs || standing.waits) && token.claim.is_some_and(|claim| claim != standing.claim) {
        return Err(Refusal::TokenOutdated(token));
    }
    // Without a claim number, the completion of a running task could mean any attempt.
    let completes_now = runs && token.claim.is_some() && matches!(completion, ExternalCompletion::Complete { .. });
    if standing.waits || completes_now {
        return Ok(());
    }
    Err(Refusal::NotAwaited { task: token.task, state: standing.state })
}

/// Returns the error of an attempt that was not completed in time.
#[must_use]
pub fn overdue(wait: &CompletionWait) -> String {
    format!("it was not completed within {:?}", wait.within.unwrap_or_default())
}

/// Decides the effect on a task whose attempt waited for external completion and failed. `attempts`
/// were used before it.
#[must_use]
pub fn failed(
    wait: &CompletionWait,
    class: FailureClass,
    attempts: u32,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> AfterAttempt {
    let next = match after_failure(&wait.retry, attempts.saturating_add(1), class, wait.random) {
        // No session holds the task, so none can keep it.
        AfterFailure::Retry { after, uses_attempt, .. } => AfterFailure::Retry { after, uses_attempt, hold: false },
        next => next,
    };
    let task = FailedAttempt { cancel_requested: false, attempts, expires_at, is_rated: false, is_moving: false };
    attempt::failed(task, next, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::task::TaskId;

    const TOKEN: CompletionToken = CompletionToken { task: TaskId(1), claim: Some(2) };
    const COMPLETE: ExternalCompletion = ExternalCompletion::Complete { result: None };

    fn standing(state: TaskState, claim: u32) -> LiveAttempt {
        LiveAttempt { state, claim, waits: state == TaskState::Blocked }
    }

    #[test]
    fn the_token_of_an_earlier_attempt_is_outdated() {
        for state in [TaskState::Running, TaskState::Blocked] {
            assert_eq!(check(TOKEN, &COMPLETE, standing(state, 3)), Err(Refusal::TokenOutdated(TOKEN)));
        }
    }

    #[test]
    fn what_still_runs_can_be_completed_but_not_failed() {
        let running = standing(TaskState::Running, 2);
        let fail = ExternalCompletion::Fail { error: String::new(), class: FailureClass::Retryable };
        assert_eq!(check(TOKEN, &COMPLETE, running), Ok(()));
        assert!(check(TOKEN, &fail, running).is_err());
        assert!(check(TaskId(1).into(), &COMPLETE, running).is_err(), "by its number it could be any attempt");
    }
}
