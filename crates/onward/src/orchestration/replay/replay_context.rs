//! What the code of an orchestration and the machine that runs it have in common.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use onward_store::bounds::AWAITED_NAMES;
use onward_store::{Name, NewTask, Tags, TaskId, Timestamp};
use rustc_hash::FxHashMap;

use super::history::{HistoryEvent, StepEnd, TaskEnd};
use super::random::Random;
use super::store_guard::confined;
use super::tags;
use crate::error::Error;
use crate::handlers::Failure;

/// A step that is run in the turn.
pub(in crate::orchestration) type StepFuture = Pin<Box<dyn Future<Output = StepEnd> + Send>>;

/// What the code does that a history tells of.
#[derive(Debug)]
pub(in crate::orchestration) enum Command {
    Submit {
        operation: u64,
        task: Box<NewTask>,
    },
    Detach {
        task: Box<NewTask>,
    },
    StartTimer {
        operation: u64,
        until: Timestamp,
    },
    Cancel {
        operation: u64,
    },
    Patch {
        patch: String,
    },
    /// Gives the orchestration a tag, or removes it.
    ChangeTag {
        key: String,
        value: Option<String>,
        before: Option<String>,
    },
}

impl Command {
    pub(in crate::orchestration) fn event(&self) -> HistoryEvent {
        match self {
            Self::Submit { operation, task } => {
                HistoryEvent::TaskSubmitted { operation: *operation, kind: task.kind.to_string() }
            }
            Self::Detach { task } => HistoryEvent::TaskDetached { kind: task.kind.to_string() },
            Self::StartTimer { operation, until } => {
                HistoryEvent::TimerStarted { operation: *operation, until: until.as_microseconds() }
            }
            Self::Cancel { operation } => HistoryEvent::OperationCancelled { operation: *operation },
            Self::Patch { patch } => HistoryEvent::Patched { patch: patch.clone() },
            Self::ChangeTag { key, value: Some(value), before } => {
                HistoryEvent::TagSet { key: key.clone(), value: value.clone(), before: before.clone() }
            }
            Self::ChangeTag { key, value: None, before } => {
                HistoryEvent::TagRemoved { key: key.clone(), before: before.clone() }
            }
        }
    }
}

/// What an operation has come to.
#[derive(Debug)]
pub(in crate::orchestration) enum Delivery {
    Task(TaskEnd),
    Fired,
    Signal(Bytes),
    Step(StepEnd),
}

#[derive(Debug)]
enum Kind {
    Task,
    Timer(Timestamp),
    Signal(Name),
    Step(String),
}

#[derive(Debug)]
struct Operation {
    kind: Kind,
    delivery: Option<Delivery>,
    waker: Option<Waker>,
}

/// Signals of one name: those that nobody took, or those who wait.
#[derive(Debug, Default)]
struct Inbox {
    waiting: VecDeque<Bytes>,
    waiters: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Cancellation {
    is_requested: bool,
    /// Whether the code has asked to hear of it.
    is_handled: bool,
    /// Whether the code knows of it.
    is_heard: bool,
    /// Whether it was requested before the orchestration began again.
    is_carried: bool,
    /// Those who wait for it, by the numbers that they were given.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

impl Cancellation {
    /// Tells the code whether it is requested.
    fn hear(&mut self) -> bool {
        self.is_heard |= self.is_requested;
        self.is_requested
    }

    fn is_unheard(&self) -> bool {
        (self.is_requested || self.is_carried) && !self.is_heard
    }
}

/// What an orchestration shows of itself, where it has said so in this turn.
#[derive(Debug, Default)]
pub(in crate::orchestration) struct Shown {
    pub(in crate::orchestration) status: Option<Bytes>,
    pub(in crate::orchestration) values: Vec<(String, Option<Bytes>)>,
}

/// What answers a question: the name of the question is known.
pub(super) type Answer = Arc<dyn Fn(&[u8]) -> Result<Bytes, Failure> + Send + Sync>;

/// A step that the code has begun.
pub(in crate::orchestration) struct NewStep {
    pub(in crate::orchestration) operation: u64,
    pub(in crate::orchestration) name: String,
    pub(in crate::orchestration) future: StepFuture,
}

struct State {
    now: Timestamp,
    random: Random,
    next_operation: u64,
    operations: FxHashMap<u64, Operation>,
    emitted: VecDeque<Command>,
    /// The tasks that are under way, while a history is taken over that submits them again; else
    /// none is kept.
    submitted: Option<FxHashMap<u64, NewTask>>,
    steps: Vec<NewStep>,
    timers: BTreeSet<(Timestamp, u64)>,
    inboxes: BTreeMap<Name, Inbox>,
    cancellation: Cancellation,
    shown: Shown,
    /// Without those that the engine keeps.
    tags: Tags,
    /// How many the engine keeps.
    own_tags: usize,
    answers: BTreeMap<String, Answer>,
    /// How many updates were answered.
    replies: u64,
    /// The patches of the history that is replayed; `None` while it is not.
    replayed_patches: Option<Arc<HashSet<String>>>,
    /// The patches that the code was told to be without, and is without from then on.
    refused_patches: HashSet<String>,
    /// Steps that are being run and that the code has let go of.
    abandoned_steps: Vec<u64>,
    is_closed: bool,
}

/// The journal of one orchestration. Everything in it happens in the turns of that, one after the
/// other.
pub(in crate::orchestration) struct Journal {
    pub(in crate::orchestration) task: TaskId,
    pub(in crate::orchestration) kind: Name,
    pub(in crate::orchestration) payload: Bytes,
    pub(in crate::orchestration) generation: u32,
    pub(in crate::orchestration) payload_limit: usize,
    state: Mutex<State>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("task", &self.task).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Journal {
    pub(in crate::orchestration) fn new(
        task: TaskId,
        kind: Name,
        payload: Bytes,
        generation: u32,
        payload_limit: usize,
    ) -> Self {
        let state = State {
            now: Timestamp::MIN,
            random: Random::new(0),
            next_operation: first_operation(generation),
            operations: FxHashMap::default(),
            emitted: VecDeque::new(),
            submitted: None,
            steps: Vec::new(),
            timers: BTreeSet::new(),
            inboxes: BTreeMap::new(),
            cancellation: Cancellation::default(),
            shown: Shown::default(),
            tags: Tags::new(),
            own_tags: 0,
            answers: BTreeMap::new(),
            replies: 0,
            replayed_patches: None,
            refused_patches: HashSet::new(),
            abandoned_steps: Vec::new(),
            is_closed: false,
        };
        Self { task, kind, payload, generation, payload_limit, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of the first operation after an orchestration has continued as new so often. Numbers
/// differ between generations, so that what one of them has let go of is nothing that a later one
/// waits for.
fn first_operation(generation: u32) -> u64 {
    (u64::from(generation) << 32) + 1
}

/// For the code.
impl Journal {
    pub(in crate::orchestration) fn now(&self) -> Timestamp {
        self.state().now
    }

    pub(in crate::orchestration) fn random(&self) -> u64 {
        self.state().random.draw()
    }

    pub(in crate::orchestration) fn is_replaying(&self) -> bool {
        self.state().replayed_patches.is_some()
    }

    pub(in crate::orchestration) fn submit(&self, task: NewTask) -> u64 {
        let mut state = self.state();
        let operation = state.begin(Kind::Task);
        let task = NewTask { parent: Some(self.task), report: Some(operation), ..task };
        if let Some(submitted) = &mut state.submitted {
            submitted.insert(operation, task.clone());
        }
        state.emitted.push_back(Command::Submit { operation, task: Box::new(task) });
        operation
    }

    pub(in crate::orchestration) fn detach(&self, task: NewTask) {
        self.state().emitted.push_back(Command::Detach { task: Box::new(task) });
    }

    pub(in crate::orchestration) fn start_timer(&self, until: Timestamp) -> u64 {
        let mut state = self.state();
        let operation = state.begin(Kind::Timer(until));
        state.timers.insert((until, operation));
        state.emitted.push_back(Command::StartTimer { operation, until });
        operation
    }

    pub(in crate::orchestration) fn await_signal(&self, name: &Name) -> u64 {
        let mut state = self.state();
        let operation = state.begin(Kind::Signal(name.clone()));
        let inbox = state.inboxes.entry(name.clone()).or_default();
        match inbox.waiting.pop_front() {
            Some(payload) => state.deliver(operation, Delivery::Signal(payload)),
            None => inbox.waiters.push_back(operation),
        }
        operation
    }

    /// Takes a signal that has come already.
    pub(in crate::orchestration) fn take_signal(&self, name: &Name) -> Option<Bytes> {
        self.state().inboxes.get_mut(name)?.waiting.pop_front()
    }

    pub(in crate::orchestration) fn begin_step(&self, name: String, future: StepFuture) -> u64 {
        let mut state = self.state();
        let operation = state.begin(Kind::Step(name.clone()));
        state.steps.push(NewStep { operation, name, future });
        operation
    }

    /// Whether the code goes the way of a patch: always, but where its history is from before it.
    /// That stays so, however often it asks.
    pub(in crate::orchestration) fn is_patched(&self, patch: &str) -> bool {
        let mut state = self.state();
        let is_unknown = state.replayed_patches.as_ref().is_some_and(|patches| !patches.contains(patch));
        if is_unknown || state.refused_patches.contains(patch) {
            state.refused_patches.insert(patch.to_owned());
            return false;
        }
        state.emitted.push_back(Command::Patch { patch: patch.to_owned() });
        true
    }

    pub(in crate::orchestration) fn show_status(&self, status: Bytes) {
        self.state().shown.status = Some(status);
    }

    pub(in crate::orchestration) fn show_value(&self, key: String, value: Option<Bytes>) {
        let mut state = self.state();
        state.shown.values.retain(|(known, _)| *known != key);
        state.shown.values.push((key, value));
    }

    pub(in crate::orchestration) fn tags(&self) -> Tags {
        self.state().tags.clone()
    }

    /// Changes a tag; `None` removes it. Nothing has changed where that is an error.
    pub(in crate::orchestration) fn change_tag(&self, key: String, value: Option<String>) -> Result<(), Error> {
        let mut state = self.state();
        let mut tags = state.tags.clone();
        let before = tags::put(&mut tags, &key, value.as_deref());
        tags::check(&tags, state.own_tags)?;
        state.tags = tags;
        state.emitted.push_back(Command::ChangeTag { key, value, before });
        Ok(())
    }

    /// Keeps the answer to an update, in the place of the one that is the oldest.
    pub(in crate::orchestration) fn reply(&self, key: impl FnOnce(u64) -> String, reply: Bytes) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        let key = key(state.replies);
        state.replies += 1;
        drop(state);
        self.show_value(key, Some(reply));
    }

    /// How many updates were answered before the orchestration began again: the next answers take
    /// other places.
    pub(super) fn carry_replies(&self, replies: u64) {
        self.state().replies = replies;
    }

    pub(in crate::orchestration) fn answer_with(&self, name: String, answer: Answer) {
        // What it replaces may hold on to what locks this, and is dropped when that is free again.
        let _replaced = self.state().answers.insert(name, answer);
    }

    pub(in crate::orchestration) fn is_cancel_requested(&self) -> bool {
        self.state().cancellation.hear()
    }

    /// Has one more wait for a request to stop: answers its number.
    pub(in crate::orchestration) fn await_cancellation(&self) -> u64 {
        let mut state = self.state();
        state.cancellation.is_handled = true;
        state.cancellation.next += 1;
        state.cancellation.next
    }

    pub(in crate::orchestration) fn poll_cancelled(&self, number: u64, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.cancellation.hear() {
            return Poll::Ready(());
        }
        state.cancellation.waiting.insert(number, context.waker().clone());
        Poll::Pending
    }

    pub(in crate::orchestration) fn abandon_cancellation(&self, number: u64) {
        self.state().cancellation.waiting.remove(&number);
    }

    pub(in crate::orchestration) fn poll(&self, operation: u64, context: &Context<'_>) -> Poll<Delivery> {
        let mut state = self.state();
        let Some(known) = state.operations.get_mut(&operation) else { return Poll::Pending };
        if known.delivery.is_none() {
            known.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let taken = state.operations.remove(&operation).and_then(|known| known.delivery);
        taken.map_or(Poll::Pending, Poll::Ready)
    }

    /// The code waits for an operation no longer.
    pub(in crate::orchestration) fn abandon(&self, operation: u64) {
        let mut state = self.state();
        // A step holds what its closure took, which may lock this when it is dropped.
        let _step = if state.is_closed { None } else { state.abandon(operation) };
        drop(state);
    }
}

impl State {
    fn begin(&mut self, kind: Kind) -> u64 {
        let operation = self.next_operation;
        self.next_operation += 1;
        self.operations.insert(operation, Operation { kind, delivery: None, waker: None });
        operation
    }

    fn deliver(&mut self, operation: u64, delivery: Delivery) {
        if let Some(known) = self.operations.get_mut(&operation) {
            known.delivery = Some(delivery);
            if let Some(waker) = known.waker.take() {
                waker.wake();
            }
        }
    }

    /// Answers what is to be dropped when the journal is free again.
    fn abandon(&mut self, operation: u64) -> Option<NewStep> {
        let Operation { kind, delivery, .. } = self.operations.remove(&operation)?;
        match (kind, delivery) {
            (Kind::Task, None) => self.emitted.push_back(Command::Cancel { operation }),
            (Kind::Timer(until), None) => {
                self.timers.remove(&(until, operation));
                self.emitted.push_back(Command::Cancel { operation });
            }
            (Kind::Signal(name), Some(Delivery::Signal(payload))) => self.take_back(&name, payload),
            (Kind::Signal(name), _) => {
                if let Some(inbox) = self.inboxes.get_mut(&name) {
                    inbox.waiters.retain(|waiter| *waiter != operation);
                }
            }
            (Kind::Step(_), None) => {
                let step = self.take_step(operation);
                if step.is_none() {
                    self.abandoned_steps.push(operation);
                }
                return step;
            }
            (Kind::Task | Kind::Timer(_) | Kind::Step(_), Some(_)) => {}
        }
        None
    }

    /// Takes a step that is not being run.
    fn take_step(&mut self, operation: u64) -> Option<NewStep> {
        let place = self.steps.iter().position(|step| step.operation == operation)?;
        Some(self.steps.remove(place))
    }

    /// A signal that was taken and not looked at goes to the next who waits, or is the first again.
    fn take_back(&mut self, name: &Name, payload: Bytes) {
        let inbox = self.inboxes.entry(name.clone()).or_default();
        match inbox.waiters.pop_front() {
            Some(waiter) => self.deliver(waiter, Delivery::Signal(payload)),
            None => inbox.waiting.push_front(payload),
        }
    }
}

/// For the machine.
impl Journal {
    pub(super) fn begin(&self, now: Timestamp, seed: u64) {
        let mut state = self.state();
        (state.now, state.random) = (now, Random::new(seed));
    }

    pub(super) fn set_now(&self, now: Timestamp) {
        self.state().now = now;
    }

    pub(in crate::orchestration) fn replay(&self, patches: Option<Arc<HashSet<String>>>) {
        self.state().replayed_patches = patches;
    }

    /// Whether what is submitted from now on is kept for [`submit_again`](Self::submit_again).
    pub(super) fn keep_submitted(&self, keep: bool) {
        self.state().submitted = keep.then(FxHashMap::default);
    }

    /// The tags that the code begins with, and how many the engine keeps beside them.
    pub(in crate::orchestration) fn begin_with_tags(&self, tags: Tags, own: usize) {
        let mut state = self.state();
        (state.tags, state.own_tags) = (tags, own);
    }

    /// From here on the engine keeps a tag of a fork.
    pub(super) fn keep_tag_of_fork(&self) {
        self.state().own_tags = 1;
    }

    /// Submits again what is still waited for, in the order in which it was.
    pub(super) fn submit_again(&self) {
        let mut state = self.state();
        let submitted = state.submitted.take().unwrap_or_default();
        let waited_for =
            |operation: &u64| state.operations.get(operation).is_some_and(|known| known.delivery.is_none());
        let mut again: Vec<(u64, NewTask)> =
            submitted.into_iter().filter(|(operation, _)| waited_for(operation)).collect();
        again.sort_by_key(|(operation, _)| *operation);
        // A fork of this one submits it again, too.
        state.submitted = Some(again.iter().cloned().collect());
        let commands = again.into_iter().map(|(operation, task)| Command::Submit { operation, task: Box::new(task) });
        state.emitted.extend(commands);
    }

    /// Numbers operations as in a generation.
    pub(in crate::orchestration) fn number_in(&self, generation: u32) {
        self.state().next_operation = first_operation(generation);
    }

    /// Numbers operations as a history does: that of a fork was begun in a generation of another.
    pub(super) fn number_like(&self, operation: u64) {
        self.state().next_operation = ((operation >> 32) << 32) + 1;
    }

    /// Whether a task is waited for.
    pub(super) fn awaits_task(&self, operation: u64) -> bool {
        self.awaits(operation, |kind| matches!(kind, Kind::Task))
    }

    pub(super) fn awaits_timer(&self, operation: u64) -> bool {
        self.awaits(operation, |kind| matches!(kind, Kind::Timer(_)))
    }

    pub(super) fn awaits_step(&self, operation: u64, name: &str) -> bool {
        self.awaits(operation, |kind| matches!(kind, Kind::Step(step) if step == name))
    }

    fn awaits(&self, operation: u64, is_kind: impl FnOnce(&Kind) -> bool) -> bool {
        let state = self.state();
        let known = state.operations.get(&operation);
        known.is_some_and(|known| known.delivery.is_none() && is_kind(&known.kind))
    }

    pub(super) fn end_task(&self, operation: u64, end: TaskEnd) {
        self.state().deliver(operation, Delivery::Task(end));
    }

    pub(super) fn fire(&self, operation: u64) {
        let mut state = self.state();
        state.timers.retain(|(_, timer)| *timer != operation);
        state.deliver(operation, Delivery::Fired);
    }

    pub(super) fn end_step(&self, operation: u64, end: StepEnd) {
        let mut state = self.state();
        // What a replay does not run is dropped when the journal is free again: it may hold on to
        // what locks that.
        let _step = state.take_step(operation);
        state.deliver(operation, Delivery::Step(end));
        drop(state);
    }

    pub(super) fn receive(&self, name: &Name, payload: Bytes) {
        let mut state = self.state();
        let inbox = state.inboxes.entry(name.clone()).or_default();
        match inbox.waiters.pop_front() {
            Some(waiter) => state.deliver(waiter, Delivery::Signal(payload)),
            None => inbox.waiting.push_back(payload),
        }
    }

    /// Tells the code that somebody wants it cancelled; answers whether it handles that.
    pub(super) fn request_cancel(&self) -> bool {
        let mut state = self.state();
        state.cancellation.is_requested = true;
        std::mem::take(&mut state.cancellation.waiting).into_values().for_each(Waker::wake);
        state.cancellation.is_handled
    }

    /// Keeps what was wanted before, to be told when the code has begun.
    pub(super) fn carry_cancel(&self) {
        self.state().cancellation.is_carried = true;
    }

    /// Returns whether the code is yet to be told of a request from before it began, or began
    /// again.
    pub(in crate::orchestration) fn is_cancel_carried(&self) -> bool {
        let state = self.state();
        state.cancellation.is_carried && !state.cancellation.is_requested
    }

    /// The first timer that is due by a moment.
    pub(in crate::orchestration) fn due_timer(&self, now: Timestamp) -> Option<u64> {
        self.state().timers.first().filter(|(until, _)| *until <= now).map(|(_, operation)| *operation)
    }

    pub(in crate::orchestration) fn next_timer(&self) -> Option<Timestamp> {
        self.state().timers.first().map(|(until, _)| *until)
    }

    pub(super) fn pop_emitted(&self) -> Option<Command> {
        self.state().emitted.pop_front()
    }

    pub(super) fn first_emitted(&self) -> Option<HistoryEvent> {
        self.state().emitted.front().map(Command::event)
    }

    pub(in crate::orchestration) fn take_steps(&self) -> Vec<NewStep> {
        std::mem::take(&mut self.state().steps)
    }

    /// The steps that are being run for nobody.
    pub(in crate::orchestration) fn take_abandoned_steps(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().abandoned_steps)
    }

    /// What the next generation is to know: how many updates were answered; a request to stop that
    /// the code has not heard; and what was sent and nobody took, by name, in the order in which it
    /// came.
    pub(in crate::orchestration) fn take_untaken(&self) -> Vec<HistoryEvent> {
        let mut state = self.state();
        let inboxes = std::mem::take(&mut state.inboxes);
        let (is_unheard, replies) = (state.cancellation.is_unheard(), state.replies);
        drop(state);
        let carried = |(name, inbox): (Name, Inbox)| {
            inbox.waiting.into_iter().map(move |payload| HistoryEvent::SignalCarried {
                name: name.to_string(),
                payload: payload.to_vec().into(),
            })
        };
        let replies = (replies > 0).then_some(HistoryEvent::RepliesCarried { replies });
        let cancel = is_unheard.then_some(HistoryEvent::CancelCarried);
        replies.into_iter().chain(cancel).chain(inboxes.into_iter().flat_map(carried)).collect()
    }

    /// The number of signals of each name that the code did not take.
    pub(in crate::orchestration) fn unread(&self) -> Vec<HistoryEvent> {
        let state = self.state();
        let unread = state.inboxes.iter().filter(|(_, inbox)| !inbox.waiting.is_empty());
        unread
            .map(|(name, inbox)| HistoryEvent::SignalsUnread {
                name: name.to_string(),
                count: inbox.waiting.len() as u64,
            })
            .collect()
    }

    pub(in crate::orchestration) fn take_shown(&self) -> Shown {
        std::mem::take(&mut self.state().shown)
    }

    /// What the code answers to a question.
    pub(in crate::orchestration) fn answer(&self, name: &str, question: &[u8]) -> Result<Bytes, Failure> {
        let state = self.state();
        let Some(answer) = state.answers.get(name).cloned() else {
            let known: Vec<&str> = state.answers.keys().map(String::as_str).collect();
            let text = format!("the code of `{}` answers no query `{name}` there; it knows {known:?}", self.kind);
            return Err(Failure::permanent(text));
        };
        drop(state);
        let panicked = |panic: Box<dyn std::any::Any + Send>| Failure::of_panic(&*panic);
        catch_unwind(AssertUnwindSafe(|| confined(|| answer(question)))).map_err(panicked)?
    }

    /// The names of the events that are waited for, the first of them by name.
    pub(in crate::orchestration) fn awaited_events(&self) -> Vec<Name> {
        let state = self.state();
        let awaited = state.inboxes.iter().filter(|(_, inbox)| !inbox.waiters.is_empty());
        awaited.map(|(name, _)| name.clone()).take(AWAITED_NAMES).collect()
    }

    /// Whether anything that is still to come can have the code go on.
    pub(super) fn awaits_anything(&self) -> bool {
        let state = self.state();
        let has_operations = state.operations.values().any(|operation| operation.delivery.is_none());
        has_operations || !state.cancellation.waiting.is_empty()
    }

    /// From now on nothing that the code lets go of is cancelled: it is put away, not ended.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        // What answers and what was to be run may hold on to the journal.
        let _held = (std::mem::take(&mut state.answers), std::mem::take(&mut state.steps));
        drop(state);
    }
}
