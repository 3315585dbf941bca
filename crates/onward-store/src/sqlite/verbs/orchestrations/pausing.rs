//! Pauses and resumes single orchestrations.

use rusqlite::params;

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::orchestration::Hold;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::rules::orchestration;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};
use crate::sqlite::verbs::orchestrations::messages::InstanceRow;

impl Transaction<'_> {
    /// Pauses an orchestration. It has no turn until it is resumed; messages are queued.
    pub(in crate::sqlite) fn pause_orchestration(&mut self, task: TaskId) -> VerbResult<Outcome> {
        let (live, row) = self.live_orchestration(task)?;
        if row.hold.is_paused() {
            return Ok(Outcome::Done);
        }
        let hold = orchestration::paused(live.state());
        self.set_hold(task, hold)?;
        if hold == Hold::PausedDue {
            self.leave_list(&live.entry())?;
            self.connection.prepare_cached("UPDATE task SET scheduled = 2 WHERE id = ?")?.execute([task.0])?;
            let blocked = LiveTask { blocked: true, scheduled: false, ..live };
            self.enter_list(&blocked.entry())?;
            self.log(task, blocked.sub_queue, Change::Blocked);
        }
        Ok(Outcome::Done)
    }

    /// Resumes an orchestration. It has a turn at once if a message has arrived.
    pub(in crate::sqlite) fn resume_orchestration(&mut self, task: TaskId) -> VerbResult<Outcome> {
        let (live, row) = self.live_orchestration(task)?;
        if !row.hold.is_paused() {
            return Ok(Outcome::Done);
        }
        self.set_hold(task, Hold::None)?;
        if live.state() == TaskState::Blocked && row.length > 0 && self.has_messages(task)? {
            self.wake(&live)?;
        } else if row.hold == Hold::PausedDue {
            self.unblock(&live)?;
        }
        Ok(Outcome::Done)
    }

    /// Returns a live orchestration that has been started, or the refusal.
    fn live_orchestration(&self, task: TaskId) -> VerbResult<(LiveTask, InstanceRow)> {
        let live = self.live_or_refuse(task)?;
        if !live.options.orchestration {
            return Err(Refusal::NotAnOrchestration(task).into());
        }
        let row = self.instance(task)?;
        if row.hold == Hold::Unstarted {
            return Err(orchestration::never_started(task).into());
        }
        Ok((live, row))
    }

    /// Writes the reason why an orchestration has no turns, if any.
    pub(super) fn set_hold(&self, task: TaskId, hold: Hold) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE instance SET hold = ? WHERE task = ?")?
            .execute(params![hold.code(), task.0])?;
        Ok(())
    }

    /// Returns true if an orchestration stays blocked instead of changing to `state`, because it is
    /// paused. Then records that it is due when it is resumed.
    pub(in crate::sqlite::verbs) fn stands_aside(&self, task: &LiveTask, state: TaskState) -> Result<bool> {
        if !task.options.orchestration {
            return Ok(false);
        }
        let hold = self.instance(task.id)?.hold;
        self.is_put_aside(task.id, hold, state)
    }

    /// Returns the result of [`stands_aside`](Self::stands_aside) for an orchestration whose hold
    /// is known.
    pub(in crate::sqlite::verbs) fn is_put_aside(&self, task: TaskId, hold: Hold, state: TaskState) -> Result<bool> {
        let stands_aside = orchestration::stands_aside(hold, state);
        if stands_aside {
            self.set_hold(task, Hold::PausedDue)?;
        }
        Ok(stands_aside)
    }
}
