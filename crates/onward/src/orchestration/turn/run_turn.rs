//! One turn of an orchestration: what came is fed to its code, steps are run, and what it did is
//! written.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterTurn, ClaimedTask, Lease, Message, Name, Outcome, Refusal, TaskId, TaskState, Timestamp, Turn, Turned, Write,
};

use super::instance::{Live, Unplayable};
use super::instance_cache::{Leaving, Slot};
use super::pending_turn::{Draft, carried_event_of, event_of};
use super::steps::{EndedStep, Steps};
use super::telemetry::{TurnOutcome, TurnTelemetry};
use crate::engine::Run;
use crate::orchestration::replay::{CompatibilityFlags, Finish, HistoryEvent, encode};
use crate::{bounds, timer};

/// Why a turn ends without having been written to the end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its end was refused, since messages wait that its code was not offered.
    Unread,
    /// The lease is lost, or the store knows of more than we do: somebody else goes on.
    Lost(String),
    /// It is given back, to be tried again after a time.
    GiveBack(Duration, String),
    /// It cannot go on until somebody has mended something.
    Dead(String),
}

/// Does a turn, whatever comes of it.
pub(super) async fn perform(run: &Arc<Run>, task: ClaimedTask, slot: Slot) {
    let (lease, began) = (task.lease, run.inner.clock.steady());
    let meter = run.inner.telemetry.orchestrations.kind(&task.kind);
    let outcome = match Performance::begin(run, task, slot, Arc::clone(&meter)).await {
        Ok(mut performance) => match performance.play().await {
            Ok((outcome, parked)) => {
                if let Some(leaving) = parked {
                    leaving.keep(performance.live);
                }
                outcome
            }
            Err(stop) => give_up(run, lease, (stop, performance.written)).await,
        },
        Err(stopped) => give_up(run, lease, stopped).await,
    };
    meter.turned(outcome, run.inner.clock.steady().saturating_sub(began));
}

/// Gives an orchestration back whose turn has not begun.
pub(super) async fn pass(run: &Run, lease: Lease) {
    insist(run, Write::Release { lease, after: Duration::ZERO }).await;
}

/// Says what becomes of an orchestration whose turn came to nothing.
async fn give_up(run: &Run, lease: Lease, (stop, length): (Stop, u64)) -> TurnOutcome {
    let task = lease.task.0;
    let (write, outcome) = match stop {
        // An end that was refused is put off, and never comes here.
        Stop::Unread => return TurnOutcome::Lost,
        Stop::Lost(reason) => {
            tracing::warn!(task, reason, "the turn of an orchestration is dropped");
            return TurnOutcome::Lost;
        }
        Stop::GiveBack(after, reason) => {
            tracing::warn!(task, reason, ?after, "an orchestration is given back and tried again later");
            (Write::Release { lease, after }, TurnOutcome::GivenBack)
        }
        Stop::Dead(error) => {
            tracing::error!(task, error, "an orchestration cannot go on and is a dead letter now");
            // The events that it waits for stay, for a retry.
            let awaits = awaited(run, lease.task).await;
            (
                Write::Turn(Box::new(Turn { awaits, ..Turn::new(lease, length, AfterTurn::Dead { error }) })),
                TurnOutcome::Dead,
            )
        }
    };
    if let Some(Outcome::Turned(turned)) = insist(run, write).await {
        run.stage.count(turned.state);
    }
    outcome
}

/// Returns the events for which an orchestration waited after its last turn; none where they cannot
/// be read.
async fn awaited(run: &Run, task: TaskId) -> Vec<Name> {
    run.inner.store.instance(task).await.ok().flatten().map_or_else(Vec::new, |instance| instance.awaits)
}

/// The outcome of a turn, and the place of its orchestration if it is parked.
type Closed<'a> = (TurnOutcome, Option<Leaving<'a>>);

/// A turn under way.
pub(super) struct Performance<'a> {
    pub(super) run: &'a Arc<Run>,
    meter: Arc<TurnTelemetry>,
    /// As it was claimed, without its messages.
    pub(in crate::orchestration) task: ClaimedTask,
    lease: Lease,
    pub(super) live: Box<Live>,
    /// What is still to be taken in.
    pub(super) messages: Vec<Message>,
    /// When the turn began, or a step of it ended last.
    now: Timestamp,
    pub(super) draft: Draft,
    /// How many events the store has.
    pub(super) written: u64,
    pub(super) steps: Steps,
    /// Until there is nothing left but to write.
    pub(super) slot: Option<Slot>,
    /// The number of times that an end was put off.
    pub(super) put_off: u32,
    /// True if the code had ended before the turn: it cannot be offered anything.
    was_over: bool,
}

impl<'a> Performance<'a> {
    async fn begin(
        run: &'a Arc<Run>,
        mut task: ClaimedTask,
        slot: Slot,
        meter: Arc<TurnTelemetry>,
    ) -> Result<Self, (Stop, u64)> {
        let (id, lease) = (task.lease.task, task.lease);
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        let (live, draft) = match run.stage.take(id, generation, length).await {
            Some(live) => (live, Draft::default()),
            None => {
                let loaded = load(run, &task).await.map_err(|stop| (stop, length))?;
                if length > 0 {
                    meter.replayed(length);
                }
                loaded
            }
        };
        // The store's clock may be ahead of this one: what it held to be due is.
        let now = run.inner.clock.now().max(task.run_at);
        let messages = task.instance.as_mut().map_or_else(Vec::new, |instance| std::mem::take(&mut instance.messages));
        let (steps, slot) = (Steps::default(), Some(slot));
        let (put_off, was_over) = (0, live.machine.finish().is_some());
        let written = length;
        Ok(Self { run, meter, task, lease, live, messages, now, draft, written, steps, slot, put_off, was_over })
    }

    /// Plays until the code waits for something that is not there; answers where the orchestration
    /// is to be kept, if it is parked.
    async fn play(&mut self) -> Result<Closed<'a>, Stop> {
        self.open();
        loop {
            self.take_in();
            self.steps.abort(&self.live.machine.journal().take_abandoned_steps());
            self.live.machine.journal().take_steps().into_iter().for_each(|step| self.steps.begin(step));
            if self.steps.is_empty() || self.live.machine.finish().is_some() {
                match self.close().await? {
                    Some(closed) => return Ok(closed),
                    None => continue,
                }
            }
            if !self.draft.is_urgent {
                self.run_steps().await?;
            }
            // The arrival that had the code end is written with the end, which may be put off.
            if !self.live.machine.finish().is_some_and(Finish::is_end) {
                self.write(AfterTurn::Continue).await?;
                self.open_again();
            }
        }
    }

    /// What is next taken in comes later than what the code knows of.
    fn open_again(&mut self) {
        self.now = self.run.inner.clock.now().max(self.now);
        if self.live.machine.journal().now() != self.now {
            self.open();
        }
    }

    /// Tells the code that a turn begins, and when; a turn for which nothing has come is none.
    fn open(&mut self) {
        if !self.live.machine.has_started() {
            self.start();
        } else if !self.was_over && (!self.messages.is_empty() || self.has_due_timer()) {
            self.feed(HistoryEvent::TurnBegan { at: self.now.as_microseconds() });
        }
    }

    fn has_due_timer(&self) -> bool {
        self.live.machine.journal().due_timer(self.now).is_some()
    }

    /// Begins the code, which finds there what was sent before.
    pub(super) fn start(&mut self) {
        for message in std::mem::take(&mut self.messages) {
            if let Some(event) = carried_event_of(&message) {
                self.feed(event);
            }
            self.draft.consumed = message.number;
        }
        let version = Some(self.live.version).filter(|version| *version > 0);
        let flags = Some(CompatibilityFlags::KNOWN).filter(|flags| *flags != CompatibilityFlags::default());
        self.draft.cut(self.draft.consumed, false);
        self.feed(HistoryEvent::Started { at: self.now.as_microseconds(), seed: fastrand::u64(..), version, flags });
        if self.live.machine.journal().is_cancel_carried() && self.live.machine.finish().is_none() {
            self.draft.cut(self.draft.consumed, true);
            self.feed(HistoryEvent::CancelRequested);
        }
    }

    pub(in crate::orchestration) fn feed(&mut self, event: HistoryEvent) {
        let commands = self.live.machine.feed(&event);
        self.draft.add(event, commands);
    }

    /// Feeds messages and due timers. Those behind the one that has the code end are left for
    /// [`offer_rest`](Self::offer_rest).
    fn take_in(&mut self) {
        let mut messages = std::mem::take(&mut self.messages).into_iter();
        while self.live.machine.finish().is_none()
            && let Some(message) = messages.next()
        {
            self.draft.cut(message.number - 1, false);
            self.draft.consumed = message.number;
            self.feed_message(&message);
        }
        self.messages = messages.collect();
        while self.live.machine.finish().is_none()
            && let Some(operation) = self.live.machine.journal().due_timer(self.now)
        {
            self.draft.cut(self.draft.consumed, false);
            self.feed(HistoryEvent::TimerFired { operation });
        }
    }

    /// Feeds a message, if the code waits for it.
    pub(super) fn feed_message(&mut self, message: &Message) {
        let event = event_of(message);
        if let HistoryEvent::TaskEnded { operation, .. } = &event {
            self.live.forget(*operation);
        }
        if self.live.machine.takes(&event) {
            self.feed(event);
        }
    }

    /// Runs steps until one has ended, and takes in all that have by then.
    async fn run_steps(&mut self) -> Result<(), Stop> {
        let ended = tokio::select! {
            biased;
            ended = self.steps.next() => ended,
            () = self.run.stage.abort.cancelled() => {
                return Err(Stop::GiveBack(Duration::ZERO, "the engine stops while a step runs".to_owned()));
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
        if self.live.machine.finish().is_none() && self.live.machine.takes(&event) {
            self.draft.cut(self.draft.consumed, true);
            self.feed(event);
        }
    }

    /// Writes how the orchestration goes on. Returns nothing if its code is to decide again.
    async fn close(&mut self) -> Result<Option<Closed<'a>>, Stop> {
        self.live.machine.notice_if_stuck();
        let next = self.next()?;
        let outcome = outcome_of(&next);
        let ends = self.live.machine.finish().is_some_and(Finish::is_end);
        if ends && !self.messages.is_empty() && !self.leaves_unread() {
            self.offer_rest().await?;
            return Ok(None);
        }
        if ends && !self.was_over {
            self.live.machine.journal().unread().into_iter().for_each(|unread| self.feed(unread));
        }
        let leaving = matches!(next, AfterTurn::Park { .. }).then(|| self.run.stage.leave(self.lease.task));
        // Others may play while this is written, and what they claim is in the same commit.
        self.slot = None;
        let state = match self.write(next).await {
            Err(Stop::Unread) => {
                self.offer_rest().await?;
                return Ok(None);
            }
            written => written?,
        };
        if state.is_ended() {
            self.run.stage.count(state);
            self.run.inner.telemetry.kind(&self.live.machine.journal().kind).ended(state);
        }
        // It may have ended although it would have parked: another has taken its key.
        let outcome = if state == TaskState::Cancelled { TurnOutcome::Cancelled } else { outcome };
        Ok(Some((outcome, leaving.filter(|_| !state.is_ended()))))
    }

    /// Returns how the orchestration goes on.
    fn next(&self) -> Result<AfterTurn, Stop> {
        Ok(match self.live.machine.finish() {
            None => AfterTurn::Park { until: self.live.machine.journal().next_timer() },
            Some(Finish::Completed(result)) => AfterTurn::Complete { result: result.clone() },
            Some(Finish::Failed(error)) => AfterTurn::Fail { error: error.clone() },
            Some(Finish::Cancelled) => AfterTurn::Cancelled { reason: "somebody cancelled it".to_owned() },
            Some(Finish::ContinuedAsNew(payload)) => self.begin_again(payload.clone())?,
            // Nothing of it is kept, so that mended code is given the same again.
            Some(finish @ (Finish::Panicked(_) | Finish::Stuck(_))) => {
                return Err(Stop::Dead(finish.fault().unwrap_or_default()));
            }
        })
    }

    /// Returns whether the end is written though messages wait.
    fn leaves_unread(&self) -> bool {
        self.was_over || self.put_off >= bounds::END_DEFERRALS
    }

    /// What was sent to the code and not taken goes with it.
    fn begin_again(&self, payload: bytes::Bytes) -> Result<AfterTurn, Stop> {
        let carried = self.live.machine.journal().take_untaken();
        let chunk = encode(&carried).map_err(|error| Stop::Dead(error.to_string()))?.into();
        Ok(AfterTurn::ContinueAsNew { payload, events: carried.len() as u64, chunk })
    }

    /// Writes what has happened since the last write.
    pub(super) async fn write(&mut self, next: AfterTurn) -> Result<TaskState, Stop> {
        let parks = matches!(next, AfterTurn::Park { .. });
        let cancels = self.cancels().await?;
        let mut draft = std::mem::take(&mut self.draft);
        let shown = self.live.machine.journal().take_shown();
        let turn =
            draft.write(self.lease, self.written, cancels, next).map_err(|error| Stop::Dead(error.to_string()))?;
        // A step's result is too large or not whether or not it is the last.
        if draft.cut.holds || matches!(turn.next, AfterTurn::Continue | AfterTurn::Park { .. }) {
            self.check_growth(&turn)?;
        }
        let awaits = if parks { self.live.machine.journal().awaited_events() } else { Vec::new() };
        let leaves_unread = self.leaves_unread();
        let version = Some(self.live.version);
        let turn = Turn { status: shown.status, values: shown.values, version, awaits, leaves_unread, ..turn };
        let (events, bytes, cancels) = (turn.events, turn.chunk.len() as u64, turn.cancels.clone());
        self.live.bytes += bytes;
        let turned = match apply(self.run, turn).await {
            Err(Stop::Unread) => {
                self.draft = draft;
                return Err(Stop::Unread);
            }
            turned => turned?,
        };
        self.meter.wrote(events, bytes);
        self.written += events;
        // Those that run elsewhere hear of it when their engine asks.
        cancels.iter().for_each(|task| self.run.state.cancel(*task));
        for (operation, submitted) in draft.operations.iter().zip(&turned.submitted) {
            operation.iter().for_each(|operation| self.live.learn(*operation, submitted.id()));
        }
        self.messages = turned.messages;
        Ok(turned.state)
    }

    /// Warns of a history that has come to half of what it may have, and stops one that would have
    /// more.
    fn check_growth(&self, turn: &Turn) -> Result<(), Stop> {
        let settings = &self.run.inner.settings;
        let (before, after) = (self.written, self.written + turn.events);
        let bytes = self.live.bytes + turn.chunk.len() as u64;
        if after > settings.history_events || bytes > settings.history_bytes {
            return Err(Stop::Dead(format!(
                "its history would have {after} events and {bytes} bytes, and may have {} and {}; have its code continue as new before, or \
                 raise `history_events` and `history_bytes`, then retry the task",
                settings.history_events, settings.history_bytes
            )));
        }
        let is_long = |events, bytes| events > settings.history_events / 2 || bytes > settings.history_bytes / 2;
        if is_long(after, bytes) && !is_long(before, self.live.bytes) {
            let (task, most, most_bytes) = (self.lease.task.0, settings.history_events, settings.history_bytes);
            tracing::warn!(
                task,
                events = after,
                most,
                bytes,
                most_bytes,
                "the history of an orchestration grows long; have its code continue as new"
            );
        }
        Ok(())
    }

    async fn cancels(&mut self) -> Result<Vec<TaskId>, Stop> {
        let mut cancels = Vec::with_capacity(self.draft.cancelled.len());
        for operation in std::mem::take(&mut self.draft.cancelled) {
            let task = self.live.task_of(&*self.run.inner.store, self.lease.task, operation).await;
            let task = task.map_err(|error| Stop::GiveBack(bounds::STORE_RETRY_LONGEST, error.to_string()))?;
            cancels.extend(task);
            self.live.forget(operation);
        }
        Ok(cancels)
    }
}

fn outcome_of(next: &AfterTurn) -> TurnOutcome {
    match next {
        AfterTurn::Continue | AfterTurn::Park { .. } => TurnOutcome::Parked,
        AfterTurn::Complete { .. } => TurnOutcome::Completed,
        AfterTurn::Fail { .. } => TurnOutcome::Failed,
        AfterTurn::Dead { .. } => TurnOutcome::Dead,
        AfterTurn::Cancelled { .. } => TurnOutcome::Cancelled,
        AfterTurn::ContinueAsNew { .. } => TurnOutcome::ContinuedAsNew,
    }
}

pub(super) async fn load(run: &Run, task: &ClaimedTask) -> Result<(Box<Live>, Draft), Stop> {
    match Live::replayed(&*run.inner.store, &run.orchestrations, task).await {
        Ok((live, draft)) => Ok((Box::new(live), draft)),
        Err(error @ Unplayable::NoCode(..)) => {
            Err(Stop::GiveBack(run.stage.missing.pause(task.lease.task), error.to_string()))
        }
        Err(error @ Unplayable::Unread(_)) => Err(Stop::GiveBack(bounds::STORE_RETRY_LONGEST, error.to_string())),
        Err(error @ (Unplayable::Gone(_) | Unplayable::Nondeterminism(_) | Unplayable::Stuck(_))) => {
            Err(Stop::Dead(error.to_string()))
        }
    }
}

/// Writes something, however often the store fails: nobody else can, as long as the lease holds.
/// `None` when the run is over.
async fn insist(run: &Run, write: Write) -> Option<Outcome> {
    let mut pause = bounds::STORE_RETRY_FIRST;
    loop {
        match once(run, &write).await? {
            Ok(outcome) => return Some(outcome),
            Err(error) => {
                tracing::warn!(%error, "the turn of an orchestration could not be written; trying again after a pause")
            }
        }
        let clock = &*run.inner.clock;
        tokio::select! {
            () = timer::reached(clock, clock.steady().saturating_add(pause)) => {}
            () = run.stage.abort.cancelled() => return None,
        }
        pause = pause.saturating_mul(2).min(bounds::STORE_RETRY_LONGEST);
    }
}

/// The last write of a turn goes with what the dispatcher writes, which then claims what follows
/// from it in the same commit; others go by themselves. `None` when the run is over.
async fn once(run: &Run, write: &Write) -> Option<onward_store::Result<Outcome>> {
    match write {
        Write::Turn(turn) if turn.next != AfterTurn::Continue => {
            let answer = run.stage.hand_in(turn.clone());
            run.state.wake();
            tokio::select! {
                answer = answer => answer.ok(),
                () = run.stage.abort.cancelled() => None,
            }
        }
        write => match run.inner.store.apply(vec![write.clone()]).await {
            Ok(outcomes) => outcomes.into_iter().next().map(Ok),
            // What is too large is so the next time, too.
            Err(error) if error.is_invalid() => Some(Ok(Outcome::Refused(Refusal::Invalid(error.to_string())))),
            Err(error) => Some(Err(error)),
        },
    }
}

async fn apply(run: &Run, turn: Turn) -> Result<Turned, Stop> {
    match insist(run, Write::Turn(Box::new(turn))).await {
        Some(Outcome::Turned(turned)) => Ok(turned),
        Some(Outcome::Refused(Refusal::Invalid(text))) => Err(Stop::Dead(text)),
        Some(Outcome::Refused(Refusal::Unread { .. })) => Err(Stop::Unread),
        // It was written, and the answer was lost: what is in memory is behind.
        Some(Outcome::Refused(refusal @ Refusal::HistoryMoved { .. })) => {
            Err(Stop::GiveBack(Duration::ZERO, refusal.to_string()))
        }
        Some(Outcome::Refused(refusal)) => Err(Stop::Lost(refusal.to_string())),
        None => Err(Stop::Lost("the run is over".to_owned())),
        Some(other) => Err(Stop::Lost(format!("the store answered a turn with {other:?}"))),
    }
}
