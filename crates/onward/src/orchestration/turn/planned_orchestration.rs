//! Turns of orchestrations that run before the end of the task that leads to them is written.

use std::sync::Arc;

use onward_store::{AfterTurn, Message, MessageBody, TaskId, TaskState, Timestamp, Turn, Turned};

use super::instance::Instance;
use super::parked_instances::CheckIn;
use super::pending_turn::{PendingTurn, event_of};
use super::planned_turn::{Plan, PlannedCode, drop_code, unclaimed};
use super::run_turn::{after_turn, cancel_here, check_growth, take_cancels};
use crate::engine::Run;
use crate::orchestration::replay::{CodeOutcome, HistoryEvent};

/// An orchestration that has run a turn which is not written yet.
struct PlannedOrchestration {
    instance: Box<Instance>,
    check_in: CheckIn<Instance>,
    /// The operations of the submits.
    operations: Vec<Option<u64>>,
    /// The number of messages that have arrived with the report.
    received: u64,
}

/// Runs the turn to which a report leads, if its orchestration is parked here. Returns `None` if
/// the turn cannot be written with the end; the orchestration is replayed then.
pub(super) fn plan_orchestration(
    run: &Arc<Run>,
    task: TaskId,
    report: &MessageBody,
) -> Option<(Box<dyn PlannedCode>, Plan)> {
    let now = run.inner.clock.now();
    let may_plan = |instance: &Instance| {
        let context = instance.machine.replay_context();
        let plans = run.instances.plans.waiting_for(instance.open_tasks());
        instance.received.is_some() && context.due_timer(now).is_none() && plans.allows(&context.kind)
    };
    let (mut instance, check_in) = run.instances.orchestrations.check_out_for_plan(task, may_plan)?;
    let (kind, tasks) = (instance.machine.replay_context().kind.clone(), instance.open_tasks());
    let (generation, before) = (instance.generation, instance.received.unwrap_or_default());
    let from = (task, instance.machine.length());
    let planned = feed_report(&mut instance, before + 1, report, now)
        .and_then(|(pending, next)| turn(run, from, &mut instance, pending, next));
    let Some((turn, operations)) = planned else {
        run.instances.plans.waiting_for(tasks).failed(&kind);
        drop_code(|| drop(instance));
        return None;
    };
    check_in.submits(operations.iter().flatten().copied());
    let code = Box::new(PlannedOrchestration { instance, check_in, operations, received: before + 1 });
    Some((code, Plan { kind, turn, tasks, generation, received: before }))
}

/// Runs the code on the report. Returns `None` if the turn needs more than that: steps take time,
/// and only a turn with a lease of its own has that.
fn feed_report(
    instance: &mut Instance,
    number: u64,
    report: &MessageBody,
    now: Timestamp,
) -> Option<(PendingTurn, AfterTurn)> {
    let at = now.max(instance.machine.replay_context().now());
    let mut pending = PendingTurn::inherited(Vec::new());
    pending.consumed = number;
    let mut feed = |instance: &mut Instance, event: HistoryEvent| {
        let commands = instance.machine.feed(&event);
        pending.add(event, commands);
    };
    feed(instance, HistoryEvent::TurnBegan { at: at.as_microseconds() });
    let event = event_of(&Message { number, at, body: report.clone() });
    if let HistoryEvent::TaskEnded { operation, .. } = &event {
        instance.forget_task(*operation);
    }
    if instance.machine.accepts(&event) {
        feed(instance, event);
    }
    instance.machine.stop_if_stuck();
    if !instance.machine.replay_context().take_steps().is_empty() || instance.machine.outlives_its_code() {
        return None;
    }
    let next = after_turn(instance).ok()?;
    if instance.machine.outcome().is_some_and(CodeOutcome::is_end) {
        instance.machine.replay_context().unread().into_iter().for_each(|unread| feed(instance, unread));
    }
    Some((pending, next))
}

/// Returns the turn of a task from a length of its history, and the operations of its submits;
/// `None` if the history would grow too long.
fn turn(
    run: &Run,
    (task, length): (TaskId, u64),
    instance: &mut Instance,
    mut pending: PendingTurn,
    next: AfterTurn,
) -> Option<(Turn, Vec<Option<u64>>)> {
    let parks = matches!(next, AfterTurn::Park { .. });
    let cancels = take_cancels(instance, &mut pending);
    let turn = pending.write(unclaimed(task), length, cancels, next).ok()?;
    if parks && check_growth(&run.inner.settings, instance.bytes, &turn).is_err() {
        return None;
    }
    let context = instance.machine.replay_context();
    let (published, version) = (context.take_published(), Some(instance.version));
    let awaits = if parks { context.awaited_events() } else { Vec::new() };
    let turn = Turn { status: published.status, values: published.values, version, awaits, ..turn };
    Some((turn, pending.operations))
}

impl PlannedCode for PlannedOrchestration {
    fn settle(self: Box<Self>, run: &Run, turn: &Turn, turned: &Turned) -> bool {
        let Self { mut instance, check_in, operations, received } = *self;
        let bytes = turn.chunk.len() as u64;
        instance.bytes += bytes;
        for (operation, submitted) in operations.iter().zip(&turned.submitted) {
            operation.iter().for_each(|operation| instance.remember_task(*operation, submitted.id()));
        }
        let is_parked = matches!(turned.state, TaskState::Blocked | TaskState::Scheduled);
        instance.received = is_parked.then_some(received);
        cancel_here(run, &turn.cancels);
        let kind = instance.machine.replay_context().kind.clone();
        run.inner.telemetry.orchestrations.kind(&kind).wrote(turn.events, bytes);
        // An instance that has ended or begins again is of no further use.
        matches!(turn.next, AfterTurn::Park { .. }) && !turned.state.is_ended() && check_in.finish(instance)
    }
}
