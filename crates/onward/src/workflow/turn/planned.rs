//! Turns of runs that are decided before the end of the task that leads to them is written.

use std::sync::Arc;

use onward_store::{AfterTurn, MessageBody, TaskId, Turn, Turned};

use super::instance::RunInstance;
use super::payload::run_kind;
use super::results::ReadResults;
use super::run_turn::{Pending, RunTurn};
use super::written::WrittenTurn;
use crate::engine::Run;
use crate::orchestration::{Plan, PlannedCode, unclaimed};
use crate::workflow::run::{Advanced, Arrival};

/// A run that has decided a turn which is not written yet.
struct PlannedRun {
    instance: Box<RunInstance>,
    written: WrittenTurn,
}

impl PlannedCode for PlannedRun {
    fn settle(self: Box<Self>, run: &Run, _: &Turn, turned: &Turned) -> bool {
        self.written.conclude(run, self.instance, turned)
    }
}

/// Decides the turn to which a report leads, if its run is parked here. Returns `None` if the turn
/// cannot be written with the end.
pub(crate) fn plan_turn(run: &Arc<Run>, task: TaskId, report: MessageBody) -> Option<(Box<dyn PlannedCode>, Plan)> {
    let now = run.inner.clock.now();
    let may_plan = |instance: &RunInstance| {
        let kind = run_kind(&instance.context.facts.name);
        let plans = run.instances.plans.waiting_for(instance.children.open());
        instance.received.is_some() && !instance.is_due(now) && kind.is_ok_and(|kind| plans.allows(&kind))
    };
    let (instance, check_in) = run.instances.workflows.check_out_for_plan(task, may_plan)?;
    let (generation, before) = (instance.generation, instance.received.unwrap_or_default());
    let (kind, tasks) = (run_kind(&instance.context.facts.name).ok()?, instance.children.open());
    let pending = Pending::consuming(before + 1);
    let mut turn = RunTurn { run, lease: unclaimed(task), instance, now, pending };
    let arrival = turn.arrival(report)?;
    if !decide(&mut turn, arrival) {
        // Nothing was decided: the turn that is claimed for the report continues with the instance.
        check_in.finish(turn.instance);
        return None;
    }
    let Some(written) = decide_moments(&mut turn) else {
        run.instances.plans.waiting_for(tasks).failed(&kind);
        return None;
    };
    let check_in = matches!(written.next, AfterTurn::Park { .. }).then_some(check_in);
    let effects = turn.later_effects();
    if let Some(check_in) = &check_in {
        check_in.submits(effects.references.iter().copied());
    }
    let code =
        PlannedRun { written: WrittenTurn::of(&written, effects, before + 1, check_in), instance: turn.instance };
    Some((Box::new(code), Plan { kind, turn: written, tasks, generation, received: before }))
}

/// Decides about an arrival. Returns false, and changes nothing, if results have to be read first.
fn decide(turn: &mut RunTurn<'_>, arrival: Arrival) -> bool {
    match turn.decide(arrival, &ReadResults::default()) {
        Advanced::Decided(decision) => {
            turn.add(decision);
            true
        }
        Advanced::Needs(_) => false,
    }
}

/// Decides about the moments that have come, and returns the turn. Returns `None` if results have
/// to be read, or if the run is dead.
fn decide_moments(turn: &mut RunTurn<'_>) -> Option<Turn> {
    while turn.is_moment_due() {
        if !decide(turn, Arrival::Moment) {
            return None;
        }
    }
    turn.turn().ok()
}
