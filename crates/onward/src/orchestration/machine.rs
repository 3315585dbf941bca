//! Running the code of an orchestration, without a clock, a store or a runtime: events in, commands out.
//!
//! The code is polled once after each thing that comes from outside. What it does about it ([`Command`]) belongs behind that in the history,
//! so that a replay, which feeds the same events, can compare what the code does now with what it did then.

use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use onward_store::{Name, Timestamp};

use super::history::HistoryEvent;
use super::journal::{Command, Journal};
use crate::failure::{Failure, Instead};
use crate::limits;

/// The code of one orchestration, under way.
pub(crate) type CodeFuture = Pin<Box<dyn Future<Output = Result<Option<Bytes>, Failure>> + Send>>;

/// The code of a kind of orchestrations.
pub(crate) type Code = Arc<dyn Fn(Arc<Journal>) -> CodeFuture + Send + Sync>;

/// How the code has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finish {
    Completed(Option<Bytes>),
    Failed(String),
    /// Somebody wanted it cancelled, and it did not say what that means.
    Cancelled,
    ContinuedAsNew(Bytes),
    /// It cannot go on: it panicked, or waits for something that is not of the orchestration.
    Stuck(String),
}

/// The code does not do what the history says that it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nondeterminism {
    /// The place of the event in the history, from 0.
    pub(super) place: u64,
    /// What the history has there; `None` at its end.
    pub(super) expected: Option<HistoryEvent>,
    /// What the code does; `None` for nothing.
    pub(super) found: Option<HistoryEvent>,
}

impl fmt::Display for Nondeterminism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, expected, found } = self;
        write!(f, "the code does not do what its history says: at event {place} ")?;
        match expected {
            Some(expected) => write!(f, "the history has {expected:?}")?,
            None => f.write_str("the history ends")?,
        }
        match found {
            Some(found) => write!(f, ", and the code does {found:?}")?,
            None => f.write_str(", and the code does nothing of the kind")?,
        }
        f.write_str("; bring back the code that wrote it or put the change behind `patched`, then retry the task")
    }
}

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One orchestration in memory.
pub(super) struct Machine {
    journal: Arc<Journal>,
    code: Option<CodeFuture>,
    flag: Arc<Flag>,
    finish: Option<Finish>,
    /// How many events it has been fed.
    length: u64,
    has_started: bool,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("journal", &self.journal).field("length", &self.length).finish_non_exhaustive()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.journal.close();
    }
}

impl Machine {
    /// The code before its first event.
    pub(super) fn new(code: &Code, journal: Arc<Journal>) -> Self {
        let future = code(Arc::clone(&journal));
        Self { journal, code: Some(future), flag: Arc::default(), finish: None, length: 0, has_started: false }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the code has begun.
    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// How the code has ended, if it has.
    pub(super) fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Feeds the events of a history, and compares what the code does with what it did.
    pub(super) fn replay(&mut self, events: &[HistoryEvent]) -> Result<(), Box<Nondeterminism>> {
        let patches: HashSet<String> = events.iter().filter_map(patch).collect();
        self.journal.replay(Some(Arc::new(patches)));
        for event in events {
            self.replay_one(event)?;
            self.length += 1;
        }
        if let Some(found) = self.journal.first_emitted() {
            return Err(Box::new(Nondeterminism { place: self.length, expected: None, found: Some(found) }));
        }
        self.journal.replay(None);
        // What it showed then was written then.
        self.journal.take_shown();
        Ok(())
    }

    fn replay_one(&mut self, event: &HistoryEvent) -> Result<(), Box<Nondeterminism>> {
        let found = self.journal.first_emitted();
        let differs = |found| Box::new(Nondeterminism { place: self.length, expected: Some(event.clone()), found });
        if is_command(event) {
            if found.as_ref() != Some(event) {
                return Err(differs(found));
            }
            self.journal.pop_emitted();
            return Ok(());
        }
        if found.is_some() || !self.takes(event) {
            return Err(differs(found));
        }
        self.act_on(event);
        Ok(())
    }

    /// Whether the code waits for what has come. In a history it always did.
    pub(super) fn takes(&self, event: &HistoryEvent) -> bool {
        match event {
            HistoryEvent::TaskEnded { operation, .. } => self.journal.awaits_task(*operation),
            HistoryEvent::TimerFired { operation } => self.journal.awaits_timer(*operation),
            HistoryEvent::StepEnded { operation, name, .. } => self.journal.awaits_step(*operation, name),
            _ => true,
        }
    }

    /// Feeds what has come; answers what the code does about it, in order. The event counts as part of the history, and so does what follows.
    pub(super) fn feed(&mut self, event: &HistoryEvent) -> Vec<Command> {
        self.act_on(event);
        let commands: Vec<Command> = std::iter::from_fn(|| self.journal.pop_emitted()).collect();
        self.length += 1 + commands.len() as u64;
        commands
    }

    fn act_on(&mut self, event: &HistoryEvent) {
        match event {
            HistoryEvent::Started { at, seed } => {
                self.journal.begin(Timestamp::from_microseconds(*at), *seed);
                self.has_started = true;
            }
            HistoryEvent::TurnBegan { at } => return self.journal.set_now(Timestamp::from_microseconds(*at)),
            HistoryEvent::TaskEnded { operation, end } => self.journal.end_task(*operation, end.clone()),
            HistoryEvent::TimerFired { operation } => self.journal.fire(*operation),
            HistoryEvent::SignalReceived { name, payload } => self.receive(name, payload),
            HistoryEvent::SignalCarried { name, payload } => return self.receive(name, payload),
            HistoryEvent::StepEnded { operation, end, .. } => self.journal.end_step(*operation, end.clone()),
            HistoryEvent::CancelRequested => return self.cancel(),
            HistoryEvent::TaskSubmitted { .. }
            | HistoryEvent::TimerStarted { .. }
            | HistoryEvent::OperationCancelled { .. }
            | HistoryEvent::TaskDetached { .. }
            | HistoryEvent::Patched { .. } => return,
        }
        self.poll();
    }

    fn receive(&self, name: &str, payload: &[u8]) {
        if let Ok(name) = Name::new(name) {
            self.journal.receive(&name, Bytes::copy_from_slice(payload));
        }
    }

    fn cancel(&mut self) {
        if self.journal.request_cancel() {
            self.poll();
        } else if self.code.take().is_some() {
            // What it waited for was let go of, and so is cancelled.
            self.finish = Some(Finish::Cancelled);
        }
    }

    fn poll(&mut self) {
        for _ in 0..limits::ORCHESTRATION_POLLS {
            self.flag.0.store(false, Ordering::Relaxed);
            if self.poll_once() || !self.flag.0.load(Ordering::Relaxed) {
                return;
            }
        }
        self.stop(Finish::Stuck(
            "the code wakes itself again and again and gets nowhere; have it await something".into(),
        ));
    }

    /// Answers whether it is over.
    fn poll_once(&mut self) -> bool {
        let Some(code) = &mut self.code else { return true };
        let waker = Waker::from(Arc::clone(&self.flag));
        let polled = catch_unwind(AssertUnwindSafe(|| code.as_mut().poll(&mut Context::from_waker(&waker))));
        match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(answer)) => self.stop(finish_of(answer)),
            Err(panic) => {
                let failure = Failure::of_panic(&*panic);
                self.stop(Finish::Stuck(format!("the code: {}; mend it, then retry the task", failure.message())));
            }
        }
        true
    }

    fn stop(&mut self, finish: Finish) {
        self.code = None;
        self.finish = Some(finish);
    }

    /// Ends what can never go on, since the code awaits something that is not of the orchestration.
    pub(super) fn notice_if_stuck(&mut self) {
        if self.finish.is_none() && !self.journal.awaits_anything() {
            let text = "the code awaits something that no orchestration can wait for; use the timers, steps and events of its context";
            self.stop(Finish::Stuck(text.to_owned()));
        }
    }
}

fn finish_of(answer: Result<Option<Bytes>, Failure>) -> Finish {
    match answer {
        Ok(result) => Finish::Completed(result),
        Err(failure) => match failure.instead() {
            Some(Instead::ContinueAsNew(payload)) => Finish::ContinuedAsNew(payload.clone()),
            Some(_) => Finish::Failed("an orchestration cannot end so; it awaits what it waits for".to_owned()),
            None => Finish::Failed(failure.message().to_owned()),
        },
    }
}

fn patch(event: &HistoryEvent) -> Option<String> {
    if let HistoryEvent::Patched { patch } = event { Some(patch.clone()) } else { None }
}

/// Whether an event tells of what the code did, and not of what came.
fn is_command(event: &HistoryEvent) -> bool {
    matches!(
        event,
        HistoryEvent::TaskSubmitted { .. }
            | HistoryEvent::TimerStarted { .. }
            | HistoryEvent::OperationCancelled { .. }
            | HistoryEvent::TaskDetached { .. }
            | HistoryEvent::Patched { .. }
    )
}
