//! External completion: an attempt ends, and a later write with its token completes the task.

use std::time::Duration;

use bytes::Bytes;

use crate::api::completion::{CompletionToken, CompletionWait, ExternalCompletion};
use crate::api::event::Change;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{Lease, TaskId, TaskState, check_payload};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::state::State;
use crate::rules::attempt::{self, AfterAttempt};
use crate::rules::completion::{self, LiveAttempt};
use crate::rules::orchestration;
use crate::rules::retry::FailureClass;

/// A wait for external completion. A task has one while it is blocked for that.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct AwaitedCompletion {
    pub(crate) wait: CompletionWait,
    /// The time at which the attempt fails unless it was completed.
    pub(crate) until: Option<Timestamp>,
    /// The expiry of the task if it is retried, because the time to live does not run during an
    /// attempt.
    pub(crate) expires_at: Option<Timestamp>,
}

impl State {
    /// Ends the attempt without an end of the task. The task stays blocked, holds no slot and no
    /// lease, and waits for its token. A task whose cancellation was requested ends instead.
    pub(in crate::model) fn await_completion(
        &mut self,
        lease: Lease,
        wait: CompletionWait,
    ) -> Result<Outcome, Refusal> {
        let task = self.check_lease(lease)?;
        if task.new.orchestration {
            return Err(orchestration::waits_by_parking(&task.new.kind));
        }
        wait.retry.check(&task.new.kind).map_err(|error| Refusal::Invalid(error.to_string()))?;
        if task.cancel_requested {
            self.end_attempt(lease.task, TaskState::Cancelled);
            return Ok(Outcome::AwaitsCompletion { state: TaskState::Cancelled });
        }
        let until = wait.within.map(|within| self.now.wall.plus(within));
        self.tasks.change(lease.task, |task| {
            task.state = TaskState::Blocked;
            task.session = None;
            task.lost = 0;
            task.awaited = Some(AwaitedCompletion { wait, until, expires_at: task.expires_at.take() });
        });
        self.log(lease.task, Change::Blocked);
        self.apply_move(lease.task);
        self.hint_work();
        Ok(Outcome::AwaitsCompletion { state: TaskState::Blocked })
    }

    /// Applies an external completion. The token names the claim, so a token of an earlier attempt
    /// is rejected.
    pub(in crate::model) fn complete_externally(
        &mut self,
        token: CompletionToken,
        completion: ExternalCompletion,
    ) -> Result<Outcome, Refusal> {
        let id = token.task;
        let task = self.tasks.get(id).ok_or(Refusal::TaskNotFound(id))?;
        if task.state.is_ended() {
            return Err(Refusal::AlreadyEnded { task: id, state: task.state });
        }
        let standing = LiveAttempt { state: task.state, claim: task.claims, waits: task.awaited.is_some() };
        completion::check(token, &completion, standing)?;
        let state = match completion {
            ExternalCompletion::Complete { result } => self.complete_awaited(id, result)?,
            ExternalCompletion::Fail { error, class } => self.fail_awaited(id, error, class),
            ExternalCompletion::Extend { within } => self.extend(id, within),
        };
        Ok(Outcome::CompletedExternally { state })
    }

    /// Ends the task as completed. Its result is checked as in an ordinary end.
    fn complete_awaited(&mut self, id: TaskId, result: Option<Bytes>) -> Result<TaskState, Refusal> {
        if let Some(task) = self.tasks.get(id) {
            check_payload("result", result.as_ref().map_or(0, Bytes::len), self.payload_limit, &task.new.kind)
                .map_err(|error| Refusal::Invalid(error.to_string()))?;
        }
        self.tasks.change(id, |task| task.result = result);
        self.end_attempt(id, TaskState::Completed);
        Ok(TaskState::Completed)
    }

    /// Adds the error, and decides if another attempt follows. The retry policy is that of the
    /// wait, not that of the task.
    fn fail_awaited(&mut self, id: TaskId, error: String, class: FailureClass) -> TaskState {
        let now = self.now.wall;
        let Some(task) = self.tasks.get(id) else { return TaskState::Failed };
        let Some(awaited) = task.awaited else { return task.state };
        let after = completion::failed(&awaited.wait, class, task.attempts, awaited.expires_at, now);
        self.tasks.change(id, |task| {
            task.awaited = None;
            task.expires_at = awaited.expires_at;
            task.push_error(now, error);
        });
        match after {
            AfterAttempt::End(state) => {
                self.end_attempt(id, state);
                state
            }
            AfterAttempt::Again { at, attempts } => {
                let attempt = self.tasks.get(id).map_or(0, crate::model::tasks::task::Task::attempt);
                self.log(id, Change::Retrying { attempt, after: attempt::until(at, now) });
                self.wait_for(id, at, attempts)
            }
            AfterAttempt::Hold { attempts } => self.wait_for(id, now, attempts),
        }
    }

    /// Changes the latest time for the completion. `None` waits without end.
    fn extend(&mut self, id: TaskId, within: Option<Duration>) -> TaskState {
        let until = within.map(|within| self.now.wall.plus(within));
        self.tasks.change(id, |task| {
            if let Some(awaited) = &mut task.awaited {
                (awaited.wait.within, awaited.until) = (within, until);
            }
        });
        self.hint_work();
        TaskState::Blocked
    }

    /// Fails attempts that were not completed in time, the most overdue first.
    pub(in crate::model) fn fail_overdue(&mut self) {
        let now = self.now.wall;
        let overdue = self.tasks.overdue().take_while(|(until, _)| *until <= now).take(bounds::SWEEP);
        let overdue: Vec<TaskId> = overdue.map(|(_, id)| id).collect();
        for id in overdue {
            let Some(awaited) = self.tasks.get(id).and_then(|task| task.awaited) else { continue };
            self.fail_awaited(id, completion::overdue(&awaited.wait), FailureClass::Retryable);
        }
    }

    /// Returns the time at which the next attempt becomes overdue.
    pub(in crate::model) fn next_overdue(&self) -> Option<Timestamp> {
        self.tasks.overdue().next().map(|(until, _)| until)
    }
}
