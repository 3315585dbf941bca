//! Cancellation and retry of tasks by an operator.

use crate::api::event::Change;
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules;

impl State {
    /// Cancels a task. A running task gets a request and an orchestration gets a message, because
    /// their code decides how they end.
    pub(in crate::model) fn cancel(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        if self.deliver_cancel(id) {
            return Ok(Outcome::CancelRequested);
        }
        match self.effective_state(self.existing(id)?) {
            TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting => {
                self.end(id, TaskState::Cancelled);
                Ok(Outcome::Cancelled)
            }
            TaskState::Running => {
                self.request_cancel(id);
                Ok(Outcome::CancelRequested)
            }
            state => Err(Refusal::AlreadyEnded { task: id, state }),
        }
    }

    /// Requests the cancellation of a running task. A repeated request changes nothing.
    pub(in crate::model) fn request_cancel(&mut self, id: TaskId) {
        if self.tasks.get(id).is_some_and(|task| !task.cancel_requested) {
            self.tasks.change(id, |task| task.cancel_requested = true);
            self.log(id, Change::CancelRequested);
            self.hint_transition();
        }
    }

    /// Makes an ended task wait again. Its attempts begin at zero. Its key must be free.
    pub(in crate::model) fn retry(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        let task = self.existing(id)?;
        if !task.state.is_ended() {
            return Err(Refusal::NotEnded { task: id, state: task.state });
        }
        if task.is_unstarted() {
            return Err(rules::orchestration::never_started(id));
        }
        if let Some(run) = self.run_of_step(task) {
            return Err(Refusal::StepOfRun { task: id, run });
        }
        if let Some(by) = self.keys.active(&task.new) {
            return Err(Refusal::KeyTaken { task: id, by });
        }
        rules::attempt::check_deadline(id, task.new.deadline, self.now.wall)?;
        let (queue, new) = (task.new.queue.clone(), task.new.clone());
        let items = self.items_to_retry(task)?;
        self.check_names(Some(&queue), None)?;
        self.register_names(Some(&queue), None);
        self.keys.take(id, &new);
        self.reset(id);
        self.log(id, Change::Retried);
        self.notifications.push(TaskNotification::Retried { task: id });
        self.hint_work();
        self.retry_items(id, items);
        self.batches.forget(id);
        self.collect(id);
        Ok(Outcome::Done)
    }

    /// Returns the active workflow run of which a task is a step.
    fn run_of_step(&self, task: &Task) -> Option<TaskId> {
        // The parent is looked up only if it matters, because a store may have to load it.
        let parent = task.new.parent.filter(|_| task.new.report.is_some())?;
        let parent = self.tasks.get(parent).map(|parent| (parent.id, parent.new.kind.as_str(), parent.state));
        rules::orchestration::run_of_step(task.new.report, parent)
    }

    /// Makes a task wait with its attempts at zero, or blocks it if it is a paused orchestration.
    pub(in crate::model) fn reset(&mut self, id: TaskId) {
        let now = self.now.wall;
        self.tasks.change(id, |task| reset(task, now));
        self.block_if_paused(id);
    }

    /// Returns a task, or the refusal for a task that does not exist.
    pub(in crate::model) fn existing(&self, id: TaskId) -> Result<&Task, Refusal> {
        self.tasks.get(id).ok_or(Refusal::TaskNotFound(id))
    }
}

/// Resets a task to a new one. It keeps its number, errors, claims and submission time.
fn reset(task: &mut Task, now: Timestamp) {
    task.wait_for(now, now);
    if task.new.aggregate.is_some() {
        task.state = TaskState::Blocked;
    }
    task.run_at = now;
    task.expires_at = rules::attempt::expiry_at_submission(task.new.ttl, task.new.deadline, now);
    task.attempts = 0;
    task.lost = 0;
    task.started_at = None;
    task.finished_at = None;
    task.end = None;
    task.cancel_requested = false;
    task.result = None;
    task.progress = None;
    task.checkpoint = None;
}
