//! The ends of attempts, and the reports of running attempts.

use std::time::Duration;

use bytes::Bytes;

use crate::api::event::Change;
use crate::api::outcome::{Failed, Outcome, Refusal};
use crate::api::task::{ByteProgress, Lease, NewTask, Progress, TaskId, TaskState, check_payload};
use crate::api::timestamp::Timestamp;
use crate::api::write::AfterFailure;
use crate::bounds;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::attempt::{self, AfterAttempt, FailedAttempt};
use crate::rules::orchestration::saves_no_checkpoint;

impl State {
    /// Ends the attempt and the task as completed. A result above the payload limit is rejected
    /// before any change, so the attempt continues.
    pub(in crate::model) fn complete(&mut self, lease: Lease, result: Option<Bytes>) -> Result<Outcome, Refusal> {
        let kind = &self.check_lease(lease)?.new.kind;
        check_payload("result", result.as_ref().map_or(0, Bytes::len), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        self.tasks.change(lease.task, |task| task.result = result);
        self.end_attempt(lease.task, TaskState::Completed);
        Ok(Outcome::Done)
    }

    /// Ends the attempt with an error. The rule [`attempt::failed`] decides between another attempt
    /// and the end of the task.
    pub(in crate::model) fn fail(
        &mut self,
        lease: Lease,
        error: String,
        next: AfterFailure,
    ) -> Result<Outcome, Refusal> {
        let task = self.check_lease(lease)?;
        let facts = FailedAttempt {
            cancel_requested: task.cancel_requested,
            attempts: task.attempts,
            expires_at: task.expires_at,
            is_rated: self.is_rated(task),
            // A batch whose items are to be cancelled must release its lease first, as a moving
            // task must.
            is_moving: task.move_to.is_some() || self.has_items_to_cancel(task.id),
        };
        let now = self.now.wall;
        let after = attempt::failed(facts, next, now);
        self.tasks.change(lease.task, |task| {
            task.lost = 0;
            task.push_error(now, error);
        });
        Ok(Outcome::Failed(self.continue_after_failure(lease, after)))
    }

    /// Applies the decision of the rule. A task that is held for its next attempt starts it at
    /// once, under a new lease.
    fn continue_after_failure(&mut self, lease: Lease, after: AfterAttempt) -> Failed {
        let id = lease.task;
        match after {
            AfterAttempt::End(state) => {
                self.end_attempt(id, state);
                Failed { state, lease: None }
            }
            AfterAttempt::Again { at, attempts } => {
                self.log_retry(id, at);
                Failed { state: self.wait_for(id, at, attempts), lease: None }
            }
            AfterAttempt::Hold { attempts } => {
                self.log_retry(id, self.now.wall);
                self.tasks.change(id, |task| task.attempts = attempts);
                let next = self.start(id, lease.session);
                Failed { state: TaskState::Running, lease: next.map(|claimed| claimed.lease) }
            }
        }
    }

    /// Logs that another attempt follows, with the delay until it.
    fn log_retry(&mut self, id: TaskId, at: Timestamp) {
        let attempt = self.tasks.get(id).map_or(0, Task::attempt);
        self.log(id, Change::Retrying { attempt, after: attempt::until(at, self.now.wall) });
    }

    /// Ends the running attempt, and the task with it.
    pub(in crate::model) fn end_attempt(&mut self, id: TaskId, state: TaskState) {
        self.tasks.change(id, |task| task.attempts = task.attempt());
        self.end(id, state);
    }

    /// Makes a running task wait until `at`. Returns its new state.
    pub(in crate::model) fn wait_for(&mut self, id: TaskId, at: Timestamp, attempts: u32) -> TaskState {
        let now = self.now.wall;
        self.tasks.change(id, |task| {
            task.attempts = attempts;
            task.wait_for(at, now);
        });
        self.block_if_paused(id);
        self.apply_move(id);
        self.hint_work();
        self.cancel_marked_items(id);
        self.tasks.get(id).map_or(TaskState::Waiting, |task| task.state)
    }

    /// Releases the task to its queue. The attempt does not count.
    pub(in crate::model) fn release(&mut self, lease: Lease, after: Duration) -> Result<Outcome, Refusal> {
        self.check_lease(lease)?;
        self.return_to_queue(lease.task, after);
        Ok(Outcome::Done)
    }

    /// Returns a running task to its queue as if it had not been claimed.
    pub(in crate::model) fn return_to_queue(&mut self, id: TaskId, after: Duration) {
        let Some(task) = self.tasks.get(id) else { return };
        if task.cancel_requested {
            self.end(id, TaskState::Cancelled);
        } else {
            let attempts = task.attempts;
            self.tasks.change(id, |task| task.expires_at = task.expiry_before_claim);
            self.log(id, Change::Released);
            self.wait_for(id, self.now.wall.plus(after), attempts);
        }
    }

    /// Ends the task as cancelled. The reason becomes the error of the attempt.
    pub(in crate::model) fn confirm_cancel(&mut self, lease: Lease, reason: String) -> Result<Outcome, Refusal> {
        self.check_lease(lease)?;
        let now = self.now.wall;
        self.tasks.change(lease.task, |task| task.push_error(now, reason));
        self.end_attempt(lease.task, TaskState::Cancelled);
        Ok(Outcome::Done)
    }

    /// Replaces the progress of the running attempt.
    pub(in crate::model) fn report(
        &mut self,
        lease: Lease,
        fraction: Option<f32>,
        message: Option<String>,
        bytes: Option<ByteProgress>,
    ) -> Result<Outcome, Refusal> {
        self.check_lease(lease)?;
        let bytes = attempt::bytes(bytes);
        let fraction = attempt::fraction(fraction);
        let message = message.map(|message| attempt::cut(message, bounds::PROGRESS_BYTES));
        let at = self.now.wall;
        self.tasks.change(lease.task, |task| task.progress = Some(Progress { fraction, message, at, bytes }));
        Ok(Outcome::Done)
    }

    /// Replaces the checkpoint of the task, which its next attempt receives. An orchestration has
    /// none, because its history is its checkpoint.
    pub(in crate::model) fn save_checkpoint(&mut self, lease: Lease, checkpoint: Bytes) -> Result<Outcome, Refusal> {
        let NewTask { kind, orchestration, .. } = &self.check_lease(lease)?.new;
        if *orchestration {
            return Err(saves_no_checkpoint(kind));
        }
        check_payload("checkpoint", checkpoint.len(), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        self.tasks.change(lease.task, |task| task.checkpoint = Some(checkpoint));
        Ok(Outcome::Done)
    }

    /// Checks the fence: returns the task that runs under exactly this lease.
    pub(in crate::model) fn check_lease(&self, lease: Lease) -> Result<&Task, Refusal> {
        self.check_session(lease.session)?;
        self.tasks.get(lease.task).filter(|task| task.lease() == Some(lease)).ok_or(Refusal::LeaseLost(lease))
    }
}
