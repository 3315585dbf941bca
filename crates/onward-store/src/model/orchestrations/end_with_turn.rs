//! An end of an attempt together with the turn that follows from it, in one write.

use crate::api::orchestration::{AttemptEnd, EndWithTurn, Ended, Turn, Turned};
use crate::api::outcome::{Failed, Outcome, Refusal};
use crate::api::task::{Lease, SessionId, TaskId};
use crate::model::limits::headroom::Headroom;
use crate::model::state::State;
use crate::rules::orchestration::{self, BeforeReport};

impl State {
    /// Ends an attempt, and applies the planned turn of its orchestration if the state and the
    /// messages are as planned. Otherwise it applies only the end, and the orchestration is claimed
    /// for its turn as usual.
    pub(in crate::model) fn end_with_turn(&mut self, write: EndWithTurn) -> Result<Outcome, Refusal> {
        let is_as_planned = self.is_as_planned(&write);
        let EndWithTurn { lease, end, turn, received, .. } = write;
        let planned = end.state().filter(|_| is_as_planned);
        let Failed { state, lease: next } = self.end_as(lease, end)?;
        // Up to here the end is a write of its own, so its effects are complete before the turn
        // begins.
        self.propagate_ends();
        let turned = if planned == Some(state) {
            self.turn_with_report(lease.session, Turn { consumed: received + 1, ..turn })?
        } else {
            None
        };
        Ok(Outcome::Ended(Ended { state, lease: next, turned }))
    }

    /// Applies the end as its own write would.
    fn end_as(&mut self, lease: Lease, end: AttemptEnd) -> Result<Failed, Refusal> {
        let outcome = match end {
            AttemptEnd::Complete { result } => self.complete(lease, result)?,
            AttemptEnd::Fail { error, next } => self.fail(lease, error, next)?,
            AttemptEnd::ConfirmCancel { reason } => self.confirm_cancel(lease, reason)?,
        };
        if let Outcome::Failed(failed) = outcome {
            return Ok(failed);
        }
        let state = self.existing(lease.task)?.state;
        Ok(Failed { state, lease: None })
    }

    /// Returns whether the orchestration is in the state for which the turn was planned.
    fn is_as_planned(&self, write: &EndWithTurn) -> bool {
        let id = write.turn.lease.task;
        let reports_to = self.tasks.get(write.lease.task).filter(|task| task.new.report.is_some());
        let Some(task) = self.tasks.get(id).filter(|_| reports_to.and_then(|task| task.new.parent) == Some(id)) else {
            return false;
        };
        task.instance.as_ref().is_some_and(|instance| {
            let before = BeforeReport {
                state: task.state,
                run_at: task.run_at,
                hold: instance.hold,
                generation: instance.generation,
                length: instance.length,
                received: instance.received,
            };
            orchestration::stands_as_planned(write, before, self.now.wall)
        })
    }

    /// Writes the turn of an orchestration that was woken, as if a session had claimed it for that.
    /// Returns `None` if another message came besides the report, if the session could not claim
    /// it, or if the turn would be rejected.
    fn turn_with_report(&mut self, session: SessionId, turn: Turn) -> Result<Option<Turned>, Refusal> {
        let id = turn.lease.task;
        if self.instance(id).is_none_or(|instance| instance.received != turn.consumed) {
            return Ok(None);
        }
        let Ok(tags) = self.check_turn(&turn) else { return Ok(None) };
        let Some(lease) = self.claim_for_turn(id, session) else { return Ok(None) };
        self.write_turn(Turn { lease, ..turn }, tags).map(Some)
    }

    /// Claims a waiting orchestration for a session, if the session could claim it.
    fn claim_for_turn(&mut self, id: TaskId, session: SessionId) -> Option<Lease> {
        let now = self.now;
        let mut headroom = Headroom::at(self, now.steady);
        let task = self.tasks.get(id)?;
        let is_for_another = self.reservation(task, now.wall).is_some_and(|(preferred, _)| preferred != session);
        if is_for_another || task.has_expired(now.wall) || self.is_paused(task) || !headroom.allows(self, task) {
            return None;
        }
        if self.are_shared() {
            self.charge(id);
        }
        self.note_preferred_session(id, session);
        let lease = self.start(id, session)?.lease;
        if let Some(task) = self.tasks.get(id) {
            headroom.start(self, task);
        }
        headroom.take_tokens(self);
        Some(lease)
    }
}
