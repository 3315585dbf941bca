//! Runs the code of an orchestration without a clock, a store or a runtime: events in, commands
//! out.
//!
//! The code is polled once after each arrival from outside. Its reactions ([`Command`]) follow the
//! arrival in the history. A replay feeds the same arrivals, and can thus compare what the code
//! does now with what it did then.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use onward_store::{Name, TaskId, Timestamp};
use tokio::task::coop::unconstrained;
use tracing::subscriber::NoSubscriber;

use super::history::HistoryEvent;
use super::nondeterminism::{CodeEnd, Nondeterminism};
use super::replay_context::{Command, ReplayContext};
use super::running_code::{USED_ELSEWHERE, run_code};
use crate::bounds;
use crate::handlers::{AlternativeEnd, Failure};

/// The running code of one orchestration.
pub(in crate::orchestration) type CodeFuture = Pin<Box<dyn Future<Output = Result<Option<Bytes>, Failure>> + Send>>;

/// The code of a kind of orchestrations.
pub(in crate::orchestration) type Code = Arc<dyn Fn(Arc<ReplayContext>) -> CodeFuture + Send + Sync>;

/// The outcome of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::orchestration) enum CodeOutcome {
    Completed(Option<Bytes>),
    Failed(String),
    /// The code was cancelled and did not handle the request, or has undone its steps.
    Cancelled,
    ContinuedAsNew(Bytes),
    /// The code panicked with this message.
    Panicked(String),
    /// The code cannot continue, for example because it waits for something outside of the
    /// orchestration.
    Stuck(String),
}

impl CodeOutcome {
    /// Returns the fault of an outcome with which no orchestration may end.
    pub(in crate::orchestration) fn fault(&self) -> Option<String> {
        match self {
            Self::Panicked(text) => Some(format!("the code: {text}; fix it, then retry the task")),
            Self::Stuck(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns true if the orchestration ends with this outcome, so that no message is read
    /// afterwards.
    pub(in crate::orchestration) fn is_end(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }
}

impl From<&CodeOutcome> for CodeEnd {
    fn from(outcome: &CodeOutcome) -> Self {
        match outcome {
            CodeOutcome::Completed(_) => Self::Completed,
            CodeOutcome::Failed(error) => Self::Failed(error.clone()),
            CodeOutcome::Cancelled => Self::Cancelled,
            CodeOutcome::ContinuedAsNew(_) => Self::ContinuedAsNew,
            CodeOutcome::Panicked(text) => Self::Panicked(text.clone()),
            CodeOutcome::Stuck(text) => Self::Stuck(text.clone()),
        }
    }
}

#[derive(Debug, Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One orchestration in memory.
pub(in crate::orchestration) struct Machine {
    replay_context: Arc<ReplayContext>,
    code: Option<CodeFuture>,
    wake_flag: Arc<WakeFlag>,
    outcome: Option<CodeOutcome>,
    /// The number of events that were fed.
    length: u64,
    has_started: bool,
    /// True if signals were delivered since the code was last polled. Its history can end there.
    has_unpolled: bool,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("replay_context", &self.replay_context)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The context is closed first, so that dropping the code cancels nothing.
        self.replay_context.close();
        let code = self.code.take();
        // A panic of the code must not stop the caller that evicts the orchestration.
        let _panic = catch_unwind(AssertUnwindSafe(|| run_code(&self.replay_context, || drop(code))));
    }
}

impl Machine {
    /// Returns a machine before its first event.
    pub(in crate::orchestration) fn new(code: &Code, replay_context: Arc<ReplayContext>) -> Self {
        let future = run_code(&replay_context, || code(Arc::clone(&replay_context)));
        Self {
            replay_context,
            code: Some(future),
            wake_flag: Arc::default(),
            outcome: None,
            length: 0,
            has_started: false,
            has_unpolled: false,
        }
    }

    pub(in crate::orchestration) fn length(&self) -> u64 {
        self.length
    }

    /// Returns true if the code has begun.
    pub(in crate::orchestration) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(in crate::orchestration) fn replay_context(&self) -> &ReplayContext {
        &self.replay_context
    }

    /// Returns the outcome of the code, if it has ended.
    pub(in crate::orchestration) fn outcome(&self) -> Option<&CodeOutcome> {
        self.outcome.as_ref()
    }

    /// Feeds the events of a history, and compares what the code does with what it did.
    pub(in crate::orchestration) fn replay(&mut self, events: &[HistoryEvent]) -> Result<(), Box<Nondeterminism>> {
        // Only a fork submits tasks again, so only its replay keeps copies of them.
        let is_fork = events.iter().any(|event| matches!(event, HistoryEvent::Forked { .. }));
        self.replay_context.remember_submitted(is_fork);
        self.replay_checked(events)?;
        self.replay_context.remember_submitted(false);
        // The published state of the replay was written with the original turns.
        self.replay_context.take_published();
        Ok(())
    }

    /// Feeds the events of a history with which an orchestration ended, and returns the commands
    /// that the code has behind it: other code continues where the former code ended. What it
    /// publishes in the replay is written with the next turn, because its last part may be new.
    pub(in crate::orchestration) fn replay_past_end(
        &mut self,
        events: &[HistoryEvent],
    ) -> Result<Vec<Command>, Box<Nondeterminism>> {
        self.replay_all(events).map_err(|found| found.with_beginnings(events))?;
        let commands: Vec<Command> = std::iter::from_fn(|| self.replay_context.pop_command()).collect();
        self.length += commands.len() as u64;
        Ok(commands)
    }

    fn replay_checked(&mut self, events: &[HistoryEvent]) -> Result<(), Box<Nondeterminism>> {
        self.replay_all(events).and_then(|()| self.check_no_more()).map_err(|found| found.with_beginnings(events))
    }

    fn replay_all(&mut self, events: &[HistoryEvent]) -> Result<(), Box<Nondeterminism>> {
        // A fork takes over the operation numbers of its origin, so the history sets where they
        // start.
        if let Some(operation) = events.iter().find_map(HistoryEvent::operation) {
            self.replay_context.number_like(operation);
        }
        // In a replay the code takes a patched branch only if the history has the patch.
        let patches: HashSet<String> = events.iter().filter_map(patch).collect();
        self.replay_context.replay(Some(Arc::new(patches)));
        // The code has logged all of this before.
        tracing::subscriber::with_default(NoSubscriber::new(), || {
            events.iter().try_for_each(|event| {
                self.replay_one(event)?;
                self.length += 1;
                Ok::<_, Box<Nondeterminism>>(())
            })
        })?;
        self.replay_context.replay(None);
        Ok(())
    }

    /// Returns an error if the code has a command behind the last event, so that it does more than
    /// its history has.
    fn check_no_more(&self) -> Result<(), Box<Nondeterminism>> {
        match self.replay_context.first_command() {
            Some(found) => Err(Box::new(self.difference(None, Some(found)))),
            None => Ok(()),
        }
    }

    /// Takes over the beginning of another orchestration's history, and returns the commands that
    /// submit its running tasks again. The state that the code publishes up to there counts as
    /// published by the fork.
    pub(in crate::orchestration) fn fork(
        &mut self,
        from: TaskId,
        events: &[HistoryEvent],
    ) -> Result<Vec<Command>, Box<Nondeterminism>> {
        let forked = HistoryEvent::Forked { from: from.0 };
        // The events are replayed, because their commands were carried out by the other
        // orchestration. Only the commands of `Forked` are new.
        self.replay_context.remember_submitted(true);
        self.replay_checked(events)?;
        let commands = self.feed(&forked);
        self.replay_context.remember_submitted(false);
        Ok(commands)
    }

    /// Feeds events that were not written yet to code that was replayed up to them, and returns its
    /// commands for each. The code runs for a second time, so its log output is suppressed as in a
    /// replay.
    pub(in crate::orchestration) fn replay_events(
        &mut self,
        events: &[HistoryEvent],
    ) -> Vec<(HistoryEvent, Vec<Command>)> {
        self.replay_context.replay(Some(Arc::new(events.iter().filter_map(patch).collect())));
        // The commands among the events are left out, because the code issues them again.
        let arrivals = events.iter().filter(|event| !is_command(event));
        let fed = tracing::subscriber::with_default(NoSubscriber::new(), || {
            arrivals.map(|event| (event.clone(), self.feed(event))).collect()
        });
        self.replay_context.replay(None);
        fed
    }

    fn replay_one(&mut self, event: &HistoryEvent) -> Result<(), Box<Nondeterminism>> {
        // The next command that the code has issued and the history has not confirmed.
        let found = self.replay_context.first_command();
        if is_command(event) {
            if found.as_ref() != Some(event) {
                return Err(Box::new(self.difference(Some(event), found)));
            }
            self.replay_context.pop_command();
            return Ok(());
        }
        // A record for readers. Code that continues a retried orchestration may be further by now.
        if matches!(event, HistoryEvent::SignalsUnread { .. }) {
            return Ok(());
        }
        // An arrival is valid only if every earlier command was confirmed and the code still waits
        // for it.
        if found.is_some() || !self.accepts(event) || self.is_over_before(event) {
            return Err(Box::new(self.difference(Some(event), found)));
        }
        self.act_on(event);
        Ok(())
    }

    /// Returns true if the code has ended although its history continues. `TurnBegan` does not poll
    /// the code, and a fork may be cut where the code of its origin ended, so neither counts.
    fn is_over_before(&self, event: &HistoryEvent) -> bool {
        self.outcome.is_some() && !matches!(event, HistoryEvent::Forked { .. } | HistoryEvent::TurnBegan { .. })
    }

    /// Describes a difference at the event that the replay has reached.
    fn difference(&self, expected: Option<&HistoryEvent>, found: Option<HistoryEvent>) -> Nondeterminism {
        let (expected, ended) = (expected.cloned(), self.outcome.as_ref().map(CodeEnd::from));
        let (awaits, now) = (Vec::new(), self.replay_context.now());
        Nondeterminism { place: self.length, expected, found, ended, awaits, now, begun: [None, None] }
    }

    /// Compares the end of a replay with the events for which the last turn of the history left the
    /// code waiting. After a turn that ended the orchestration there are none.
    pub(in crate::orchestration) fn check_end(&self, awaits: &[Name]) -> Result<(), Box<Nondeterminism>> {
        if self.outcome.is_none() || awaits.is_empty() {
            return Ok(());
        }
        Err(Box::new(Nondeterminism { awaits: awaits.to_vec(), ..self.difference(None, None) }))
    }

    /// Returns true if the code waits for an arrival. In a history it always did.
    pub(in crate::orchestration) fn accepts(&self, event: &HistoryEvent) -> bool {
        match event {
            HistoryEvent::TaskEnded { operation, .. } => self.replay_context.awaits_task(*operation),
            HistoryEvent::TimerFired { operation } => self.replay_context.awaits_timer(*operation),
            HistoryEvent::StepEnded { operation, name, .. } => self.replay_context.awaits_step(*operation, name),
            _ => true,
        }
    }

    /// Feeds an arrival and returns the commands of the code, in order. The event and its commands
    /// count as part of the history.
    pub(in crate::orchestration) fn feed(&mut self, event: &HistoryEvent) -> Vec<Command> {
        self.act_on(event);
        let commands: Vec<Command> = std::iter::from_fn(|| self.replay_context.pop_command()).collect();
        self.length += 1 + commands.len() as u64;
        commands
    }

    /// Applies an arrival to the context, and polls the code if that may let it continue.
    fn act_on(&mut self, event: &HistoryEvent) {
        match event {
            HistoryEvent::Started { at, seed, .. } => {
                self.replay_context.begin(Timestamp::from_microseconds(*at), *seed);
                self.has_started = true;
            }
            // The time alone gives the code nothing to do, so it is not polled.
            HistoryEvent::TurnBegan { at } => return self.replay_context.set_now(Timestamp::from_microseconds(*at)),
            HistoryEvent::TaskEnded { operation, end } => self.replay_context.end_task(*operation, end.clone()),
            HistoryEvent::TimerFired { operation } => self.replay_context.fire(*operation),
            HistoryEvent::SignalReceived { name, payload } => self.receive(name, payload),
            HistoryEvent::SignalCarried { name, payload } => {
                // The code is polled by the next event, so that it finds all carried signals at
                // once.
                self.has_unpolled = true;
                return self.receive(name, payload);
            }
            // A record for readers of the history: the code has ended.
            HistoryEvent::SignalsUnread { .. } => return,
            HistoryEvent::StepEnded { operation, end, at, .. } => {
                at.iter().for_each(|at| self.replay_context.set_now(Timestamp::from_microseconds(*at)));
                self.replay_context.end_step(*operation, end.clone());
            }
            HistoryEvent::CancelRequested => return self.cancel(),
            HistoryEvent::RepliesCarried { replies } => return self.replay_context.carry_replies(*replies),
            // A `CancelRequested` follows when the code has started.
            HistoryEvent::CancelCarried => return self.replay_context.carry_cancel(),
            HistoryEvent::Forked { .. } => {
                // The tag of the fork counts against the limit of tags from here on.
                self.replay_context.keep_tag_of_fork();
                return self.replay_context.submit_again();
            }
            HistoryEvent::TaskSubmitted { .. }
            | HistoryEvent::TimerStarted { .. }
            | HistoryEvent::OperationCancelled { .. }
            | HistoryEvent::TaskDetached { .. }
            | HistoryEvent::TagSet { .. }
            | HistoryEvent::TagRemoved { .. }
            | HistoryEvent::Patched { .. } => return,
        }
        self.poll();
        if matches!(event, HistoryEvent::Started { .. }) {
            self.cancel_if_it_only_continues();
        }
    }

    /// Ends code that has continued as new before it awaited anything, although a request to cancel
    /// was carried to it. It would otherwise continue for ever, and never be notified.
    fn cancel_if_it_only_continues(&mut self) {
        let continues = matches!(self.outcome, Some(CodeOutcome::ContinuedAsNew(_)));
        if continues && self.replay_context.is_cancel_carried() && !self.replay_context.handles_cancel() {
            self.outcome = Some(CodeOutcome::Cancelled);
        }
    }

    fn receive(&self, name: &str, payload: &[u8]) {
        if let Ok(name) = Name::new(name) {
            self.replay_context.receive(&name, Bytes::copy_from_slice(payload));
        }
    }

    fn cancel(&mut self) {
        if self.replay_context.request_cancel() {
            self.poll();
        } else if self.code.is_some() {
            // Dropping the code abandons everything that it awaits, which cancels it.
            self.stop(CodeOutcome::Cancelled);
        }
    }

    fn poll(&mut self) {
        self.has_unpolled = false;
        // The code may wake itself, for example when one of its futures completes another. It is
        // polled until it rests.
        for _ in 0..bounds::ORCHESTRATION_POLLS {
            self.wake_flag.0.store(false, Ordering::Relaxed);
            if self.poll_once() || !self.wake_flag.0.load(Ordering::Relaxed) {
                return;
            }
        }
        self.stop(CodeOutcome::Stuck(
            "the code wakes itself repeatedly without progress; await a timer, step or event in it".into(),
        ));
    }

    /// Polls the code once, and returns true if it has ended.
    fn poll_once(&mut self) -> bool {
        let Some(code) = &mut self.code else { return true };
        let waker = Waker::from(Arc::clone(&self.wake_flag));
        // Under tokio's cooperative budget the result of a poll depends on what else the tokio task
        // has polled. A replay would see different polls.
        let mut code = unconstrained(code.as_mut());
        let mut context = Context::from_waker(&waker);
        let poll = || run_code(&self.replay_context, || Pin::new(&mut code).poll(&mut context));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(returned)) => self.stop(outcome_of(returned)),
            Err(panic) => self.stop(panicked(&*panic)),
        }
        true
    }

    fn stop(&mut self, outcome: CodeOutcome) {
        self.outcome = Some(outcome);
        let code = self.code.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run_code(&self.replay_context, || drop(code)))) {
            // A panic in a destructor of the code replaces the outcome.
            self.outcome = Some(panicked(&*panic));
        }
    }

    /// Returns true if something holds the context of code that has ended: a task that the code has
    /// spawned, a step that still runs, or the function of a query.
    pub(in crate::orchestration) fn outlives_its_code(&self) -> bool {
        self.outcome.is_some() && Arc::strong_count(&self.replay_context) > 1
    }

    /// Ends code that can never continue, because it awaits something outside of the orchestration,
    /// and code whose context was used outside of it.
    ///
    /// Code with signals for which it was not polled can continue: the message behind them polls
    /// it.
    pub(in crate::orchestration) fn stop_if_stuck(&mut self) {
        if self.replay_context.was_used_elsewhere() {
            return self.stop(CodeOutcome::Stuck(USED_ELSEWHERE.to_owned()));
        }
        let can_continue = self.has_unpolled || self.replay_context.awaits_anything();
        if self.has_started && self.outcome.is_none() && !can_continue {
            let text = "the code awaits something that no orchestration can wait for, such as a task that it spawned; use the activities, \
                        timers, steps and events of its context";
            self.stop(CodeOutcome::Stuck(text.to_owned()));
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> CodeOutcome {
    CodeOutcome::Panicked(Failure::of_panic(panic).message().to_owned())
}

fn outcome_of(returned: Result<Option<Bytes>, Failure>) -> CodeOutcome {
    match returned {
        Ok(result) => CodeOutcome::Completed(result),
        Err(failure) => match failure.alternative_end() {
            Some(AlternativeEnd::ContinueAsNew(payload)) => CodeOutcome::ContinuedAsNew(payload.clone()),
            Some(AlternativeEnd::Cancelled) => CodeOutcome::Cancelled,
            Some(_) => CodeOutcome::Failed(
                "an orchestration cannot end by waiting; await its tasks, timers and events in its code".to_owned(),
            ),
            None => CodeOutcome::Failed(failure.message().to_owned()),
        },
    }
}

fn patch(event: &HistoryEvent) -> Option<String> {
    if let HistoryEvent::Patched { patch } = event { Some(patch.clone()) } else { None }
}

/// Returns true if an event records a command of the code, and not an arrival.
pub(in crate::orchestration) fn is_command(event: &HistoryEvent) -> bool {
    matches!(
        event,
        HistoryEvent::TaskSubmitted { .. }
            | HistoryEvent::TimerStarted { .. }
            | HistoryEvent::OperationCancelled { .. }
            | HistoryEvent::TaskDetached { .. }
            | HistoryEvent::TagSet { .. }
            | HistoryEvent::TagRemoved { .. }
            | HistoryEvent::Patched { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onward_store::NewTask;

    use super::super::history::{StepEnd, TaskEnd};
    use super::*;
    use crate::orchestration::code::OrchestrationContext;

    type CodeResult = Result<Option<Bytes>, Failure>;

    fn code<A: Future<Output = CodeResult> + Send + 'static>(
        code: impl Fn(OrchestrationContext) -> A + Send + Sync + 'static,
    ) -> Code {
        Arc::new(move |replay_context| Box::pin(code(OrchestrationContext::new(replay_context))))
    }

    fn machine(code: &Code) -> Machine {
        let kind = Name::new("order").unwrap();
        Machine::new(code, Arc::new(ReplayContext::new(TaskId(1), kind, Bytes::new(), 0, 1 << 20)))
    }

    fn charge(context: &OrchestrationContext) -> crate::orchestration::code::Running<u32> {
        context.activity_task(NewTask::new("charge").unwrap()).start()
    }

    /// Charges, waits a second, and returns the charged amount.
    fn charging() -> Code {
        code(|context| async move {
            let charged = charge(&context).await?;
            context.timer(Duration::from_secs(1)).await;
            Ok(Some(charged.to_string().into()))
        })
    }

    /// Waits for a second, and panics when it is dropped.
    fn panicking_when_dropped() -> Code {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        code(|context| async move {
            let _panics = Panics;
            context.timer(Duration::from_secs(1)).await;
            Ok(None)
        })
    }

    const STARTED: HistoryEvent = HistoryEvent::Started { at: 0, seed: 7, version: None, flags: None };

    fn submitted(operation: u64, kind: &str) -> HistoryEvent {
        HistoryEvent::TaskSubmitted { operation, kind: kind.to_owned() }
    }

    fn ended(operation: u64, result: &str) -> HistoryEvent {
        let result = Some(result.as_bytes().to_vec().into());
        HistoryEvent::TaskEnded { operation, end: TaskEnd::Completed { result } }
    }

    fn timer(operation: u64, until: i64) -> HistoryEvent {
        HistoryEvent::TimerStarted { operation, until }
    }

    fn events(commands: &[Command]) -> Vec<HistoryEvent> {
        commands.iter().map(Command::event).collect()
    }

    fn nondeterminism(place: u64, expected: Option<HistoryEvent>, found: Option<HistoryEvent>) -> Nondeterminism {
        let (awaits, now) = (Vec::new(), Timestamp::from_microseconds(0));
        Nondeterminism { place, expected, found, ended: None, awaits, now, begun: [None, None] }
    }

    fn difference(code: &Code, history: &[HistoryEvent]) -> Nondeterminism {
        *machine(code).replay(history).unwrap_err()
    }

    /// Shows: D1
    #[test]
    fn what_the_code_does_about_an_event_comes_back_as_commands() {
        let mut machine = machine(&charging());
        assert_eq!(events(&machine.feed(&STARTED)), [submitted(1, "charge")]);
        assert_eq!(events(&machine.feed(&ended(1, "5"))), [timer(2, 1_000_000)]);
        assert!(machine.feed(&HistoryEvent::TimerFired { operation: 2 }).is_empty());
        assert_eq!(machine.outcome(), Some(&CodeOutcome::Completed(Some("5".into()))));
    }

    /// Shows: D1
    #[test]
    fn a_replay_goes_on_where_its_history_ends() {
        let mut machine = machine(&charging());
        machine.replay(&[STARTED, submitted(1, "charge"), ended(1, "5"), timer(2, 1_000_000)]).unwrap();
        assert_eq!((machine.length(), machine.outcome()), (4, None));
        machine.feed(&HistoryEvent::TimerFired { operation: 2 });
        assert_eq!(machine.outcome(), Some(&CodeOutcome::Completed(Some("5".into()))));
    }

    /// Shows: D5
    #[test]
    fn another_command_than_in_the_history_is_reported_with_both() {
        let found = difference(&charging(), &[STARTED, submitted(1, "refund")]);
        let (expected, found_event) = (Some(submitted(1, "refund")), Some(submitted(1, "charge")));
        assert_eq!(found, nondeterminism(1, expected, found_event));
    }

    /// Shows: D5
    #[test]
    fn a_command_that_the_history_lacks_is_reported_with_its_position() {
        let found = difference(&charging(), &[STARTED, ended(1, "5")]);
        assert_eq!((found.place, found.found), (1, Some(submitted(1, "charge"))));
    }

    /// Shows: D5
    #[test]
    fn a_command_beyond_the_end_of_the_history_is_reported() {
        let found = difference(&charging(), &[STARTED]);
        assert_eq!(found, nondeterminism(1, None, Some(submitted(1, "charge"))));
    }

    /// Shows: D5
    #[test]
    fn code_that_has_ended_too_early_is_reported() {
        let early = code(|_| async { Ok(None) });
        let found = difference(&early, &[STARTED, submitted(1, "charge")]);
        let expected = nondeterminism(1, Some(submitted(1, "charge")), None);
        assert_eq!(found, Nondeterminism { ended: Some(CodeEnd::Completed), ..expected });
    }

    /// Shows: D5
    #[test]
    fn the_end_of_a_task_without_a_waiter_is_notified() {
        let history = [STARTED, submitted(1, "charge"), ended(2, "5")];
        let found = difference(&charging(), &history);
        assert_eq!(found, nondeterminism(2, Some(ended(2, "5")), None));
    }

    /// Shows: D5
    #[test]
    fn a_history_from_before_a_patch_goes_the_old_way() {
        let patched = code(|context| async move {
            if context.patched("wait-first") {
                context.timer(Duration::from_secs(1)).await;
            }
            charge(&context).await?;
            Ok(None)
        });
        machine(&patched).replay(&[STARTED, submitted(1, "charge")]).unwrap();
        let new = [HistoryEvent::Patched { patch: "wait-first".into() }, timer(1, 1_000_000)];
        assert_eq!(events(&machine(&patched).feed(&STARTED)), new);
        machine(&patched).replay(&[&[STARTED], &new[..]].concat()).unwrap();
    }

    /// Shows: D5
    #[test]
    fn what_came_by_before_a_patch_goes_the_old_way_however_often_it_asks() {
        let round = code(|context| async move {
            loop {
                if context.patched("wait-first") {
                    context.timer(Duration::from_secs(1)).await;
                }
                charge(&context).await?;
            }
        });
        let old = [STARTED, submitted(1, "charge")];
        let mut live = machine(&round);
        live.replay(&old).unwrap();
        let after = events(&live.feed(&ended(1, "5")));
        assert_eq!(after, [submitted(2, "charge")]);
        machine(&round).replay(&[&old[..], &[ended(1, "5")], &after].concat()).unwrap();
    }

    /// Shows: D7
    #[test]
    fn the_time_that_the_code_sees_is_that_at_which_its_last_step_ended() {
        let timed = code(|context| async move {
            context.step("look", || async { Ok(()) }).await?;
            Ok(Some(context.now().as_microseconds().to_string().into()))
        });
        let mut machine = machine(&timed);
        machine.feed(&STARTED);
        let end = StepEnd::Done { result: b"null".to_vec().into() };
        machine.feed(&HistoryEvent::StepEnded { operation: 1, name: "look".into(), end, at: Some(42) });
        assert_eq!(machine.outcome(), Some(&CodeOutcome::Completed(Some("42".into()))));
    }

    /// Shows: D5
    #[test]
    fn a_step_that_holds_an_operation_is_let_go_of_by_a_replay() {
        let holding = code(|context| async move {
            let held = charge(&context);
            let step = context.step("hold", move || async move {
                drop(held);
                Ok(())
            });
            step.await?;
            Ok(None)
        });
        let end = StepEnd::Done { result: b"null".to_vec().into() };
        let over = HistoryEvent::StepEnded { operation: 2, name: "hold".into(), end, at: None };
        let cancelled = HistoryEvent::OperationCancelled { operation: 1 };
        machine(&holding).replay(&[STARTED, submitted(1, "charge"), over, cancelled]).unwrap();
    }

    /// Shows: D9
    #[test]
    fn code_that_waits_for_no_cancellation_any_more_and_for_nothing_else_is_stuck() {
        let foreign = code(|context| async move {
            assert!(futures_util::future::poll_immediate(context.cancelled()).await.is_none());
            std::future::pending().await
        });
        let mut machine = machine(&foreign);
        machine.feed(&STARTED);
        machine.stop_if_stuck();
        assert!(matches!(machine.outcome(), Some(CodeOutcome::Stuck(_))), "{:?}", machine.outcome());
    }

    /// A turn is written in parts. A history can therefore end with signals for which the code was
    /// not polled yet: the next message polls it.
    ///
    /// Shows: D3, D9
    #[test]
    fn code_with_signals_that_it_was_not_polled_for_is_not_stuck() {
        let counting = code(|context| async move {
            let queue = context.queue::<u32>("number")?;
            queue.next().await?;
            queue.next().await?;
            Ok(None)
        });
        let name = "number".to_owned();
        let carried = HistoryEvent::SignalCarried { name: name.clone(), payload: b"1".to_vec().into() };
        let mut machine = machine(&counting);
        machine.replay(&[STARTED, carried]).unwrap();
        machine.stop_if_stuck();
        assert!(machine.outcome().is_none(), "{:?}", machine.outcome());
        machine.feed(&HistoryEvent::SignalReceived { name, payload: b"2".to_vec().into() });
        assert!(matches!(machine.outcome(), Some(CodeOutcome::Completed(None))), "{:?}", machine.outcome());
    }

    /// Shows: D9
    #[test]
    fn code_that_panics_when_it_is_dropped_is_stuck() {
        let mut machine = machine(&panicking_when_dropped());
        machine.feed(&STARTED);
        machine.feed(&HistoryEvent::CancelRequested);
        assert!(matches!(machine.outcome(), Some(CodeOutcome::Panicked(text)) if text.contains("dropped")));
    }

    /// Shows: D4
    #[test]
    fn what_the_code_lets_go_of_is_cancelled() {
        let letting_go = code(|context| async move {
            drop(charge(&context));
            drop(context.timer(Duration::from_secs(1)));
            Ok(None)
        });
        let cancelled = |operation| HistoryEvent::OperationCancelled { operation };
        let expected = [submitted(1, "charge"), cancelled(1), timer(2, 1_000_000), cancelled(2)];
        assert_eq!(events(&machine(&letting_go).feed(&STARTED)), expected);
    }

    /// Sets a tag, and returns the tags after that.
    fn tagging(value: &'static str) -> Code {
        code(move |context| async move {
            context.set_tag("stage", value)?;
            context.remove_tag("customer")?;
            let tags: Vec<String> = context.tags().iter().map(|(key, value)| format!("{key}={value}")).collect();
            Ok(Some(tags.join(" ").into()))
        })
    }

    fn tagged(value: &str) -> [HistoryEvent; 3] {
        let set = HistoryEvent::TagSet { key: "stage".into(), value: value.into(), before: Some("picking".into()) };
        [STARTED, set, HistoryEvent::TagRemoved { key: "customer".into(), before: None }]
    }

    fn began_with(machine: &Machine, tags: &[(&str, &str)]) {
        machine.replay_context().begin_with_tags(tags.iter().copied().collect(), 0);
    }

    /// Shows: D10, D1
    #[test]
    fn a_change_of_tags_is_a_command_with_what_was_before() {
        let mut machine = machine(&tagging("packing"));
        began_with(&machine, &[("stage", "picking"), ("region", "eu")]);
        assert_eq!(events(&machine.feed(&STARTED)), tagged("packing")[1..]);
        assert_eq!(machine.outcome(), Some(&CodeOutcome::Completed(Some("region=eu stage=packing".into()))));
    }

    /// Shows: D10, D5
    #[test]
    fn another_tag_than_in_the_history_is_reported_with_both() {
        let mut other = machine(&tagging("sent"));
        began_with(&other, &[("stage", "picking")]);
        let found = *other.replay(&tagged("packing")).unwrap_err();
        let [_, expected, _] = tagged("packing");
        let [_, does, _] = tagged("sent");
        let difference = nondeterminism(1, Some(expected), Some(does));
        assert_eq!(found, Nondeterminism { ended: Some(CodeEnd::Completed), ..difference });
        let text = found.to_string();
        assert!(text.contains("at event 1") && text.contains("packing") && text.contains("sent"), "{text}");
    }

    /// Shows: D9
    #[test]
    fn a_machine_that_is_put_away_cancels_nothing() {
        let replay_context =
            Arc::new(ReplayContext::new(TaskId(1), Name::new("order").unwrap(), Bytes::new(), 0, 1 << 20));
        let mut machine = Machine::new(&charging(), Arc::clone(&replay_context));
        machine.feed(&STARTED);
        drop(machine);
        assert!(replay_context.pop_command().is_none());
    }

    /// Shows: D9
    #[test]
    fn code_that_panics_when_it_is_evicted_affects_no_other() {
        let mut machine = machine(&panicking_when_dropped());
        machine.feed(&STARTED);
        drop(machine);
    }

    /// Shows: D8
    #[test]
    fn a_fork_submits_again_what_was_under_way() {
        let two = code(|context| async move {
            let (first, second) = (charge(&context), charge(&context));
            Ok(Some(format!("{} {}", first.await?, second.await?).into()))
        });
        let history = [STARTED, submitted(1, "charge"), submitted(2, "charge"), ended(1, "5")];
        let mut fork = machine(&two);
        assert_eq!(events(&fork.fork(TaskId(9), &history).unwrap()), [submitted(2, "charge")]);
        let whole = [&history[..], &[HistoryEvent::Forked { from: 9 }, submitted(2, "charge")]].concat();
        assert_eq!(fork.length(), whole.len() as u64);
        let mut again = machine(&two);
        again.replay(&whole).unwrap();
        again.feed(&ended(2, "6"));
        assert_eq!(again.outcome(), Some(&CodeOutcome::Completed(Some("5 6".into()))));
    }
}
