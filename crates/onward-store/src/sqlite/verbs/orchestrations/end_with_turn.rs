//! An end of an attempt together with the turn that follows from it, in one write.

use crate::api::error::Result;
use crate::api::orchestration::{AttemptEnd, EndWithTurn, Ended, Turn, Turned};
use crate::api::outcome::{Failed, Outcome};
use crate::api::task::{Lease, SessionId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::rules::orchestration::{self, BeforeReport};
use crate::sqlite::commit::names::FIRST_GROUPED;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbError, VerbResult};

impl Transaction<'_> {
    /// Ends an attempt, and applies the planned turn of its orchestration if the state and the
    /// messages are as planned. Otherwise it applies only the end, and the orchestration is claimed
    /// for its turn as usual.
    pub(in crate::sqlite) fn end_with_turn(&mut self, write: &EndWithTurn) -> VerbResult<Outcome> {
        let is_as_planned = self.is_as_planned(write)?;
        let Failed { state, lease } = self.end_as(write)?;
        // Up to here the end is a write of its own, so its effects are complete before the turn
        // begins.
        self.flush_completions()?;
        self.settle()?;
        let turned =
            if is_as_planned && write.end.state() == Some(state) { self.turn_with_report(write)? } else { None };
        Ok(Outcome::Ended(Ended { state, lease, turned }))
    }

    /// Applies the end as its own write would.
    fn end_as(&mut self, write: &EndWithTurn) -> VerbResult<Failed> {
        let (outcome, state) = match &write.end {
            AttemptEnd::Complete { result } => (self.complete(write.lease, result.as_ref())?, TaskState::Completed),
            AttemptEnd::Fail { error, next } => (self.fail(write.lease, error, *next)?, TaskState::Failed),
            AttemptEnd::ConfirmCancel { reason } => (self.confirm_cancel(write.lease, reason)?, TaskState::Cancelled),
        };
        Ok(if let Outcome::Failed(failed) = outcome { failed } else { Failed { state, lease: None } })
    }

    /// Returns true if the orchestration is in the state for which the turn was planned.
    fn is_as_planned(&self, write: &EndWithTurn) -> Result<bool> {
        let id = write.turn.lease.task;
        let reports = |task: LiveTask| task.options.report.is_some() && task.options.parent == Some(id);
        if !self.live(write.lease.task)?.is_some_and(reports) {
            return Ok(false);
        }
        let Some(task) = self.live_or_idle(id)?.filter(|task| task.options.orchestration) else { return Ok(false) };
        let row = self.instance(id)?;
        let before = BeforeReport {
            state: task.state(),
            run_at: Timestamp::from_microseconds(task.run_at),
            hold: row.hold,
            generation: row.generation,
            length: row.length,
            received: row.received,
        };
        Ok(orchestration::stands_as_planned(write, before, self.now))
    }

    /// Writes the turn of an orchestration that was woken, as if a session had claimed it for that.
    /// Returns `None` if another message came besides the report, if the session could not claim
    /// it, or if the turn would be rejected.
    fn turn_with_report(&mut self, write: &EndWithTurn) -> VerbResult<Option<Turned>> {
        let turn = Turn { consumed: write.received + 1, ..write.turn.clone() };
        let Some(task) = self.live_or_idle(turn.lease.task)? else { return Ok(None) };
        let row = self.instance(task.id)?;
        if row.received != turn.consumed {
            return Ok(None);
        }
        let tags = match self.check_turn(&task, row, &turn) {
            Ok(tags) => tags,
            Err(VerbError::Refused(_)) => return Ok(None),
            Err(failed) => return Err(failed),
        };
        let Some(lease) = self.claim_for_turn(&task, write.lease.session)? else { return Ok(None) };
        let (task, running) = self.running_under(lease)?;
        self.write_turn(&task, (running, row.hold), &Turn { lease, ..turn }, tags).map(Some)
    }

    /// Claims a waiting orchestration for a session, if neither its expiry nor a limit prevents it.
    fn claim_for_turn(&mut self, task: &LiveTask, session: SessionId) -> Result<Option<Lease>> {
        let has_expired = task.expires_at.is_some_and(|at| at <= self.now.as_microseconds());
        if has_expired || !self.may_start(task.sub_queue)? {
            return Ok(None);
        }
        let list = self.cache.list_of(self.connection, task.sub_queue, task.options.affinity.as_ref())?;
        let reserved = self.cache.reservation(self.connection, list, self.now)?;
        if reserved.is_some_and(|(preferred, _)| preferred != session) {
            return Ok(None);
        }
        let sort_key = task.entry().sort_key();
        if list >= FIRST_GROUPED {
            self.start_from_list(session, list, sort_key)?;
        } else {
            if self.cache.limits.fair_shares.are_shared() {
                self.charge(list)?;
            }
            self.cache.index.remove_ready_to_start(self.connection, list, sort_key)?;
        }
        let started = self.start(session, &[sort_key])?;
        self.refresh_affinity_lists()?;
        Ok(started.first().map(|task| task.lease))
    }

    /// Returns true if neither a pause nor a limit blocks the tasks of a sub-queue.
    fn may_start(&mut self, list: i64) -> Result<bool> {
        let now = self.steady_time();
        let Some(sub_queue) = self.cache.names.sub_queue(list) else { return Ok(false) };
        let is_full = self.cache.queues.room(sub_queue.queue) == Some(0);
        if is_full || self.cache.pauses.holds(&sub_queue.queue_name, &sub_queue.kind_name) {
            return Ok(false);
        }
        let has_no_room = |scope| self.cache.limits.usage(scope).is_some_and(|usage| usage.room(now) == 0);
        if self.scopes_of(list).into_iter().flatten().any(has_no_room) {
            return Ok(false);
        }
        let Some(group) = self.cache.names.group_of(list) else { return Ok(true) };
        let state = self.cache.limits.group(self.connection, group)?;
        Ok(state.usage.room(now) > 0 && !self.cache.pauses.group_is_paused(&state.name))
    }
}
