//! Turns that run before the end of the task that leads to them is written.
//!
//! A worker that ends a task of an orchestration or a run in the instance cache feeds the end to it
//! at once. The end and the turn are then one write ([`Write::EndWithTurn`]). If the store writes
//! the end alone, the instance in memory has processed an event that its history does not have: it
//! is dropped, and the next turn replays the history.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use onward_store::rules::attempt::cut;
use onward_store::{
    AfterFailure, AttemptEnd, ClaimedTask, EndWithTurn, Lease, MessageBody, Name, SessionId, TaskId, TaskState, Turn,
    Turned, Write,
};

use super::planned_orchestration::plan_orchestration;
use super::telemetry::TurnOutcome;
use crate::dispatch::AttemptEnd as EngineEnd;
use crate::engine::Run;
use crate::workflow::plan_workflow_turn;

/// An instance that has run a turn which is not written yet.
pub(crate) trait PlannedCode: Send {
    /// Parks the instance, or drops it if it has ended, after its turn was written. Returns true if
    /// a turn or another end wanted the parked instance in the meantime.
    fn settle(self: Box<Self>, run: &Run, turn: &Turn, turned: &Turned) -> bool;
}

/// A turn that has run and is to be written with the end of a task.
pub(crate) struct PlannedTurn {
    /// `None` once the turn is settled.
    code: Option<Box<dyn PlannedCode>>,
    plan: Plan,
    /// The steady time at which the turn was planned.
    began: Duration,
}

/// The turn, and the position of its orchestration before it.
pub(crate) struct Plan {
    /// The kind of the orchestration.
    pub(crate) kind: Name,
    /// The turn, under an [`unclaimed`] lease.
    pub(crate) turn: Turn,
    /// The number of tasks for which the orchestration waited, as far as they are known.
    pub(crate) tasks: usize,
    /// The generation.
    pub(crate) generation: u32,
    /// The number of messages that had arrived.
    pub(crate) received: u64,
}

/// Returns the lease of a turn that the store claims itself: it sets the session and the claim.
pub(crate) fn unclaimed(task: TaskId) -> Lease {
    Lease { task, session: SessionId(0), claim: 0 }
}

impl std::fmt::Debug for PlannedTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlannedTurn").field("turn", &self.plan.turn).finish_non_exhaustive()
    }
}

impl PlannedTurn {
    /// Runs the turn to which the end of a task leads. Returns `None` if the end is to be written
    /// alone: its orchestration is not parked here, or the turn cannot be written with it.
    ///
    /// A task can end before the turn that submitted it has parked its orchestration: both follow
    /// from one commit, on two threads. The end waits for that.
    pub(crate) async fn plan(run: &Arc<Run>, task: &ClaimedTask, end: &EngineEnd) -> Option<Box<Self>> {
        let (parent, reference) = task.parent.zip(task.report)?;
        let end = stored(end)?;
        if let Some(until_parked) = run.instances.until_parked(parent, reference) {
            let _ = until_parked.await;
        }
        let report = report(reference, task.lease, end);
        let _slot = run.instances.free_slot()?;
        let began = run.inner.clock.steady();
        let planned = plan_orchestration(run, parent, &report).or_else(|| plan_workflow_turn(run, parent, report));
        planned.map(|(code, plan)| Box::new(Self { code: Some(code), plan, began }))
    }

    /// Returns the write of an end with the turn; `None` if no such end has a turn.
    pub(crate) fn write(&self, lease: Lease, end: &EngineEnd) -> Option<Write> {
        let Plan { turn, generation, received, .. } = &self.plan;
        let (turn, generation, received) = (turn.clone(), *generation, *received);
        Some(Write::EndWithTurn(Box::new(EndWithTurn { lease, end: stored(end)?, turn, generation, received })))
    }

    /// Keeps the instance if the turn was written, and drops it otherwise. Returns true if the
    /// orchestration may be claimed.
    pub(crate) fn settle(mut self: Box<Self>, run: &Run, turned: Option<&Turned>) -> bool {
        let Plan { kind, tasks, .. } = &self.plan;
        let plans = run.instances.plans.waiting_for(*tasks);
        let Some((turned, code)) = turned.zip(self.code.take()) else {
            plans.failed(kind);
            return true;
        };
        self.record(run, turned);
        let mut was_wanted = false;
        drop_code(|| was_wanted = code.settle(run, &self.plan.turn, turned));
        // Tasks that end together need one turn for all of them. If the first end is planned, it
        // has a turn of its own, and the others need a second one.
        if was_wanted && *tasks > 1 {
            plans.failed(kind)
        } else {
            plans.succeeded(kind)
        }
        !matches!(turned.state, TaskState::Blocked | TaskState::Scheduled)
    }

    /// Records a turn that was written in the counters and the metrics.
    fn record(&self, run: &Run, turned: &Turned) {
        let Plan { kind, turn, .. } = &self.plan;
        if turned.state.is_ended() {
            run.instances.count(turned.state);
            run.inner.telemetry.kind(kind).ended(turned.state);
        }
        // The orchestration may have been cancelled instead, because another one has taken its key.
        let is_cancelled = turned.state == TaskState::Cancelled;
        let outcome = if is_cancelled { TurnOutcome::Cancelled } else { TurnOutcome::of(&turn.next) };
        let took = run.inner.clock.steady().saturating_sub(self.began);
        run.inner.telemetry.orchestrations.kind(kind).turned(outcome, took);
    }
}

impl Drop for PlannedTurn {
    fn drop(&mut self) {
        let code = self.code.take();
        drop_code(|| drop(code));
    }
}

/// Calls a function that may drop the code of an orchestration, and catches its panic: destructors
/// are user code.
pub(super) fn drop_code(drops: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(drops));
}

/// Returns an end in the form that the store takes; `None` for an end after which no turn can be
/// planned.
fn stored(end: &EngineEnd) -> Option<AttemptEnd> {
    match end {
        EngineEnd::Complete(result) => Some(AttemptEnd::Complete { result: result.clone() }),
        EngineEnd::Fail { error, next: next @ (AfterFailure::Dead | AfterFailure::Fail) } => {
            Some(AttemptEnd::Fail { error: error.clone(), next: *next })
        }
        EngineEnd::ConfirmCancel(reason) => Some(AttemptEnd::ConfirmCancel { reason: reason.clone() }),
        _ => None,
    }
}

/// Returns the report that the store will make of the end of an attempt. It has the result even if
/// that is too large for the store's.
fn report(reference: u64, Lease { task, claim, .. }: Lease, end: AttemptEnd) -> MessageBody {
    let state = end.state().unwrap_or(TaskState::Completed);
    let (result, error) = match end {
        AttemptEnd::Complete { result } => (result, None),
        AttemptEnd::Fail { error, .. } | AttemptEnd::ConfirmCancel { reason: error } => {
            (None, Some(cut(error, onward_store::bounds::ERROR_BYTES)))
        }
    };
    MessageBody::Ended { reference, task, state, result, error, attempts: claim, omitted: None }
}
