//! Moves tasks to other queues.

use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::model::state::State;
use crate::rules;

impl State {
    /// Moves a task to another queue. A running task moves after its attempt, unless it ends.
    pub(in crate::model) fn move_task(&mut self, id: TaskId, queue: Name) -> Result<Outcome, Refusal> {
        rules::queue::check_own(&queue)?;
        let task = self.tasks.get(id).ok_or(Refusal::TaskNotFound(id))?;
        if task.state.is_ended() {
            return Err(Refusal::AlreadyEnded { task: id, state: task.state });
        }
        let (runs, is_there) = (task.state == TaskState::Running, task.new.queue == queue);
        let is_in_pending_batch = self.is_in_pending_batch(task) && !is_there;
        self.check_names(Some(&queue), None)?;
        self.register_names(Some(&queue), None);
        if is_in_pending_batch {
            self.stop_collecting(id);
        }
        self.tasks.change(id, |task| task.move_to = Some(queue).filter(|_| !is_there));
        if runs && !is_there {
            return Ok(Outcome::MoveRequested);
        }
        self.apply_move(id);
        if is_in_pending_batch {
            self.collect(id);
        }
        Ok(Outcome::Moved)
    }

    /// Moves a task that does not run to its requested queue.
    pub(in crate::model) fn apply_move(&mut self, id: TaskId) {
        let Some(queue) = self.tasks.get(id).and_then(|task| task.move_to.clone()) else { return };
        self.register_names(Some(&queue), None);
        self.tasks.change(id, |task| {
            task.move_to = None;
            task.new.queue = queue;
        });
        self.log(id, Change::Moved);
        self.hint_work();
    }
}
