//! Interventions of operators in tasks that do not run: run now, kill, delete.

use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::model::state::State;
use crate::rules::{intervene, orchestration};

impl State {
    /// Makes a scheduled task due now. A task that waits already keeps its position.
    pub(in crate::model) fn run_now(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        let (state, now) = (self.effective_state(self.existing(id)?), self.now.wall);
        intervene::run_now(id, state)?;
        if self.existing(id)?.is_unstarted() {
            return Err(orchestration::never_started(id));
        }
        if state == TaskState::Scheduled {
            self.tasks.change(id, |task| {
                task.state = TaskState::Waiting;
                task.run_at = task.run_at.min(now);
            });
            self.hint_work();
        }
        Ok(Outcome::Done)
    }

    /// Ends a task that does not run as dead, so that no attempt follows.
    pub(in crate::model) fn kill(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        intervene::kill(id, self.effective_state(self.existing(id)?))?;
        let now = self.now.wall;
        self.tasks.change(id, |task| task.push_error_between(now, intervene::KILLED.to_owned()));
        self.end(id, TaskState::Dead);
        Ok(Outcome::Done)
    }

    /// Removes a task that does not run, with everything that refers to it.
    pub(in crate::model) fn delete(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        intervene::delete(id, self.effective_state(self.existing(id)?))?;
        self.remove_without_trace(id);
        Ok(Outcome::Done)
    }
}
