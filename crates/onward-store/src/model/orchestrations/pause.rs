//! Pauses of single orchestrations.

use crate::api::event::Change;
use crate::api::orchestration::Hold;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::model::state::State;
use crate::rules::orchestration;

impl State {
    /// Pauses an orchestration. A running turn ends first. Messages are queued during the pause.
    pub(in crate::model) fn pause_orchestration(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        let (hold, state) = self.hold_of(id)?;
        if hold.is_paused() {
            return Ok(Outcome::Done);
        }
        let hold = orchestration::paused(state);
        self.change_instance(id, |instance| instance.hold = hold);
        if hold == Hold::PausedDue {
            self.tasks.change(id, |task| task.state = TaskState::Blocked);
            self.log(id, Change::Blocked);
        }
        Ok(Outcome::Done)
    }

    /// Ends the pause. An unread message, or a time that has passed, causes a turn.
    pub(in crate::model) fn resume_orchestration(&mut self, id: TaskId) -> Result<Outcome, Refusal> {
        let (hold, state) = self.hold_of(id)?;
        if !hold.is_paused() {
            return Ok(Outcome::Done);
        }
        self.change_instance(id, |instance| instance.hold = Hold::None);
        let has_messages = self.instance(id).is_some_and(|instance| instance.length > 0 && instance.waiting() > 0);
        if has_messages && state == TaskState::Blocked {
            self.wake(id);
        } else if hold == Hold::PausedDue {
            self.unblock(id);
        }
        Ok(Outcome::Done)
    }

    /// Returns the hold and the state of an orchestration that is started and has not ended.
    fn hold_of(&self, id: TaskId) -> Result<(Hold, TaskState), Refusal> {
        let task = self.existing(id)?;
        if task.state.is_ended() {
            return Err(Refusal::AlreadyEnded { task: id, state: task.state });
        }
        let instance = task.instance.as_ref().ok_or(Refusal::NotAnOrchestration(id))?;
        if instance.hold == Hold::Unstarted {
            return Err(orchestration::never_started(id));
        }
        Ok((instance.hold, task.state))
    }

    /// Blocks a paused orchestration that would have a turn.
    pub(in crate::model) fn block_if_paused(&mut self, id: TaskId) {
        let Some(state) = self.tasks.get(id).filter(|task| task.instance.is_some()).map(|task| task.state) else {
            return;
        };
        let stands = self.state_unless_paused(id, state);
        if stands != state {
            self.tasks.change(id, |task| task.state = stands);
        }
    }

    /// Returns the state that an orchestration enters instead of `state`: `Blocked` if it is
    /// paused.
    pub(in crate::model) fn state_unless_paused(&mut self, id: TaskId, state: TaskState) -> TaskState {
        let hold = self.instance(id).map(|instance| instance.hold).unwrap_or_default();
        if !orchestration::stands_aside(hold, state) {
            return state;
        }
        self.change_instance(id, |instance| instance.hold = Hold::PausedDue);
        TaskState::Blocked
    }
}
