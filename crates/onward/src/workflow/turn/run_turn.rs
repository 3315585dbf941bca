//! One turn of a run: arrivals are processed, and the decisions are written at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use onward_store::{
    AfterTurn, ChildTask, ClaimedTask, Lease, Message, MessageBody, Name, NewTask, StoreReads, TaskId, Timestamp, Turn,
    bounds as store_bounds,
};
use serde::Deserialize;

use super::growth::check_growth;
use super::instance::{RunInstance, fold_all, read_history, read_run};
use super::payload::{RunPayload, RunSource, UndoPayload, run_kind};
use super::results::ReadResults;
use super::templates::reference;
use super::written::{LaterEffects, WrittenTurn};
use crate::bounds;
use crate::engine::Run;
use crate::orchestration::{TurnAbort, TurnOutcome, TurnSlot, apply_turn};
use crate::workflow::client::{ACTION_SIGNAL, PublishedEvent, decode_action, run_status};
use crate::workflow::run::{
    Advanced, Arrival, Decision, Effects, Fork, Published, RUN_KIND_PREFIX, ReportedResult, Room, RunEvent, RunLimits,
    RunNext, StepState, advance, encode, plan_fork,
};
use crate::workflow::template::{Delivery, StepAction};

/// The beginning of the kinds of tasks that deliver events. The name of the event follows.
pub(crate) const EVENT_KIND_PREFIX: &str = "event:";

/// The outcome of a turn, and the check-in of its run if that is parked.
type ClosedTurn = Result<TurnOutcome, (TurnAbort, u64)>;

/// Runs a turn of a claimed run.
///
/// # Errors
/// The reason why nothing was written, with the length of the history.
pub(crate) async fn run_turn(run: &Arc<Run>, mut task: ClaimedTask, slot: TurnSlot) -> ClosedTurn {
    let length = task.instance.as_ref().map_or(0, |it| it.length);
    let messages = task.instance.as_mut().map_or_else(Vec::new, |it| std::mem::take(&mut it.messages));
    // The store's clock may be ahead of this one: a task that it considers due is due.
    let now = run.inner.clock.now().max(task.run_at);
    let instance = load(run, &task).await.map_err(|abort| (abort, length))?;
    let received = task.instance.as_ref().map_or(0, |it| it.received);
    let pending = Pending { received, ..Pending::default() };
    let turn = RunTurn { run, lease: task.lease, instance, now, pending };
    turn.finish(messages, slot).await.map_err(|abort| (abort, length))
}

async fn load(run: &Run, task: &ClaimedTask) -> Result<Box<RunInstance>, TurnAbort> {
    let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
    if let Some(instance) = run.instances.workflows.check_out(task.lease.task, generation, length).await {
        return Ok(instance);
    }
    let store = &*run.inner.store;
    let source = RunSource::read(store, task.lease.task, task.submitted_at, &task.payload).await;
    let source = source.map_err(|error| unless_invalid(&error))?;
    let payload = &source.payload;
    let program = run.inner.templates.program(store, payload.template, payload.environment.as_deref()).await;
    let program = program.map_err(|error| unless_invalid(&error))?.ok_or_else(|| {
        TurnAbort::GiveBack(
            run.instances.missing_code.pause(task.lease.task),
            format!("this engine and its store do not have the template {} of the run", payload.template),
        )
    })?;
    if length == 0 {
        // The input of a run below another one was not checked before.
        program.check_input(payload.input.clone()).map_err(|error| TurnAbort::Fail(error.to_string()))?;
    }
    let mut instance = Box::new(RunInstance::new(task, source, &program));
    match instance.replay(store, task.lease.task).await {
        Ok(()) => Ok(instance),
        Err(error) => Err(unless_invalid(&error)),
    }
}

/// Releases the run after a fault of the store, to be tried again. Any other fault would recur.
fn unless_invalid(error: &crate::Error) -> TurnAbort {
    if error.is_invalid() { TurnAbort::Dead(error.to_string()) } else { give_back(error) }
}

fn give_back(error: &crate::Error) -> TurnAbort {
    TurnAbort::GiveBack(bounds::STORE_RETRY_LONGEST, error.to_string())
}

/// A running turn.
pub(super) struct RunTurn<'a> {
    pub(super) run: &'a Arc<Run>,
    pub(super) lease: Lease,
    pub(super) instance: Box<RunInstance>,
    pub(super) now: Timestamp,
    pub(super) pending: Pending,
}

/// Everything that the turn has decided so far.
#[derive(Default)]
pub(super) struct Pending {
    events: Vec<RunEvent>,
    effects: Effects,
    /// The positions of published events in the history.
    publishes: Vec<u64>,
    consumed: u64,
    /// The number of messages that have arrived, as far as the turn knows.
    received: u64,
    next: Option<RunNext>,
}

impl Pending {
    /// Returns the decisions of a turn that consumes the messages up to a number.
    pub(super) fn consuming(consumed: u64) -> Self {
        Self { consumed, ..Self::default() }
    }
}

impl RunTurn<'_> {
    async fn finish(mut self, messages: Vec<Message>, slot: TurnSlot) -> Result<TurnOutcome, TurnAbort> {
        self.process_arrivals(messages).await?;
        let turn = self.turn()?;
        let outcome = TurnOutcome::of(&turn.next);
        let effects = self.later_effects();
        // Announced before the write: the next turn may be claimed by the same commit, and waits
        // for this instance.
        let check_in = matches!(turn.next, AfterTurn::Park { .. })
            .then(|| self.run.instances.workflows.begin_check_in(self.lease.task));
        if let Some(check_in) = &check_in {
            check_in.submits(effects.references.iter().copied());
        }
        // Other turns may run during this write, and the same commit claims them.
        drop(slot);
        let received = self.pending.received.max(turn.consumed);
        let written = WrittenTurn::of(&turn, effects, received, check_in);
        let turned = apply_turn(self.run, turn).await?;
        if turned.state.is_ended() {
            self.run.instances.count(turned.state);
            let kind = run_kind(&self.instance.context.facts.name);
            kind.iter().for_each(|kind| self.run.inner.telemetry.kind(kind).ended(turned.state));
        }
        written.conclude(self.run, self.instance, &turned);
        Ok(outcome)
    }

    /// Processes the start or the messages, and then the moments that have come.
    async fn process_arrivals(&mut self, messages: Vec<Message>) -> Result<(), TurnAbort> {
        match self.instance.undoes.filter(|_| self.instance.length == 0) {
            Some(original) => self.undo_run(original).await?,
            None if self.instance.length == 0 => match self.instance.payload.fork.clone() {
                Some(fork) => self.take_over(&fork).await?,
                None => self.advance(Arrival::Start).await?,
            },
            None => {}
        }
        for message in messages {
            // Messages behind the end stay in the store, where a retry of the run finds them, and
            // those that the turn has no room for wait for the next one.
            if self.has_ended() || Room::behind(&self.pending.effects).is_small() {
                return Ok(());
            }
            self.pending.consumed = message.number;
            match self.arrival(message.body) {
                Some(arrival) => self.advance(arrival).await?,
                None => tracing::warn!(run = self.lease.task.0, "an action that this version does not know is dropped"),
            }
        }
        while self.is_moment_due() {
            self.advance(Arrival::Moment).await?;
        }
        if self.pending.next.is_none() {
            // Nothing arrived, for example after a lost reply. A moment that has not come decides
            // nothing.
            self.advance(Arrival::Moment).await?;
        }
        Ok(())
    }

    /// Begins as a copy of a run that has ended, and undoes it.
    async fn undo_run(&mut self, original: TaskId) -> Result<(), TurnAbort> {
        let store = &*self.run.inner.store;
        let length =
            store.instance(original).await.map_err(|error| give_back(&error.into()))?.map_or(0, |it| it.length);
        let read = read_history(store, original, length).await;
        let (events, _) = read.map_err(|error| unless_invalid(&error))?;
        let instance = &mut *self.instance;
        fold_all(&mut instance.state, &instance.context, &events).map_err(|error| unless_invalid(&error))?;
        self.pending.events = events;
        self.advance(Arrival::UndoOfRun { run: original }).await
    }

    /// Begins with the results of another run, for the steps that do not run again.
    async fn take_over(&mut self, fork: &Fork) -> Result<(), TurnAbort> {
        let templates = &self.run.inner.templates;
        let origin = match fork.run {
            Some(run) => {
                Some(read_run(templates, &*self.run.inner.store, run).await.map_err(|error| unless_invalid(&error))?)
            }
            None => None,
        };
        let origin = origin.as_ref().map(|(context, state)| (&**context, state));
        let at = self.now.as_microseconds();
        let events = plan_fork(origin, &self.instance.context.template, fork, at).map_err(TurnAbort::Dead)?;
        self.advance(Arrival::Fork { run: fork.run, events }).await
    }

    /// Returns the arrival of a message, or `None` if the message is not for a run.
    pub(super) fn arrival(&mut self, body: MessageBody) -> Option<Arrival> {
        if let MessageBody::Ended { reference, .. } = &body {
            self.instance.children.remove(*reference);
        }
        arrival_of(body)
    }

    /// Returns true if the run has not ended and one of its moments has come.
    pub(super) fn is_moment_due(&self) -> bool {
        !self.has_ended() && self.instance.is_due(self.now)
    }

    /// Returns true if an arrival of this turn ended the run. The run may have ended before, too:
    /// it was retried, and an action follows.
    fn has_ended(&self) -> bool {
        use RunNext::{Cancelled, Complete, Dead, Fail};
        matches!(self.pending.next, Some(Complete { .. } | Fail { .. } | Dead { .. } | Cancelled { .. }))
    }

    /// Decides about one arrival. Reads the results that the decision needs.
    async fn advance(&mut self, arrival: Arrival) -> Result<(), TurnAbort> {
        let mut results = ReadResults::default();
        loop {
            match self.decide(arrival.clone(), &results) {
                Advanced::Decided(decision) => {
                    self.add(decision);
                    return Ok(());
                }
                Advanced::Needs(tasks) => {
                    let read = results.read(&*self.run.inner.store, tasks).await;
                    read.map_err(|error| unless_invalid(&error))?;
                }
            }
        }
    }

    /// Returns the decision about an arrival, without applying it.
    pub(super) fn decide(&self, arrival: Arrival, results: &ReadResults) -> Advanced {
        let room = Room::behind(&self.pending.effects);
        advance(&self.instance.context, &self.instance.state, self.now, arrival, (results, room))
    }

    /// Applies a decision.
    pub(super) fn add(&mut self, decision: Decision) {
        let instance = &mut *self.instance;
        decision.events.iter().for_each(|event| instance.state.fold(&instance.context, event));
        let first = instance.length + self.pending.events.len() as u64;
        let positions = (first..).zip(&decision.events);
        let published = positions.filter(|(_, event)| matches!(event, RunEvent::Published { .. }));
        self.pending.publishes.extend(published.map(|(position, _)| position));
        self.pending.events.extend(decision.events);
        append(&mut self.pending.effects, decision.effects);
        self.pending.next = Some(decision.next);
    }
}

/// Writing.
impl RunTurn<'_> {
    /// Returns the write of everything that was decided.
    pub(super) fn turn(&mut self) -> Result<Turn, TurnAbort> {
        let moment = self.instance.state.next_moment(&self.instance.context);
        let next = self.pending.next.take().unwrap_or(RunNext::Wait { until: moment });
        let chunk = encode(&self.pending.events);
        let (cancels, withdraws) = self.unwanted();
        let submits = self.submits()?;
        let status = run_status(&self.instance.context, &self.instance.state);
        let turn = Turn {
            events: self.pending.events.len() as u64,
            chunk: chunk.into(),
            consumed: self.pending.consumed,
            status: Some(status),
            awaits: awaited_signals(&self.instance),
            submits,
            cancels,
            withdraws,
            publishes: std::mem::take(&mut self.pending.publishes),
            leaves_unread: true,
            ..Turn::new(self.lease, self.instance.length, after(next))
        };
        check_growth(&self.run.inner.settings, self.instance.bytes, &turn)?;
        Ok(turn)
    }

    /// Returns the effects of the turn that follow its commit.
    pub(super) fn later_effects(&self) -> LaterEffects {
        let effects = &self.pending.effects;
        let references = effects.submits.iter().map(|step| step.reference).collect();
        let has_listeners = self.run.inner.live_events.has_listeners();
        let live = effects.publishes.iter().filter(|event| has_listeners && event.delivery == Delivery::Live);
        LaterEffects { references, live: live.map(|event| self.published(event)).collect() }
    }

    fn published(&self, event: &Published) -> PublishedEvent {
        PublishedEvent {
            cursor: None,
            at: self.now,
            run: self.lease.task,
            workflow: self.instance.context.facts.name.clone(),
            name: event.name.clone(),
            payload: serde_json::from_slice(&event.payload).unwrap_or_default(),
        }
    }

    /// Returns the tasks of the steps that start, as children of the run.
    fn submits(&mut self) -> Result<Vec<NewTask>, TurnAbort> {
        let mut submits = Vec::with_capacity(self.pending.effects.submits.len());
        for step in &self.pending.effects.submits {
            let mut task = step.task.clone();
            if task.kind.starts_with(RUN_KIND_PREFIX) {
                self.start_below(&mut task)?;
            }
            task.parent = Some(self.lease.task);
            task.report = Some(step.reference);
            submits.push(task);
        }
        for event in &self.pending.effects.publishes {
            submits.extend(event_task(event).map_err(|error| TurnAbort::Dead(error.to_string()))?);
        }
        Ok(submits)
    }

    /// Makes a task the run of a pinned template, whose input is the payload.
    fn start_below(&self, task: &mut NewTask) -> Result<(), TurnAbort> {
        let above = &self.instance.payload;
        let below: ChildRunPayload = serde_json::from_slice(&task.payload)
            .map_err(|error| TurnAbort::Dead(format!("the payload of a workflow step cannot be read: {error}")))?;
        if let Some(undo) = below.undo {
            task.payload = UndoPayload { undo }.write().map_err(|error| TurnAbort::Dead(error.to_string()))?.into();
            return Ok(());
        }
        let workflow = reference(&below.workflow, below.version.as_deref());
        let Some(template) = above.workflows.get(&workflow) else {
            return Err(TurnAbort::Dead(format!("the run does not pin the template `{workflow}` of a step")));
        };
        if above.depth >= bounds::RUN_DEPTH {
            return Err(TurnAbort::Dead(format!(
                "the run is {} levels below the first one, and a step runs `{workflow}` below it; the limit is {}: end the recursion \
                 with an `if`",
                above.depth,
                bounds::RUN_DEPTH
            )));
        }
        let payload = RunPayload {
            template: *template,
            workflows: above.workflows.clone(),
            environment: above.environment.clone(),
            key: None,
            fork: None,
            depth: above.depth.saturating_add(1),
            limits: below.limits,
            input: below.input,
        };
        task.payload = payload.write().map_err(|error| TurnAbort::Dead(error.to_string()))?.into();
        Ok(())
    }

    /// Returns the tasks to cancel and those to withdraw. A task that this turn would submit is not
    /// submitted instead.
    fn unwanted(&mut self) -> (Vec<ChildTask>, Vec<ChildTask>) {
        let children = &self.instance.children;
        let Effects { submits, cancels, withdraws, .. } = &mut self.pending.effects;
        let mut take = |references: &mut Vec<u64>| -> Vec<ChildTask> {
            let mut named = Vec::with_capacity(references.len());
            for reference in references.drain(..) {
                match submits.iter().position(|step| step.reference == reference) {
                    Some(place) => drop(submits.remove(place)),
                    None => named.push(children.child(reference)),
                }
            }
            named
        };
        (take(cancels), take(withdraws))
    }
}

/// Returns the arrival of a message, or `None` if the message is not for a run.
fn arrival_of(body: MessageBody) -> Option<Arrival> {
    match body {
        MessageBody::Ended { reference, task, state, result, error, attempts, omitted } => {
            let result = match (result, omitted) {
                (Some(result), _) => ReportedResult::Value(result),
                (None, Some(bytes)) => ReportedResult::Omitted { bytes },
                (None, None) => ReportedResult::None,
            };
            Some(Arrival::StepEnded { reference, task, state, result, error, attempts })
        }
        MessageBody::NotStarted { reference, existing } => Some(Arrival::NotStarted { reference, existing }),
        MessageBody::Signal { name, payload } if *name == *ACTION_SIGNAL => {
            decode_action(&payload).map(Arrival::Action)
        }
        MessageBody::Signal { name, payload } => Some(Arrival::Signal { name, payload }),
        MessageBody::Cancel => Some(Arrival::Cancel),
    }
}

fn after(next: RunNext) -> AfterTurn {
    match next {
        RunNext::Wait { until } => AfterTurn::Park { until },
        RunNext::Held => AfterTurn::Park { until: None },
        RunNext::Complete { result } => AfterTurn::Complete { result },
        RunNext::Fail { error } => AfterTurn::Fail { error },
        RunNext::Dead { error } => AfterTurn::Dead { error },
        RunNext::Cancelled { reason } => AfterTurn::Cancelled { reason },
    }
}

/// The payload of a `workflow` step.
#[derive(Deserialize)]
struct ChildRunPayload {
    workflow: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(flatten)]
    limits: RunLimits,
    /// The run that is undone, instead of one that is started.
    #[serde(default)]
    undo: Option<TaskId>,
    #[serde(default)]
    input: serde_json::Value,
}

/// Returns the task of a published event, if the event is delivered as one. It outlives the run.
fn event_task(event: &Published) -> crate::Result<Option<NewTask>> {
    let Delivery::Task { queue } = &event.delivery else { return Ok(None) };
    let mut task = NewTask::new(format!("{EVENT_KIND_PREFIX}{}", event.name))?;
    if let Some(queue) = queue {
        task.queue = Name::new(queue)?;
    }
    task.payload = event.payload.clone();
    Ok(Some(task))
}

/// Adds the effects of a later arrival. It may withdraw or cancel tasks that this turn submits.
fn append(effects: &mut Effects, later: Effects) {
    effects.submits.extend(later.submits);
    effects.withdraws.extend(later.withdraws);
    effects.cancels.extend(later.cancels);
    effects.publishes.extend(later.publishes);
}

/// Returns the signals for which steps wait, as far as a turn can state them.
fn awaited_signals(instance: &RunInstance) -> Vec<Name> {
    let (context, state) = (&instance.context, &instance.state);
    let waiting = context.template.steps.iter().zip(state.steps(context));
    let names =
        waiting.filter(|(_, view)| view.state == StepState::Waiting).filter_map(|(step, _)| match &step.action {
            StepAction::Signal(signal) => Name::new(&signal.name).ok(),
            _ => None,
        });
    let names: BTreeSet<Name> = names.collect();
    names.into_iter().take(store_bounds::AWAITED_NAMES).collect()
}
