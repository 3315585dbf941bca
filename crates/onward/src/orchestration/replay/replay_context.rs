//! The state that the code of an orchestration and the machine that runs it share.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use onward_store::bounds::{AWAITED_CANCELLATION, AWAITED_NAMES};
use onward_store::{Name, NewTask, Tags, TaskId, Timestamp};
use rustc_hash::FxHashMap;

use super::history::{HistoryEvent, StepEnd, TaskEnd};
use super::random::Random;
use super::running_code::{USED_ELSEWHERE, is_running};
use super::store_guard::without_store;
use super::tags;
use crate::error::Error;
use crate::handlers::Failure;

/// A step that runs in the turn.
pub(in crate::orchestration) type StepFuture = Pin<Box<dyn Future<Output = StepEnd> + Send>>;

/// An action of the code that a history records.
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
    /// Sets a tag of the orchestration, or removes it.
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

/// The result of an operation.
#[derive(Debug)]
pub(in crate::orchestration) enum OperationResult {
    Task(TaskEnd),
    Fired,
    Signal(Bytes),
    /// A signal waits in the inbox.
    Offered,
    Step(StepEnd),
}

#[derive(Debug)]
enum OperationKind {
    Task,
    Timer(Timestamp),
    Signal(Name),
    Step(String),
}

#[derive(Debug)]
struct Operation {
    kind: OperationKind,
    result: Option<OperationResult>,
    waker: Option<Waker>,
}

/// The signals of one name that were not taken, and the operations that wait for them.
///
/// The first signals are offered to operations, the earliest to the earliest. An operation gets its
/// signal only when the code takes it, so that a dropped one leaves the order as it is.
#[derive(Debug, Default)]
struct Inbox {
    /// In the order of their arrival.
    signals: VecDeque<Bytes>,
    /// The operations that can take a signal. All of them are earlier than those that wait.
    offered: BTreeSet<u64>,
    waiters: BTreeSet<u64>,
}

impl Inbox {
    /// Adds a signal, and returns the operation that it completes.
    fn receive(&mut self, payload: Bytes) -> Option<u64> {
        self.signals.push_back(payload);
        self.offer_next()
    }

    /// Adds an operation, and returns it if there is a signal for it.
    fn wait(&mut self, operation: u64) -> Option<u64> {
        self.waiters.insert(operation);
        self.offer_next()
    }

    fn offer_next(&mut self) -> Option<u64> {
        if self.signals.len() == self.offered.len() {
            return None;
        }
        let next = self.waiters.pop_first()?;
        self.offered.insert(next);
        Some(next)
    }

    /// Takes the signal that is offered to an operation.
    fn take(&mut self, operation: u64) -> Option<Bytes> {
        let place = self.offered.iter().position(|offered| *offered == operation)?;
        self.offered.remove(&operation);
        self.signals.remove(place)
    }

    /// Takes the first signal that is offered to no operation.
    fn take_free(&mut self) -> Option<Bytes> {
        self.signals.remove(self.offered.len())
    }

    /// Removes an operation, and returns the one to which its signal is offered instead.
    fn abandon(&mut self, operation: u64) -> Option<u64> {
        self.waiters.remove(&operation);
        if self.offered.remove(&operation) { self.offer_next() } else { None }
    }

    fn free(&self) -> usize {
        self.signals.len() - self.offered.len()
    }
}

#[derive(Debug, Default)]
struct CancelState {
    is_requested: bool,
    /// True if the code handles requests to cancel.
    is_handled: bool,
    /// True if the code has seen the request.
    is_observed: bool,
    /// True if cancellation was requested before the orchestration began again.
    is_carried: bool,
    /// The wakers of the futures that wait for a request, by their numbers.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

impl CancelState {
    /// Returns true if cancellation was requested, and records that the code has seen that.
    fn observe(&mut self) -> bool {
        self.is_observed |= self.is_requested;
        self.is_requested
    }

    fn is_unobserved(&self) -> bool {
        (self.is_requested || self.is_carried) && !self.is_observed
    }
}

/// The state that an orchestration has published in this turn.
#[derive(Debug, Default)]
pub(in crate::orchestration) struct PublishedState {
    pub(in crate::orchestration) status: Option<Bytes>,
    pub(in crate::orchestration) values: Vec<(String, Option<Bytes>)>,
}

/// A function that answers the queries of one name.
pub(super) type QueryFunction = Arc<dyn Fn(&[u8]) -> Result<Bytes, Failure> + Send + Sync>;

/// A step that the code has started.
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
    commands: VecDeque<Command>,
    /// Copies of the running tasks, kept only while a replay may have to submit them again for a
    /// fork.
    submitted: Option<FxHashMap<u64, NewTask>>,
    steps: Vec<NewStep>,
    timers: BTreeSet<(Timestamp, u64)>,
    inboxes: BTreeMap<Name, Inbox>,
    cancellation: CancelState,
    published: PublishedState,
    /// Without the tags that the engine keeps.
    tags: Tags,
    /// The number of tags that the engine keeps.
    engine_tags: usize,
    queries: BTreeMap<String, QueryFunction>,
    /// The number of answered updates.
    replies: u64,
    /// The patches of the history that is replayed; `None` outside of a replay.
    replayed_patches: Option<Arc<HashSet<String>>>,
    /// The patches whose branch the code has not taken in the replay. It does not take them later
    /// either.
    refused_patches: HashSet<String>,
    /// Running steps that the code has dropped.
    abandoned_steps: Vec<u64>,
    is_closed: bool,
    /// True if anything but the code has used the context.
    was_used_elsewhere: bool,
}

/// The number of an operation that was begun outside of the code. It never ends.
const NO_OPERATION: u64 = 0;

/// The replay context of one orchestration. Everything in it happens in the turns of the
/// orchestration, one after the other.
pub(in crate::orchestration) struct ReplayContext {
    pub(in crate::orchestration) task: TaskId,
    pub(in crate::orchestration) kind: Name,
    pub(in crate::orchestration) payload: Bytes,
    pub(in crate::orchestration) generation: u32,
    pub(in crate::orchestration) payload_limit: usize,
    state: Mutex<State>,
}

impl std::fmt::Debug for ReplayContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayContext").field("task", &self.task).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl ReplayContext {
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
            commands: VecDeque::new(),
            submitted: None,
            steps: Vec::new(),
            timers: BTreeSet::new(),
            inboxes: BTreeMap::new(),
            cancellation: CancelState::default(),
            published: PublishedState::default(),
            tags: Tags::new(),
            engine_tags: 0,
            queries: BTreeMap::new(),
            replies: 0,
            replayed_patches: None,
            refused_patches: HashSet::new(),
            abandoned_steps: Vec::new(),
            is_closed: false,
            was_used_elsewhere: false,
        };
        Self { task, kind, payload, generation, payload_limit, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state for a change by the code; `None` outside of the code, where the change
    /// would come at a moment that no history records.
    fn state_for_code(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state();
        if is_running(self) {
            return Some(state);
        }
        if !std::mem::replace(&mut state.was_used_elsewhere, true) && !state.is_closed {
            tracing::error!(task = self.task.0, kind = %self.kind, "an orchestration is wrong: {USED_ELSEWHERE}");
        }
        None
    }

    /// Returns an error if anything but the code uses the context.
    pub(in crate::orchestration) fn check_place(&self) -> Result<(), Error> {
        if self.state_for_code().is_some() { Ok(()) } else { Err(Error::invalid(USED_ELSEWHERE)) }
    }
}

/// Returns the number of the first operation of a generation, counted by how often the
/// orchestration has continued as new. Numbers differ between generations, so that the end of an
/// abandoned operation never matches an operation of a later generation.
pub(in crate::orchestration) fn first_operation(generation: u32) -> u64 {
    (u64::from(generation) << 32) + 1
}

/// Methods for the code.
impl ReplayContext {
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
        let Some(mut state) = self.state_for_code() else { return NO_OPERATION };
        let operation = state.begin(OperationKind::Task);
        let task = NewTask { parent: Some(self.task), report: Some(operation), ..task };
        if let Some(submitted) = &mut state.submitted {
            submitted.insert(operation, task.clone());
        }
        state.commands.push_back(Command::Submit { operation, task: Box::new(task) });
        operation
    }

    pub(in crate::orchestration) fn detach(&self, task: NewTask) {
        if let Some(mut state) = self.state_for_code() {
            state.commands.push_back(Command::Detach { task: Box::new(task) });
        }
    }

    pub(in crate::orchestration) fn start_timer(&self, until: Timestamp) -> u64 {
        let Some(mut state) = self.state_for_code() else { return NO_OPERATION };
        let operation = state.begin(OperationKind::Timer(until));
        state.timers.insert((until, operation));
        state.commands.push_back(Command::StartTimer { operation, until });
        operation
    }

    pub(in crate::orchestration) fn await_signal(&self, name: &Name) -> u64 {
        let Some(mut state) = self.state_for_code() else { return NO_OPERATION };
        let operation = state.begin(OperationKind::Signal(name.clone()));
        // An earlier signal completes the operation before its first poll.
        let offered = state.inboxes.entry(name.clone()).or_default().wait(operation);
        state.offer(offered);
        operation
    }

    /// Takes a signal that has already arrived.
    pub(in crate::orchestration) fn take_signal(&self, name: &Name) -> Option<Bytes> {
        self.state_for_code()?.inboxes.get_mut(name)?.take_free()
    }

    pub(in crate::orchestration) fn begin_step(&self, name: String, future: StepFuture) -> u64 {
        let Some(mut state) = self.state_for_code() else { return NO_OPERATION };
        let operation = state.begin(OperationKind::Step(name.clone()));
        state.steps.push(NewStep { operation, name, future });
        operation
    }

    /// Returns true if the code takes the branch of a patch: always, except for a history from
    /// before the patch. The result is the same for every call with this patch.
    pub(in crate::orchestration) fn is_patched(&self, patch: &str) -> bool {
        let Some(mut state) = self.state_for_code() else { return false };
        // In a replay the history decides. After it the code stays on the branch that it has taken.
        let is_unknown = state.replayed_patches.as_ref().is_some_and(|patches| !patches.contains(patch));
        if is_unknown || state.refused_patches.contains(patch) {
            state.refused_patches.insert(patch.to_owned());
            return false;
        }
        state.commands.push_back(Command::Patch { patch: patch.to_owned() });
        true
    }

    pub(in crate::orchestration) fn publish_status(&self, status: Bytes) {
        self.state().published.status = Some(status);
    }

    pub(in crate::orchestration) fn publish_value(&self, key: String, value: Option<Bytes>) {
        let mut state = self.state();
        state.published.values.retain(|(known, _)| *known != key);
        state.published.values.push((key, value));
    }

    pub(in crate::orchestration) fn tags(&self) -> Tags {
        self.state().tags.clone()
    }

    /// Changes a tag; `None` removes it. An error changes nothing.
    pub(in crate::orchestration) fn change_tag(&self, key: String, value: Option<String>) -> Result<(), Error> {
        self.check_place()?;
        let mut state = self.state();
        let mut tags = state.tags.clone();
        let before = tags::put(&mut tags, &key, value.as_deref());
        tags::check(&tags, state.engine_tags)?;
        state.tags = tags;
        state.commands.push_back(Command::ChangeTag { key, value, before });
        Ok(())
    }

    /// Keeps the reply to an update. Once all places are taken it replaces the oldest reply.
    pub(in crate::orchestration) fn reply(&self, key: impl FnOnce(u64) -> String, reply: Bytes) {
        let mut state = self.state();
        // A closed context drops the code. An open update that is dropped with it is not refused.
        if state.is_closed {
            return;
        }
        let key = key(state.replies);
        state.replies += 1;
        drop(state);
        self.publish_value(key, Some(reply));
    }

    /// Sets the number of updates that were answered before the orchestration began again, so that
    /// the next replies take other places.
    pub(super) fn carry_replies(&self, replies: u64) {
        self.state().replies = replies;
    }

    pub(in crate::orchestration) fn register_query(&self, name: String, answer: QueryFunction) {
        // Dropped after the lock is released: the old function may own something that locks this.
        let _replaced = self.state().queries.insert(name, answer);
    }

    pub(in crate::orchestration) fn is_cancel_requested(&self) -> bool {
        self.state().cancellation.observe()
    }

    /// Registers a future that waits for a request to cancel, and returns its number.
    pub(in crate::orchestration) fn await_cancellation(&self) -> u64 {
        let mut state = self.state();
        state.cancellation.is_handled = true;
        state.cancellation.next += 1;
        state.cancellation.next
    }

    pub(in crate::orchestration) fn poll_cancelled(&self, number: u64, context: &Context<'_>) -> Poll<()> {
        let Some(mut state) = self.state_for_code() else { return Poll::Pending };
        if state.cancellation.observe() {
            return Poll::Ready(());
        }
        state.cancellation.waiting.insert(number, context.waker().clone());
        Poll::Pending
    }

    pub(in crate::orchestration) fn abandon_cancellation(&self, number: u64) {
        self.state().cancellation.waiting.remove(&number);
    }

    pub(in crate::orchestration) fn poll(&self, operation: u64, context: &Context<'_>) -> Poll<OperationResult> {
        let Some(mut state) = self.state_for_code() else { return Poll::Pending };
        let Some(known) = state.operations.get_mut(&operation) else { return Poll::Pending };
        if known.result.is_none() {
            known.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let taken = state.take_result(operation);
        taken.map_or(Poll::Pending, Poll::Ready)
    }

    /// Abandons an operation for which the code no longer waits.
    pub(in crate::orchestration) fn abandon(&self, operation: u64) {
        let mut state = self.state();
        // Dropped after the lock is released: the closure of a step may own something that locks
        // this.
        let _step = if state.is_closed { None } else { state.abandon(operation) };
        drop(state);
    }
}

impl State {
    fn begin(&mut self, kind: OperationKind) -> u64 {
        let operation = self.next_operation;
        self.next_operation += 1;
        self.operations.insert(operation, Operation { kind, result: None, waker: None });
        operation
    }

    fn complete(&mut self, operation: u64, result: OperationResult) {
        if let Some(known) = self.operations.get_mut(&operation) {
            known.result = Some(result);
            if let Some(waker) = known.waker.take() {
                waker.wake();
            }
        }
    }

    /// Abandons an operation, and returns a step that the caller drops after it has released the
    /// lock.
    fn abandon(&mut self, operation: u64) -> Option<NewStep> {
        let Operation { kind, result, .. } = self.operations.remove(&operation)?;
        match (kind, result) {
            (OperationKind::Task, None) => self.commands.push_back(Command::Cancel { operation }),
            (OperationKind::Timer(until), None) => {
                self.timers.remove(&(until, operation));
                self.commands.push_back(Command::Cancel { operation });
            }
            // If its signal has arrived, the next operation is offered it.
            (OperationKind::Signal(name), _) => {
                let offered = self.inboxes.get_mut(&name).and_then(|inbox| inbox.abandon(operation));
                self.offer(offered);
            }
            (OperationKind::Step(_), None) => {
                // A step that runs already is aborted by the turn.
                let step = self.take_step(operation);
                if step.is_none() {
                    self.abandoned_steps.push(operation);
                }
                return step;
            }
            (OperationKind::Task | OperationKind::Timer(_) | OperationKind::Step(_), Some(_)) => {}
        }
        None
    }

    /// Takes a step that does not run yet.
    fn take_step(&mut self, operation: u64) -> Option<NewStep> {
        let index = self.steps.iter().position(|step| step.operation == operation)?;
        Some(self.steps.remove(index))
    }

    /// Completes the operation to which a signal is offered, if there is one.
    fn offer(&mut self, operation: Option<u64>) {
        operation.into_iter().for_each(|operation| self.complete(operation, OperationResult::Offered));
    }

    /// Removes an operation and returns its result.
    fn take_result(&mut self, operation: u64) -> Option<OperationResult> {
        match self.operations.remove(&operation)? {
            Operation { kind: OperationKind::Signal(name), .. } => {
                self.inboxes.get_mut(&name)?.take(operation).map(OperationResult::Signal)
            }
            Operation { result, .. } => result,
        }
    }
}

/// Methods for the machine.
impl ReplayContext {
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

    /// Sets whether tasks are kept from now on for [`submit_again`](Self::submit_again).
    pub(super) fn remember_submitted(&self, keep: bool) {
        self.state().submitted = keep.then(FxHashMap::default);
    }

    /// Sets the tags with which the code begins, and the number of further tags that the engine
    /// keeps.
    pub(in crate::orchestration) fn begin_with_tags(&self, tags: Tags, own: usize) {
        let mut state = self.state();
        (state.tags, state.engine_tags) = (tags, own);
    }

    /// Counts the tag of a fork from here on.
    pub(super) fn keep_tag_of_fork(&self) {
        self.state().engine_tags = 1;
    }

    /// Submits the tasks again that the code still awaits, in the original order.
    pub(super) fn submit_again(&self) {
        let mut state = self.state();
        let submitted = state.submitted.take().unwrap_or_default();
        let waited_for = |operation: &u64| state.operations.get(operation).is_some_and(|known| known.result.is_none());
        let mut again: Vec<(u64, NewTask)> =
            submitted.into_iter().filter(|(operation, _)| waited_for(operation)).collect();
        // The map has no order, but a replay must submit in the same one.
        again.sort_by_key(|(operation, _)| *operation);
        // A fork of this fork submits the tasks again, too.
        state.submitted = Some(again.iter().cloned().collect());
        let commands = again.into_iter().map(|(operation, task)| Command::Submit { operation, task: Box::new(task) });
        state.commands.extend(commands);
    }

    /// Sets the generation in which operations are numbered.
    pub(in crate::orchestration) fn number_in(&self, generation: u32) {
        self.state().next_operation = first_operation(generation);
    }

    /// Numbers operations as the operation of a history: a fork starts in a generation of its
    /// origin.
    pub(super) fn number_like(&self, operation: u64) {
        self.state().next_operation = ((operation >> 32) << 32) + 1;
    }

    /// Returns true if the code waits for a task.
    pub(super) fn awaits_task(&self, operation: u64) -> bool {
        self.awaits(operation, |kind| matches!(kind, OperationKind::Task))
    }

    pub(super) fn awaits_timer(&self, operation: u64) -> bool {
        self.awaits(operation, |kind| matches!(kind, OperationKind::Timer(_)))
    }

    pub(super) fn awaits_step(&self, operation: u64, name: &str) -> bool {
        self.awaits(operation, |kind| matches!(kind, OperationKind::Step(step) if step == name))
    }

    fn awaits(&self, operation: u64, is_kind: impl FnOnce(&OperationKind) -> bool) -> bool {
        let state = self.state();
        let known = state.operations.get(&operation);
        known.is_some_and(|known| known.result.is_none() && is_kind(&known.kind))
    }

    pub(super) fn end_task(&self, operation: u64, end: TaskEnd) {
        self.state().complete(operation, OperationResult::Task(end));
    }

    pub(super) fn fire(&self, operation: u64) {
        let mut state = self.state();
        if let Some(Operation { kind: OperationKind::Timer(until), .. }) = state.operations.get(&operation) {
            let timer = (*until, operation);
            state.timers.remove(&timer);
        }
        state.complete(operation, OperationResult::Fired);
    }

    pub(super) fn end_step(&self, operation: u64, end: StepEnd) {
        let mut state = self.state();
        // A step that a replay does not run. Dropped after the lock is released, because it may own
        // something that locks this.
        let _step = state.take_step(operation);
        state.complete(operation, OperationResult::Step(end));
        drop(state);
    }

    pub(super) fn receive(&self, name: &Name, payload: Bytes) {
        let mut state = self.state();
        let offered = state.inboxes.entry(name.clone()).or_default().receive(payload);
        state.offer(offered);
    }

    /// Notifies the code that cancellation was requested. Returns true if the code handles that.
    pub(super) fn request_cancel(&self) -> bool {
        let mut state = self.state();
        state.cancellation.is_requested = true;
        std::mem::take(&mut state.cancellation.waiting).into_values().for_each(Waker::wake);
        state.cancellation.is_handled
    }

    /// Keeps an earlier request, of which the code is notified after it has begun.
    pub(super) fn carry_cancel(&self) {
        self.state().cancellation.is_carried = true;
    }

    /// Returns true if the code is still to be notified of a request from before it began, or began
    /// again.
    pub(in crate::orchestration) fn is_cancel_carried(&self) -> bool {
        let state = self.state();
        state.cancellation.is_carried && !state.cancellation.is_requested
    }

    /// Returns true if the code handles requests to cancel.
    pub(super) fn handles_cancel(&self) -> bool {
        self.state().cancellation.is_handled
    }

    /// Returns true if anything but the code has used the context.
    pub(super) fn was_used_elsewhere(&self) -> bool {
        self.state().was_used_elsewhere
    }

    /// Returns the first timer that is due at a moment.
    pub(in crate::orchestration) fn due_timer(&self, now: Timestamp) -> Option<u64> {
        self.state().timers.first().filter(|(until, _)| *until <= now).map(|(_, operation)| *operation)
    }

    pub(in crate::orchestration) fn next_timer(&self) -> Option<Timestamp> {
        self.state().timers.first().map(|(until, _)| *until)
    }

    pub(super) fn pop_command(&self) -> Option<Command> {
        self.state().commands.pop_front()
    }

    pub(super) fn first_command(&self) -> Option<HistoryEvent> {
        self.state().commands.front().map(Command::event)
    }

    pub(in crate::orchestration) fn take_steps(&self) -> Vec<NewStep> {
        std::mem::take(&mut self.state().steps)
    }

    /// Takes the running steps that the code has dropped.
    pub(in crate::orchestration) fn take_abandoned_steps(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().abandoned_steps)
    }

    /// Takes what the next generation continues with: the number of answered updates, a request to
    /// cancel that the code has not seen, and the signals that it did not take, by name and in the
    /// order of their arrival.
    pub(in crate::orchestration) fn take_unconsumed(&self) -> Vec<HistoryEvent> {
        let mut state = self.state();
        let inboxes = std::mem::take(&mut state.inboxes);
        let (is_unobserved, replies) = (state.cancellation.is_unobserved(), state.replies);
        drop(state);
        let carried = |(name, inbox): (Name, Inbox)| {
            inbox.signals.into_iter().skip(inbox.offered.len()).map(move |payload| HistoryEvent::SignalCarried {
                name: name.to_string(),
                payload: payload.to_vec().into(),
            })
        };
        let replies = (replies > 0).then_some(HistoryEvent::RepliesCarried { replies });
        let cancel = is_unobserved.then_some(HistoryEvent::CancelCarried);
        replies.into_iter().chain(cancel).chain(inboxes.into_iter().flat_map(carried)).collect()
    }

    /// Returns the number of signals of each name that the code did not take.
    pub(in crate::orchestration) fn unread(&self) -> Vec<HistoryEvent> {
        let state = self.state();
        let unread = state.inboxes.iter().filter(|(_, inbox)| inbox.free() > 0);
        unread
            .map(|(name, inbox)| HistoryEvent::SignalsUnread { name: name.to_string(), count: inbox.free() as u64 })
            .collect()
    }

    pub(in crate::orchestration) fn take_published(&self) -> PublishedState {
        std::mem::take(&mut self.state().published)
    }

    /// Returns the code's answer to a query.
    pub(in crate::orchestration) fn answer_query(&self, name: &str, question: &[u8]) -> Result<Bytes, Failure> {
        let state = self.state();
        let Some(answer) = state.queries.get(name).cloned() else {
            let known: Vec<&str> = state.queries.keys().map(String::as_str).collect();
            let text = format!("the code of `{}` has no query `{name}` at this point; it has {known:?}", self.kind);
            return Err(Failure::permanent(text));
        };
        // The function runs without the lock, because it may use the context.
        drop(state);
        let panicked = |panic: Box<dyn std::any::Any + Send>| Failure::of_panic(&*panic);
        catch_unwind(AssertUnwindSafe(|| without_store(|| answer(question)))).map_err(panicked)?
    }

    /// Returns the names of the awaited events, in order and up to [`AWAITED_NAMES`]. A replay
    /// compares with them, so an awaited request to cancel is among them.
    pub(in crate::orchestration) fn awaited_events(&self) -> Vec<Name> {
        let state = self.state();
        let awaited = state.inboxes.iter().filter(|(_, inbox)| !inbox.waiters.is_empty());
        let is_cancellation_awaited = !state.cancellation.waiting.is_empty();
        let cancellation = is_cancellation_awaited.then(|| Name::new(AWAITED_CANCELLATION).ok()).flatten();
        cancellation.into_iter().chain(awaited.map(|(name, _)| name.clone())).take(AWAITED_NAMES).collect()
    }

    /// Returns true if anything that is still to come can let the code continue.
    pub(super) fn awaits_anything(&self) -> bool {
        let state = self.state();
        let has_operations = state.operations.values().any(|operation| operation.result.is_none());
        has_operations || !state.cancellation.waiting.is_empty()
    }

    /// Closes the context: operations that the code drops from now on are not cancelled, because
    /// the orchestration is evicted and not ended.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        // Dropped after the lock is released: queries and steps may own the context.
        let _held = (std::mem::take(&mut state.queries), std::mem::take(&mut state.steps));
        drop(state);
    }
}
