//! One turn of an orchestration whose code runs in another process.
//!
//! The whole history and the new events go to that process, which replays its code and returns
//! decisions. They are written as the turn of any orchestration is: at the position that was read,
//! all or nothing.

use std::sync::Arc;

use onward_store::bounds::{AWAITED_NAMES, TURN_TASKS};
use onward_store::{AfterTurn, ChildTask, ClaimedTask, Lease, Message, StoreReads, TaskId, Timestamp, Turn};

use super::fork_origin::ForkOrigin;
use super::instance::read_history;
use super::instance_cache::TurnSlot;
use super::omitted_result::read_omitted;
use super::open_operations::OpenOperations;
use super::pending_turn::{PendingTurn, carried_event_of, event_of};
use super::run_turn::{TurnAbort, apply_turn, cancel_here, check_growth};
use super::telemetry::TurnOutcome;
use crate::bounds;
use crate::engine::Run;
use crate::handlers::EndReport;
use crate::orchestration::remote_code::{
    RemoteCode, RemoteDecision, RemoteDecisions, RemoteEnd, RemoteReply, RemoteTurn,
};
use crate::orchestration::replay::{Command, HistoryEvent, encode};

/// An arrival, and the number of the message that brought it.
type Arrival = (HistoryEvent, Option<u64>);

/// The state of an orchestration before the turn.
struct Loaded {
    history: Vec<HistoryEvent>,
    bytes: u64,
    open: OpenOperations,
    arrivals: Vec<Arrival>,
    /// The number of the last message, if no message gave an arrival: such messages are consumed
    /// without a turn of the code. Zero otherwise.
    consumed: u64,
}

/// A turn that is not written.
pub(super) struct RemoteAbort {
    pub(super) abort: TurnAbort,
    /// The report about the reply, if the code has replied.
    pub(super) report: Option<EndReport>,
}

impl From<TurnAbort> for RemoteAbort {
    fn from(abort: TurnAbort) -> Self {
        Self { abort, report: None }
    }
}

/// Runs a turn. The slot is held until the code has replied.
pub(super) async fn run_remote_turn(
    run: &Arc<Run>,
    task: ClaimedTask,
    slot: TurnSlot,
    code: &dyn RemoteCode,
) -> Result<TurnOutcome, RemoteAbort> {
    let (length, generation) = task.instance.as_ref().map_or((0, 0), |instance| (instance.length, instance.generation));
    RemoteRun { run, code, lease: task.lease, length, generation }.run(task, slot).await
}

struct RemoteRun<'a> {
    run: &'a Arc<Run>,
    code: &'a dyn RemoteCode,
    lease: Lease,
    length: u64,
    generation: u32,
}

impl RemoteRun<'_> {
    async fn run(&self, mut task: ClaimedTask, slot: TurnSlot) -> Result<TurnOutcome, RemoteAbort> {
        let loaded = match self.load(&mut task).await {
            Ok(loaded) if !loaded.arrivals.is_empty() => loaded,
            loaded => {
                // The code is not called, so its credit is free for another turn.
                self.run.inner.credit.give_back();
                return Ok(self.park_again(loaded?).await?);
            }
        };
        let turn = RemoteTurn {
            task: self.lease.task,
            claim: self.lease.claim,
            kind: task.kind.clone(),
            queue: task.queue.clone(),
            payload: task.payload.clone(),
            generation: self.generation,
            history: loaded.history.clone(),
            arrivals: loaded.arrivals.iter().map(|(event, _)| event.clone()).collect(),
        };
        let reply = tokio::select! {
            biased;
            reply = self.code.run(turn) => reply,
            () = self.run.instances.abort.cancelled() => {
                RemoteReply::Released(std::time::Duration::ZERO, "the engine stops during a turn".to_owned())
            }
        };
        drop(slot);
        match reply {
            RemoteReply::Decided(decisions) => {
                let outcome = self.write(loaded, *decisions).await.map_err(unwritten)?;
                self.code.ended(self.lease.task, self.lease.claim, EndReport::Durable);
                Ok(outcome)
            }
            RemoteReply::Stuck(text) => {
                Err(RemoteAbort { abort: TurnAbort::Dead(text), report: Some(EndReport::Durable) })
            }
            RemoteReply::Released(after, why) => {
                Err(RemoteAbort { abort: TurnAbort::GiveBack(after, why), report: Some(EndReport::Durable) })
            }
        }
    }

    async fn load(&self, task: &mut ClaimedTask) -> Result<Loaded, TurnAbort> {
        let store = &*self.run.inner.store;
        if ForkOrigin::of(&task.tags).is_some() {
            let text = "an orchestration whose code runs in a worker cannot be forked or reset; start another one";
            return Err(TurnAbort::Dead(text.to_owned()));
        }
        let history = read_history(store, self.lease.task, self.length).await;
        let history = history.map_err(|error| TurnAbort::GiveBack(bounds::STORE_RETRY_LONGEST, error.to_string()))?;
        let messages = task.instance.as_mut().map(|instance| std::mem::take(&mut instance.messages));
        let mut messages = messages.unwrap_or_default();
        read_omitted(store, &mut messages).await?;
        let open = OpenOperations::after(&history.events, self.generation).map_err(TurnAbort::Dead)?;
        // The store's clock may be ahead of this one: a task that it considers due is due.
        let now = self.run.inner.clock.now().max(task.run_at).max(last_time(&history.events));
        let (arrivals, consumed) = arrivals(&history.events, &open, &messages, now);
        Ok(Loaded { history: history.events, bytes: history.bytes, open, arrivals, consumed })
    }

    /// Writes a turn without arrivals: the code waits as before.
    async fn park_again(&self, loaded: Loaded) -> Result<TurnOutcome, TurnAbort> {
        let awaits = awaited(self.run, self.lease.task).await;
        let next = AfterTurn::Park { until: loaded.open.next_timer() };
        apply_turn(self.run, Turn { awaits, consumed: loaded.consumed, ..Turn::new(self.lease, self.length, next) })
            .await?;
        Ok(TurnOutcome::Parked)
    }

    async fn write(&self, loaded: Loaded, decisions: RemoteDecisions) -> Result<TurnOutcome, TurnAbort> {
        let Loaded { history, bytes, mut open, arrivals, .. } = loaded;
        let RemoteDecisions { read, decisions, awaits, end } = decisions;
        let parks = matches!(end, RemoteEnd::Wait);
        if parks && read < arrivals.len() {
            let text = format!("the worker has read {read} of {} new events, and its code still waits", arrivals.len());
            return Err(TurnAbort::Dead(text));
        }
        let end = with_unread_cancel(end, &history, &arrivals, (read, decisions.is_empty()));
        let mut pending = feed(self.lease.task, &mut open, &arrivals, read, decisions).map_err(TurnAbort::Dead)?;
        if parks && open.is_empty() && awaits.is_empty() {
            return Err(TurnAbort::Dead(WAITS_FOR_NOTHING.to_owned()));
        }
        let next = after_turn(end, &open).map_err(TurnAbort::Dead)?;
        let outcome = TurnOutcome::of(&next);
        let cancels: Vec<ChildTask> =
            std::mem::take(&mut pending.cancelled).into_iter().map(ChildTask::Reference).collect();
        let turn = pending.write(self.lease, self.length, cancels, next);
        let turn = turn.map_err(|error| TurnAbort::Dead(error.to_string()))?;
        if parks {
            check_growth(&self.run.inner.settings, bytes, &turn)?;
        }
        let awaits = if parks { awaits.into_iter().take(AWAITED_NAMES).collect() } else { Vec::new() };
        // Signals that the code did not read stay with the task that has ended.
        let turn = Turn { version: Some(0), awaits, leaves_unread: true, ..turn };
        let cancels = turn.cancels.clone();
        let turned = apply_turn(self.run, turn).await?;
        cancel_here(self.run, &cancels);
        if turned.state.is_ended() {
            self.run.instances.count(turned.state);
        }
        Ok(outcome)
    }
}

/// Returns the abort of a turn whose reply was not written.
fn unwritten(abort: TurnAbort) -> RemoteAbort {
    let report = match &abort {
        TurnAbort::Dead(text) | TurnAbort::Fail(text) => EndReport::Refused(text.clone()),
        TurnAbort::Unread | TurnAbort::Lost(_) | TurnAbort::GiveBack(..) => EndReport::Stale,
    };
    RemoteAbort { abort, report: Some(report) }
}

const WAITS_FOR_NOTHING: &str =
    "the code awaits something that no orchestration can wait for; use the tasks, timers and signals of its context";

async fn awaited(run: &Run, task: TaskId) -> Vec<onward_store::Name> {
    run.inner.store.instance(task).await.ok().flatten().map_or_else(Vec::new, |instance| instance.awaits)
}

/// Returns the time that the code saw last. It never goes back, even if the clock does.
fn last_time(history: &[HistoryEvent]) -> Timestamp {
    let times = history.iter().rev().find_map(|event| match event {
        HistoryEvent::Started { at, .. } | HistoryEvent::TurnBegan { at } => Some(*at),
        _ => None,
    });
    times.map_or(Timestamp::MIN, Timestamp::from_microseconds)
}

/// Returns the events that the code has not read, and [`Loaded::consumed`].
fn arrivals(
    history: &[HistoryEvent],
    open: &OpenOperations,
    messages: &[Message],
    now: Timestamp,
) -> (Vec<Arrival>, u64) {
    if !history.iter().any(|event| matches!(event, HistoryEvent::Started { .. })) {
        return (first_arrivals(history, messages, now), 0);
    }
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut before = None;
    for message in messages {
        let event = event_of(message);
        if open.accepts(&event) {
            arrivals.push((event, Some(message.number)));
        } else {
            // The end of a task that was cancelled, or of an earlier generation. It is consumed
            // together with the arrival before it.
            *arrivals.last_mut().map_or(&mut before, |(_, last)| last) = Some(message.number);
        }
    }
    let timers = open.due(now).into_iter().take(TURN_TASKS);
    arrivals.extend(timers.map(|operation| (HistoryEvent::TimerFired { operation }, None)));
    if !arrivals.is_empty() {
        arrivals.insert(0, (HistoryEvent::TurnBegan { at: now.as_microseconds() }, before));
    }
    (arrivals, before.unwrap_or(0))
}

/// Returns the events of the first turn. Earlier signals come before `Started`, so that the code
/// finds them at once.
fn first_arrivals(history: &[HistoryEvent], messages: &[Message], now: Timestamp) -> Vec<Arrival> {
    let carried = messages.iter().filter_map(|message| Some((carried_event_of(message)?, Some(message.number))));
    let mut arrivals: Vec<Arrival> = carried.collect();
    let is_cancelled = history
        .iter()
        .chain(arrivals.iter().map(|(event, _)| event))
        .any(|event| matches!(event, HistoryEvent::CancelCarried));
    let seed = fastrand::u64(..);
    let consumed = messages.last().map(|message| message.number);
    arrivals.push((HistoryEvent::Started { at: now.as_microseconds(), seed, version: None, flags: None }, consumed));
    if is_cancelled {
        arrivals.push((HistoryEvent::CancelRequested, None));
    }
    arrivals
}

/// Feeds the arrivals that the code has read, each followed by its decisions.
fn feed(
    task: TaskId,
    open: &mut OpenOperations,
    arrivals: &[Arrival],
    read: usize,
    decisions: Vec<(usize, RemoteDecision)>,
) -> Result<PendingTurn, String> {
    let Some(arrivals) = arrivals.get(..read) else {
        return Err(format!("the worker has read {read} new events, and there are {}", arrivals.len()));
    };
    let mut pending = PendingTurn::default();
    let mut decisions = decisions.into_iter().peekable();
    for (index, (event, message)) in arrivals.iter().enumerate() {
        pending.consumed = message.unwrap_or(pending.consumed).max(pending.consumed);
        // The code cancelled the operation in this turn, before the event came.
        if !open.accepts(event) {
            continue;
        }
        if let HistoryEvent::TaskEnded { operation, .. } | HistoryEvent::TimerFired { operation } = event {
            open.end(*operation);
        }
        let mut commands = Vec::new();
        while let Some((_, decision)) = decisions.next_if(|(after, _)| *after == index) {
            commands.push(command(task, open, decision)?);
        }
        pending.add(event.clone(), commands);
    }
    match decisions.next() {
        Some((after, _)) => {
            Err(format!("the worker decided after the new event {after}, which its code does not read"))
        }
        None => Ok(pending),
    }
}

fn command(task: TaskId, open: &mut OpenOperations, decision: RemoteDecision) -> Result<Command, String> {
    match decision {
        RemoteDecision::Task(operation, new) => {
            check_number(open, operation)?;
            open.begin_task(operation);
            let new = onward_store::NewTask { parent: Some(task), report: Some(operation), ..*new };
            Ok(Command::Submit { operation, task: Box::new(new) })
        }
        RemoteDecision::Timer(operation, until) => {
            check_number(open, operation)?;
            open.begin_timer(operation, until);
            Ok(Command::StartTimer { operation, until })
        }
        RemoteDecision::Cancel(operation) if open.end(operation) => Ok(Command::Cancel { operation }),
        RemoteDecision::Cancel(operation) => {
            Err(format!("the worker cancelled operation {operation}, which is not open; its history differs"))
        }
    }
}

fn check_number(open: &OpenOperations, operation: u64) -> Result<(), String> {
    let next = open.next();
    if operation == next {
        return Ok(());
    }
    Err(format!("the worker numbered an operation {operation}, and the next one is {next}; its history differs"))
}

/// Returns the end of code that may have continued as new before it read a request to cancel that
/// was carried to it: the next generation gets the request. Code that has decided nothing and taken
/// no signal would continue for ever, and is cancelled.
fn with_unread_cancel(
    end: RemoteEnd,
    history: &[HistoryEvent],
    arrivals: &[Arrival],
    (read, decides_nothing): (usize, bool),
) -> RemoteEnd {
    // A request without a message was carried. Others stay among the messages.
    let is_carried = |arrival: &Arrival| matches!(arrival, (HistoryEvent::CancelRequested, None));
    let is_unread = arrivals.get(read..).is_some_and(|unread| unread.iter().any(is_carried));
    match end {
        RemoteEnd::ContinueAsNew { payload, signals, .. } if is_unread => {
            let events = history.iter().chain(arrivals.iter().map(|(event, _)| event));
            let carried = events.filter(|event| matches!(event, HistoryEvent::SignalCarried { .. })).count();
            if decides_nothing && signals.len() == carried {
                return RemoteEnd::Cancelled;
            }
            RemoteEnd::ContinueAsNew { payload, signals, cancel: true }
        }
        end => end,
    }
}

fn after_turn(end: RemoteEnd, open: &OpenOperations) -> Result<AfterTurn, String> {
    Ok(match end {
        RemoteEnd::Wait => AfterTurn::Park { until: open.next_timer() },
        RemoteEnd::Complete(result) => AfterTurn::Complete { result: Some(result) },
        RemoteEnd::Fail(error) => AfterTurn::Fail { error },
        RemoteEnd::Cancelled => AfterTurn::Cancelled { reason: "cancelled on request".to_owned() },
        RemoteEnd::ContinueAsNew { payload, signals, cancel } => {
            let cancel = cancel.then_some(HistoryEvent::CancelCarried);
            let signals = signals.into_iter().map(|(name, payload)| HistoryEvent::SignalCarried {
                name: name.to_string(),
                payload: payload.to_vec().into(),
            });
            let carried: Vec<HistoryEvent> = cancel.into_iter().chain(signals).collect();
            let chunk = encode(&carried).map_err(|error| error.to_string())?.into();
            AfterTurn::ContinueAsNew { payload, events: carried.len() as u64, chunk }
        }
    })
}
