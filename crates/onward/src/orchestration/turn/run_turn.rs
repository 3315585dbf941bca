//! One turn of an orchestration: arrivals are fed to its code, steps run, and the result is
//! written.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterTurn, ChildTask, ClaimedTask, Lease, Message, Name, Outcome, Refusal, StoreReads, TaskId, TaskState,
    Timestamp, Turn, Turned, Write,
};

use super::instance::{Instance, ReplayError};
use super::instance_cache::TurnSlot;
use super::omitted_result::read_omitted;
use super::parked_instances::CheckIn;
use super::pending_turn::{PendingTurn, carried_event_of, event_of};
use super::remote_turn::{RemoteAbort, run_remote_turn};
use super::steps::{EndedStep, Steps};
use super::telemetry::{TurnOutcome, TurnTelemetry};
use crate::bounds;
use crate::engine::{Run, Settings};
use crate::orchestration::remote_code::RemoteCode;
use crate::orchestration::replay::{CodeOutcome, CompatibilityFlags, HistoryEvent, encode};
use crate::store_backoff::StoreBackoff;
use crate::workflow::{RUN_KIND_PREFIX, run_workflow_turn};

/// The reason why a turn ends without a complete write.
#[derive(Debug)]
pub(crate) enum TurnAbort {
    /// The store rejected the end because messages wait that the code was not offered.
    Unread,
    /// The lease is lost, or the store knows of more than this process: another engine continues.
    Lost(String),
    /// The orchestration is released, to be retried after a time.
    GiveBack(Duration, String),
    /// The orchestration cannot continue until a person has fixed something.
    Dead(String),
    /// The run of a workflow cannot begin with its input: it fails without an effect.
    Fail(String),
}

/// Runs a turn, handles its failure, and records its outcome in the metrics.
pub(super) async fn run_turn(run: &Arc<Run>, task: ClaimedTask, slot: TurnSlot) {
    let (lease, began) = (task.lease, run.inner.clock.steady());
    let telemetry = run.inner.telemetry.orchestrations.kind(&task.kind);
    if task.kind.starts_with(RUN_KIND_PREFIX) {
        // Boxed, as the turn below: the future of every turn would be as large as that of the
        // largest kind, and it is moved three times before it runs.
        let outcome = match Box::pin(run_workflow_turn(run, task, slot)).await {
            Ok(outcome) => outcome,
            Err(abort) => abandon_turn(run, lease, abort).await,
        };
        telemetry.turned(outcome, run.inner.clock.steady().saturating_sub(began));
        return;
    }
    if let Some(code) = run.orchestrations.remote(&task.kind) {
        let outcome = Box::pin(run_remote(run, task, slot, &**code)).await;
        telemetry.turned(outcome, run.inner.clock.steady().saturating_sub(began));
        return;
    }
    let outcome = match TurnRun::begin(run, task, slot, Arc::clone(&telemetry)).await {
        Ok(mut turn_run) => match turn_run.run().await {
            Ok((outcome, check_in)) => {
                if let Some(check_in) = check_in {
                    check_in.finish(turn_run.instance);
                }
                outcome
            }
            Err(abort) => abandon_turn(run, lease, (abort, turn_run.written)).await,
        },
        Err(abort) => abandon_turn(run, lease, abort).await,
    };
    telemetry.turned(outcome, run.inner.clock.steady().saturating_sub(began));
}

/// Runs a turn in another process, and reports to it whether its reply was written.
async fn run_remote(run: &Arc<Run>, task: ClaimedTask, slot: TurnSlot, code: &dyn RemoteCode) -> TurnOutcome {
    let (lease, length) = (task.lease, task.instance.as_ref().map_or(0, |instance| instance.length));
    match run_remote_turn(run, task, slot, code).await {
        Ok(outcome) => outcome,
        Err(RemoteAbort { abort, report }) => {
            let outcome = abandon_turn(run, lease, (abort, length)).await;
            if let Some(report) = report {
                code.ended(lease.task, lease.claim, report);
            }
            outcome
        }
    }
}

/// Releases an orchestration whose turn has not begun.
pub(super) async fn release(run: &Run, lease: Lease) {
    apply_with_retries(run, Write::Release { lease, after: Duration::ZERO }).await;
}

/// Releases or ends an orchestration whose turn was aborted, as the reason requires.
async fn abandon_turn(run: &Run, lease: Lease, (abort, length): (TurnAbort, u64)) -> TurnOutcome {
    let task = lease.task.0;
    let (write, outcome) = match abort {
        // A rejected end is deferred and never comes here.
        TurnAbort::Unread => return TurnOutcome::Lost,
        TurnAbort::Lost(reason) => {
            tracing::warn!(task, reason, "the turn of an orchestration is dropped");
            return TurnOutcome::Lost;
        }
        TurnAbort::GiveBack(after, reason) => {
            tracing::warn!(task, reason, ?after, "an orchestration is released and retried later");
            (Write::Release { lease, after }, TurnOutcome::GivenBack)
        }
        TurnAbort::Fail(error) => {
            (Write::Turn(Box::new(Turn::new(lease, length, AfterTurn::Fail { error }))), TurnOutcome::Failed)
        }
        TurnAbort::Dead(error) => {
            tracing::error!(task, error, "an orchestration cannot continue and is now a dead letter");
            // The dead letter keeps the names of the awaited events, for a retry.
            let awaits = awaited(run, lease.task).await;
            (
                Write::Turn(Box::new(Turn { awaits, ..Turn::new(lease, length, AfterTurn::Dead { error }) })),
                TurnOutcome::Dead,
            )
        }
    };
    if let Some(Outcome::Turned(turned)) = apply_with_retries(run, write).await {
        run.instances.count(turned.state);
    }
    outcome
}

/// Returns the events for which an orchestration waited after its last turn, or none if they cannot
/// be read.
async fn awaited(run: &Run, task: TaskId) -> Vec<Name> {
    run.inner.store.instance(task).await.ok().flatten().map_or_else(Vec::new, |instance| instance.awaits)
}

/// The outcome of a turn, and the check-in of its orchestration if it is parked.
type ClosedTurn = (TurnOutcome, Option<CheckIn<Instance>>);

/// A running turn.
pub(super) struct TurnRun<'a> {
    pub(super) run: &'a Arc<Run>,
    telemetry: Arc<TurnTelemetry>,
    /// The task as it was claimed, without its messages.
    pub(in crate::orchestration) task: ClaimedTask,
    lease: Lease,
    pub(super) instance: Box<Instance>,
    /// The messages that were not consumed yet.
    pub(super) messages: Vec<Message>,
    /// The time at which the turn began, or its last step ended.
    now: Timestamp,
    pub(super) pending: PendingTurn,
    /// The number of events that the store has.
    pub(super) written: u64,
    /// The number of messages that have arrived, as far as the turn knows.
    received: u64,
    pub(super) steps: Steps,
    /// Held until there is nothing left but to write.
    pub(super) slot: Option<TurnSlot>,
    /// The number of times that an end was deferred.
    pub(super) deferrals: u32,
    /// True if the code had ended before the turn, so that it cannot be offered anything.
    had_ended: bool,
}

impl<'a> TurnRun<'a> {
    async fn begin(
        run: &'a Arc<Run>,
        mut task: ClaimedTask,
        slot: TurnSlot,
        telemetry: Arc<TurnTelemetry>,
    ) -> Result<Self, (TurnAbort, u64)> {
        let (id, lease) = (task.lease.task, task.lease);
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        let (instance, pending) = match run.instances.orchestrations.check_out(id, generation, length).await {
            Some(instance) => (instance, PendingTurn::default()),
            None => {
                let loaded = load(run, &task).await.map_err(|abort| (abort, length))?;
                if length > 0 {
                    telemetry.replayed(length);
                }
                loaded
            }
        };
        // The store's clock may be ahead of this one: a task that it considers due is due.
        let now = run.inner.clock.now().max(task.run_at);
        let received = task.instance.as_ref().map_or(0, |instance| instance.received);
        let mut messages =
            task.instance.as_mut().map_or_else(Vec::new, |instance| std::mem::take(&mut instance.messages));
        read_omitted(&*run.inner.store, &mut messages).await.map_err(|abort| (abort, length))?;
        let (steps, slot) = (Steps::default(), Some(slot));
        let (deferrals, had_ended) = (0, instance.machine.outcome().is_some());
        let written = length;
        Ok(Self {
            run,
            telemetry,
            task,
            lease,
            instance,
            messages,
            now,
            pending,
            written,
            received,
            steps,
            slot,
            deferrals,
            had_ended,
        })
    }

    /// Runs until the code waits for something that is not there. Returns the check-in of the
    /// orchestration, if it is parked.
    async fn run(&mut self) -> Result<ClosedTurn, TurnAbort> {
        self.begin_turn();
        loop {
            self.consume_arrivals()?;
            self.steps.abort(&self.instance.machine.replay_context().take_abandoned_steps());
            self.instance.machine.replay_context().take_steps().into_iter().for_each(|step| self.steps.begin(step));
            if self.steps.is_empty() || self.instance.machine.outcome().is_some() {
                match self.close().await? {
                    Some(closed) => return Ok(closed),
                    None => continue,
                }
            }
            // Commands are written before steps run, so that tasks do not wait for the steps.
            if !self.pending.is_urgent {
                self.run_steps().await?;
            }
            // The arrival that made the code end is written with the end, which may be deferred.
            if !self.instance.machine.outcome().is_some_and(CodeOutcome::is_end) {
                self.write(AfterTurn::Continue).await?;
                self.resume_turn();
            }
        }
    }

    /// Moves the time forward, because the next arrivals come later than everything that the code
    /// has seen.
    fn resume_turn(&mut self) {
        self.now = self.run.inner.clock.now().max(self.now);
        if self.instance.machine.replay_context().now() != self.now {
            self.begin_turn();
        }
    }

    /// Feeds the beginning of a turn and its time. A turn without arrivals feeds nothing.
    fn begin_turn(&mut self) {
        if !self.instance.machine.has_started() {
            self.start();
        } else if !self.had_ended && (!self.messages.is_empty() || self.has_due_timer()) {
            self.feed(HistoryEvent::TurnBegan { at: self.now.as_microseconds() });
        }
    }

    fn has_due_timer(&self) -> bool {
        self.instance.machine.replay_context().due_timer(self.now).is_some()
    }

    /// Starts the code, with the earlier signals in place.
    // Earlier signals come before `Started`, so that the code finds them at its first poll.
    pub(super) fn start(&mut self) {
        for message in std::mem::take(&mut self.messages) {
            if let Some(event) = carried_event_of(&message) {
                self.feed(event);
            }
            self.pending.consumed = message.number;
        }
        let version = Some(self.instance.version).filter(|version| *version > 0);
        let flags = Some(CompatibilityFlags::KNOWN).filter(|flags| *flags != CompatibilityFlags::default());
        self.pending.cut(self.pending.consumed, false);
        self.feed(HistoryEvent::Started { at: self.now.as_microseconds(), seed: fastrand::u64(..), version, flags });
        if self.instance.machine.replay_context().is_cancel_carried() && self.instance.machine.outcome().is_none() {
            self.pending.cut(self.pending.consumed, true);
            self.feed(HistoryEvent::CancelRequested);
        }
    }

    pub(in crate::orchestration) fn feed(&mut self, event: HistoryEvent) {
        let commands = self.instance.machine.feed(&event);
        self.pending.add(event, commands);
    }

    /// Feeds messages and due timers. Messages behind the one that made the code end are left for
    /// [`offer_late_messages`](Self::offer_late_messages).
    fn consume_arrivals(&mut self) -> Result<(), TurnAbort> {
        let mut messages = std::mem::take(&mut self.messages).into_iter();
        while self.instance.machine.outcome().is_none()
            && let Some(message) = messages.next()
        {
            // A cut before each arrival lets the code be run again without the arrival that ends
            // it.
            self.pending.cut(message.number - 1, false);
            self.pending.consumed = message.number;
            self.feed_message(&message);
        }
        self.messages = messages.collect();
        while self.instance.machine.outcome().is_none()
            && let Some(operation) = self.instance.machine.replay_context().due_timer(self.now)
        {
            // Code that starts timers that are due would otherwise never end its turn.
            check_length(&self.run.inner.settings, self.written + self.pending.events.len() as u64)?;
            self.pending.cut(self.pending.consumed, false);
            self.feed(HistoryEvent::TimerFired { operation });
        }
        Ok(())
    }

    /// Feeds a message if the code waits for it.
    pub(super) fn feed_message(&mut self, message: &Message) {
        let event = event_of(message);
        if let HistoryEvent::TaskEnded { operation, .. } = &event {
            self.instance.forget_task(*operation);
        }
        if self.instance.machine.accepts(&event) {
            self.feed(event);
        }
    }

    /// Runs steps until one has ended, and feeds every step that has ended by then.
    async fn run_steps(&mut self) -> Result<(), TurnAbort> {
        let ended = tokio::select! {
            biased;
            ended = self.steps.next() => ended,
            () = self.run.instances.abort.cancelled() => {
                return Err(TurnAbort::GiveBack(Duration::ZERO, "the engine stops while a step runs".to_owned()));
            }
        };
        self.now = self.run.inner.clock.now().max(self.now);
        let mut ended = ended;
        while let Some(step) = ended {
            self.end_step(step);
            ended = self.steps.next_ended();
        }
        Ok(())
    }

    fn end_step(&mut self, EndedStep { operation, name, end }: EndedStep) {
        let event = HistoryEvent::StepEnded { operation, name, end, at: Some(self.now.as_microseconds()) };
        if self.instance.machine.outcome().is_none() && self.instance.machine.accepts(&event) {
            self.pending.cut(self.pending.consumed, true);
            self.feed(event);
        }
    }

    /// Writes the end of the turn. Returns `None` if the code is to decide again.
    async fn close(&mut self) -> Result<Option<ClosedTurn>, TurnAbort> {
        if self.instance.machine.outlives_its_code() {
            // A task that the code has spawned can run now, before the end is written. If it uses
            // the context, the orchestration is a dead letter.
            tokio::task::yield_now().await;
        }
        self.instance.machine.stop_if_stuck();
        let next = after_turn(&self.instance)?;
        let outcome = TurnOutcome::of(&next);
        let ends = self.instance.machine.outcome().is_some_and(CodeOutcome::is_end);
        // The code is offered messages that are already here before its end is written.
        if ends && !self.messages.is_empty() && !self.leaves_unread() {
            self.offer_late_messages().await?;
            return Ok(None);
        }
        if ends && !self.had_ended {
            self.instance.machine.replay_context().unread().into_iter().for_each(|unread| self.feed(unread));
        }
        // Announced before the write: the next turn may be claimed by the same commit, and waits
        // for this instance.
        let check_in = matches!(next, AfterTurn::Park { .. })
            .then(|| self.run.instances.orchestrations.begin_check_in(self.lease.task));
        if let Some(check_in) = &check_in {
            check_in.submits(self.pending.operations.iter().flatten().copied());
        }
        // Other turns may run during this write, and the same commit claims them.
        self.slot = None;
        let state = match self.write(next).await {
            Err(TurnAbort::Unread) => {
                self.offer_late_messages().await?;
                return Ok(None);
            }
            written => written?,
        };
        let is_parked = matches!(state, TaskState::Blocked | TaskState::Scheduled);
        self.instance.received = is_parked.then_some(self.received);
        if state.is_ended() {
            self.run.instances.count(state);
            self.run.inner.telemetry.kind(&self.instance.machine.replay_context().kind).ended(state);
        }
        // An orchestration may have ended although it would have parked, because another one has
        // taken its key.
        let outcome = if state == TaskState::Cancelled { TurnOutcome::Cancelled } else { outcome };
        Ok(Some((outcome, check_in.filter(|_| !state.is_ended()))))
    }

    /// Returns true if the end is written although messages wait.
    fn leaves_unread(&self) -> bool {
        self.had_ended || self.deferrals >= bounds::END_DEFERRALS
    }

    /// Writes everything that has happened since the last write.
    pub(super) async fn write(&mut self, next: AfterTurn) -> Result<TaskState, TurnAbort> {
        let is_live = matches!(next, AfterTurn::Continue | AfterTurn::Park { .. });
        let cancels = take_cancels(&mut self.instance, &mut self.pending);
        let mut pending = std::mem::take(&mut self.pending);
        let published = self.instance.machine.replay_context().take_published();
        let turn = pending
            .write(self.lease, self.written, cancels, next)
            .map_err(|error| TurnAbort::Dead(error.to_string()))?;
        // The limit also applies to an end that a step brought, so that a too large result of a
        // step is treated the same whether or not it is the last.
        if pending.cut.holds || is_live {
            check_growth(&self.run.inner.settings, self.instance.bytes, &turn)?;
        }
        let awaits = if is_live { self.instance.machine.replay_context().awaited_events() } else { Vec::new() };
        let leaves_unread = self.leaves_unread();
        let version = Some(self.instance.version);
        let turn = Turn { status: published.status, values: published.values, version, awaits, leaves_unread, ..turn };
        let (events, bytes, cancels) = (turn.events, turn.chunk.len() as u64, turn.cancels.clone());
        let consumed = turn.consumed;
        self.instance.bytes += bytes;
        let turned = match apply_turn(self.run, turn).await {
            Err(TurnAbort::Unread) => {
                // The code is run again from these events, which brings back the submits and tags.
                self.pending = pending;
                return Err(TurnAbort::Unread);
            }
            turned => turned?,
        };
        self.telemetry.wrote(events, bytes);
        self.written += events;
        self.received = self.received.max(consumed);
        cancel_here(self.run, &cancels);
        for (operation, submitted) in pending.operations.iter().zip(&turned.submitted) {
            operation.iter().for_each(|operation| self.instance.remember_task(*operation, submitted.id()));
        }
        self.messages = turned.messages;
        read_omitted(&*self.run.inner.store, &mut self.messages).await?;
        Ok(turned.state)
    }
}

/// Returns the state of an orchestration after the turn.
pub(super) fn after_turn(instance: &Instance) -> Result<AfterTurn, TurnAbort> {
    let replay_context = instance.machine.replay_context();
    Ok(match instance.machine.outcome() {
        None => AfterTurn::Park { until: replay_context.next_timer() },
        Some(CodeOutcome::Completed(result)) => AfterTurn::Complete { result: result.clone() },
        Some(CodeOutcome::Failed(error)) => AfterTurn::Fail { error: error.clone() },
        Some(CodeOutcome::Cancelled) => AfterTurn::Cancelled { reason: "cancelled on request".to_owned() },
        Some(CodeOutcome::ContinuedAsNew(payload)) => {
            // The new generation gets the signals that the code did not take.
            let carried = replay_context.take_unconsumed();
            let chunk = encode(&carried).map_err(|error| TurnAbort::Dead(error.to_string()))?.into();
            AfterTurn::ContinueAsNew { payload: payload.clone(), events: carried.len() as u64, chunk }
        }
        // Nothing of the turn is kept, so that fixed code is given the same arrivals again.
        Some(outcome @ (CodeOutcome::Panicked(_) | CodeOutcome::Stuck(_))) => {
            return Err(TurnAbort::Dead(outcome.fault().unwrap_or_default()));
        }
    })
}

/// Takes the tasks that the code has dropped.
pub(super) fn take_cancels(instance: &mut Instance, pending: &mut PendingTurn) -> Vec<ChildTask> {
    let cancel = |operation: u64| {
        let child = instance.child_of(operation);
        instance.forget_task(operation);
        child
    };
    std::mem::take(&mut pending.cancelled).into_iter().map(cancel).collect()
}

/// Stops attempts of this engine that a turn has cancelled. Others are cancelled when their engines
/// look for cancellations.
pub(crate) fn cancel_here(run: &Run, cancels: &[ChildTask]) {
    for child in cancels {
        if let ChildTask::Task(task) = child {
            run.state.cancel(*task);
        }
    }
}

/// Warns of a history that has reached half of its limit, and stops one that would exceed it.
/// `bytes_before` is its size before the turn.
pub(super) fn check_growth(settings: &Settings, bytes_before: u64, turn: &Turn) -> Result<(), TurnAbort> {
    let (before, after) = (turn.length, turn.length + turn.events);
    let bytes = bytes_before + turn.chunk.len() as u64;
    if after > settings.history_events || bytes > settings.history_bytes {
        let (most, most_bytes) = (settings.history_events, settings.history_bytes);
        return Err(too_long(&format!("{after} events and {bytes} bytes, and may have {most} and {most_bytes}")));
    }
    let is_long = |events, bytes| events > settings.history_events / 2 || bytes > settings.history_bytes / 2;
    if is_long(after, bytes) && !is_long(before, bytes_before) {
        let (task, most, most_bytes) = (turn.lease.task.0, settings.history_events, settings.history_bytes);
        tracing::warn!(
            task,
            events = after,
            most,
            bytes,
            most_bytes,
            "the history of an orchestration grows long; continue as new in its code"
        );
    }
    Ok(())
}

/// Stops a history that exceeds its number of events before its turn is written.
fn check_length(settings: &Settings, events: u64) -> Result<(), TurnAbort> {
    let most = settings.history_events;
    if events <= most { Ok(()) } else { Err(too_long(&format!("more than {most} events, and may have {most}"))) }
}

/// Returns the end of an orchestration whose history is too long.
fn too_long(lengths: &str) -> TurnAbort {
    TurnAbort::Dead(format!(
        "its history would have {lengths}; have its code continue as new before, or raise `history_events` and \
         `history_bytes`, then retry the task"
    ))
}

pub(super) async fn load(run: &Run, task: &ClaimedTask) -> Result<(Box<Instance>, PendingTurn), TurnAbort> {
    match Instance::replayed(&*run.inner.store, &run.orchestrations, task).await {
        Ok((instance, pending)) => Ok((Box::new(instance), pending)),
        Err(error @ ReplayError::NoCode(..)) => {
            Err(TurnAbort::GiveBack(run.instances.missing_code.pause(task.lease.task), error.to_string()))
        }
        Err(error @ ReplayError::Unreadable(_)) => {
            Err(TurnAbort::GiveBack(bounds::STORE_RETRY_LONGEST, error.to_string()))
        }
        Err(error @ (ReplayError::Gone(_) | ReplayError::Nondeterminism(_) | ReplayError::Stuck(_))) => {
            Err(TurnAbort::Dead(error.to_string()))
        }
    }
}

/// Applies a write, however often the store fails: no other engine can do it as long as the lease
/// holds. Returns `None` when the run is over.
async fn apply_with_retries(run: &Run, write: Write) -> Option<Outcome> {
    let mut backoff = StoreBackoff::default();
    loop {
        match try_apply(run, &write).await? {
            Ok(outcome) => return Some(outcome),
            Err(error) => {
                tracing::warn!(%error, "the turn of an orchestration could not be written; retrying after a pause")
            }
        }
        tokio::select! {
            biased;
            () = backoff.wait(&*run.inner.clock) => {}
            () = run.instances.abort.cancelled() => return None,
        }
    }
}

/// Applies a write. The last write of a turn goes through the dispatcher, whose claims in the same
/// commit see its effects; other writes go directly. Returns `None` when the run is over.
async fn try_apply(run: &Run, write: &Write) -> Option<onward_store::Result<Outcome>> {
    match write {
        Write::Turn(turn) if turn.next != AfterTurn::Continue => {
            let reply = run.instances.submit_turn(turn.clone());
            run.state.wake();
            tokio::select! {
                biased;
                reply = reply => reply.ok(),
                () = run.instances.abort.cancelled() => None,
            }
        }
        write => match run.inner.store.apply(vec![write.clone()]).await {
            Ok(outcomes) => outcomes.into_iter().next().map(Ok),
            // A write that is too large would be too large again.
            Err(error) if error.is_invalid() => Some(Ok(Outcome::Refused(Refusal::Invalid(error.to_string())))),
            Err(error) => Some(Err(error)),
        },
    }
}

pub(crate) async fn apply_turn(run: &Run, turn: Turn) -> Result<Turned, TurnAbort> {
    match apply_with_retries(run, Write::Turn(Box::new(turn))).await {
        Some(Outcome::Turned(turned)) => Ok(turned),
        Some(Outcome::Refused(Refusal::Invalid(text))) => Err(TurnAbort::Dead(text)),
        Some(Outcome::Refused(Refusal::Unread { .. })) => Err(TurnAbort::Unread),
        // The turn was written and the reply was lost: the instance in memory is behind.
        Some(Outcome::Refused(refusal @ Refusal::HistoryMoved { .. })) => {
            Err(TurnAbort::GiveBack(Duration::ZERO, refusal.to_string()))
        }
        Some(Outcome::Refused(refusal)) => Err(TurnAbort::Lost(refusal.to_string())),
        None => Err(TurnAbort::Lost("the run is over".to_owned())),
        Some(other) => Err(TurnAbort::Lost(format!("the store returned {other:?} for a turn"))),
    }
}
