//! Whether somebody may finish an attempt from elsewhere, and what follows.

use crate::api::completion::{CompletionToken, CompletionWait, Finish};
use crate::api::outcome::Refusal;
use crate::api::task::TaskState;
use crate::api::timestamp::Timestamp;
use crate::api::write::AfterFailure;
use crate::rules::attempt::{self, AfterAttempt, FailedAttempt};
use crate::rules::retry::{FailureClass, after_failure};

/// Where a live task stands that somebody wants to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: TaskState,
    /// The claim under which it runs, or which waits to be finished.
    pub claim: u32,
    /// Whether it waits to be finished.
    pub waits: bool,
}

/// Checks that an attempt can be finished so. One that still runs can be completed by its token,
/// for its handler is about to let go of it; were it to fail, another attempt could start beside
/// it.
///
/// # Errors
/// [`Refusal::TokenOutdated`] for another attempt than the one that runs or waits,
/// [`Refusal::NotAwaited`] if none waits.
pub fn check(token: CompletionToken, finish: &Finish, standing: Standing) -> Result<(), Refusal> {
    let runs = standing.state == TaskState::Running;
    if (runs || standing.waits) && token.claim.is_some_and(|claim| claim != standing.claim) {
        return Err(Refusal::TokenOutdated(token));
    }
    let completes_now = runs && token.claim.is_some() && matches!(finish, Finish::Complete { .. });
    if standing.waits || completes_now {
        return Ok(());
    }
    Err(Refusal::NotAwaited { task: token.task, state: standing.state })
}

/// What an attempt says that was not finished in time.
#[must_use]
pub fn overdue(wait: &CompletionWait) -> String {
    format!("it was not finished within {:?}", wait.within.unwrap_or_default())
}

/// Decides where a task goes whose attempt waited to be finished and failed. `attempts` were used
/// up before it.
#[must_use]
pub fn failed(
    wait: &CompletionWait,
    class: FailureClass,
    attempts: u32,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> AfterAttempt {
    let next = match after_failure(&wait.retry, attempts.saturating_add(1), class, wait.random) {
        // Nobody holds it.
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
    const COMPLETE: Finish = Finish::Complete { result: None };

    fn standing(state: TaskState, claim: u32) -> Standing {
        Standing { state, claim, waits: state == TaskState::Blocked }
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
        let fail = Finish::Fail { error: String::new(), class: FailureClass::Retryable };
        assert_eq!(check(TOKEN, &COMPLETE, running), Ok(()));
        assert!(check(TOKEN, &fail, running).is_err());
        assert!(check(TaskId(1).into(), &COMPLETE, running).is_err(), "by its number it could be any attempt");
    }
}
