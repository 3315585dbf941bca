//! Interventions of operators in tasks that do not run: run now, kill, delete.

use rusqlite::params;

use crate::api::error::Result;
use crate::api::orchestration::Hold;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::rules::order;
use crate::rules::{intervene, orchestration};
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};

impl Transaction<'_> {
    /// Makes a scheduled task due now.
    pub(in crate::sqlite) fn run_now(&mut self, task: TaskId) -> VerbResult<Outcome> {
        let live = self.live_or_refuse(task)?;
        intervene::run_now(task, self.standing_of(&live)?)?;
        if live.options.orchestration && self.instance(task)?.hold == Hold::Unstarted {
            return Err(orchestration::never_started(task).into());
        }
        if live.state() == TaskState::Scheduled {
            self.make_due(&live)?;
        }
        Ok(Outcome::Done)
    }

    /// Moves a scheduled task to its ready list.
    fn make_due(&mut self, task: &LiveTask) -> Result<()> {
        let run_at = task.run_at.min(self.now.as_microseconds());
        self.cache.index.remove_scheduled(self.connection, task.run_at, task.id.0, task.sub_queue)?;
        self.connection
            .prepare_cached("UPDATE task SET scheduled = 0, run_at = ? WHERE id = ?")?
            .execute(params![run_at, task.id.0])?;
        let sort_key = order::sort_key(task.priority, Timestamp::from_microseconds(run_at), task.id);
        self.enter_list_when_due(task.scheduled_list(), sort_key)?;
        self.hint.work += 1;
        Ok(())
    }

    /// Ends a task that does not run as a dead letter.
    pub(in crate::sqlite) fn kill(&mut self, task: TaskId) -> VerbResult<Outcome> {
        let live = self.live_or_refuse(task)?;
        intervene::kill(task, self.standing_of(&live)?)?;
        self.record_error(&live, live.attempts, intervene::KILLED)?;
        self.end_unheld(&live, TaskState::Dead)?;
        Ok(Outcome::Done)
    }

    /// Removes a task that does not run.
    pub(in crate::sqlite) fn delete(&mut self, task: TaskId) -> VerbResult<Outcome> {
        let state = match self.live(task)? {
            Some(live) => Some(self.standing_of(&live)?),
            None => self.ended_state(task)?,
        };
        intervene::delete(task, state.ok_or(Refusal::TaskNotFound(task))?)?;
        self.remove_without_trace(task)?;
        Ok(Outcome::Done)
    }
}
