//! Operations that the code of an orchestration awaits.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use onward_store::rules::orchestration::unsubmittable;
use onward_store::rules::retry::RetryPolicy;
use onward_store::{Name, NewTask, OnDuplicate, Priority, TaskState, Timestamp, UniqueKey};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::handlers::Failure;
use crate::orchestration::replay::{OperationResult, ReplayContext, StepEnd, TaskEnd};
use crate::submit::decode_output;

/// An awaited operation. It is cancelled if it is dropped before its end.
#[derive(Debug)]
pub(super) struct Operation {
    replay_context: Arc<ReplayContext>,
    number: u64,
}

impl Operation {
    pub(in crate::orchestration) fn new(replay_context: Arc<ReplayContext>, number: u64) -> Self {
        Self { replay_context, number }
    }
}

impl Future for Operation {
    type Output = OperationResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<OperationResult> {
        self.replay_context.poll(self.number, context)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.replay_context.abandon(self.number);
    }
}

/// The reason why an activity, or another orchestration, returned no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityError {
    /// It did not complete.
    Ended {
        /// The kind.
        kind: Name,
        /// The state: failed, dead, cancelled or expired.
        state: TaskState,
        /// The last error.
        error: Option<String>,
    },
    /// It never started: another task has its key.
    NotStarted {
        /// The kind.
        kind: Name,
        /// The task that has the key.
        existing: i64,
    },
    /// Its result has another type.
    Result {
        /// The kind.
        kind: Name,
        /// The error of reading the result.
        error: String,
    },
    /// It could not be submitted: its kind or queue is not a name, it cannot be written as JSON, or
    /// it exceeds the payload limit.
    Invalid {
        /// The error of the submit.
        error: String,
    },
}

impl fmt::Display for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { kind, state, error } => {
                let error = error.as_deref().unwrap_or("no error was reported");
                write!(f, "the activity `{kind}` has {}: {error}", ended(*state))
            }
            Self::NotStarted { kind, existing } => {
                write!(f, "the activity `{kind}` was not started, since task {existing} has its key")
            }
            Self::Result { kind, error } => {
                write!(f, "the result of the activity `{kind}` does not match its type: {error}")
            }
            Self::Invalid { error } => write!(f, "the activity cannot be submitted: {error}"),
        }
    }
}

impl std::error::Error for ActivityError {}

fn ended(state: TaskState) -> &'static str {
    match state {
        TaskState::Dead => "given up",
        TaskState::Cancelled => "been cancelled",
        TaskState::Expired => "expired",
        _ => "failed",
    }
}

/// A task to be submitted and awaited. It is submitted when `.await` first polls it, or by
/// [`start`](Self::start).
#[must_use = "it is submitted when it is awaited or started"]
pub struct Activity<O> {
    replay_context: Arc<ReplayContext>,
    task: Result<NewTask>,
    /// The time after which the code no longer waits for it.
    until: Option<Timestamp>,
    output: PhantomData<fn() -> O>,
}

impl<O> fmt::Debug for Activity<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").field("task", &self.task).finish_non_exhaustive()
    }
}

impl<O> Activity<O> {
    pub(in crate::orchestration) fn new(replay_context: Arc<ReplayContext>, task: Result<NewTask>) -> Self {
        Self { replay_context, task, until: None, output: PhantomData }
    }

    fn change(mut self, change: impl FnOnce(&mut NewTask)) -> Self {
        if let Ok(task) = &mut self.task {
            change(task);
        }
        self
    }

    fn change_by_name(mut self, name: &str, change: impl FnOnce(&mut NewTask, Name)) -> Self {
        match Name::new(name) {
            Ok(name) => self.change(|task| change(task, name)),
            Err(error) => {
                self.task = Err(error.into());
                self
            }
        }
    }

    /// Sets the retry policy. Default: that of its type, its handler or the engine. Another
    /// orchestration has no attempts, and is rejected with a retry policy.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.change(|task| task.retry = Some(policy))
    }

    /// Sets the timeout of one attempt. Default: that of its type, its handler or the engine.
    /// Another orchestration has no attempts, and is rejected with a timeout; use
    /// [`overall_timeout`](Self::overall_timeout) for both.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|task| task.timeout = Some(timeout))
    }

    /// Sets how long an attempt may run without a heartbeat of its handler
    /// ([`Context::heartbeat`](crate::Context::heartbeat)). After that it has failed, and is
    /// retried by its policy. Default: the heartbeat timeout of its type or its handler. Another
    /// orchestration has no attempts, and is rejected with one.
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        self.change(|task| task.heartbeat_timeout = Some(timeout))
    }

    /// Sets a timeout for all attempts together, from now on, including pauses and the time in a
    /// queue. An activity that has not ended by then is cancelled and returns
    /// [`Ended`](ActivityError::Ended) as expired, unless its worker reports the timeout earlier.
    /// Default: none.
    pub fn overall_timeout(mut self, timeout: Duration) -> Self {
        let until = self.replay_context.now().plus(timeout);
        self.until = Some(until);
        // The handler sees the deadline.
        self.change(|task| task.deadline = Some(until).filter(|_| !task.orchestration))
    }

    /// Sets the queue. Default: that of its type. An invalid name is reported when the activity is
    /// awaited.
    pub fn queue(self, queue: &str) -> Self {
        self.change_by_name(queue, |task, queue| task.queue = queue)
    }

    /// Sets the group with whose tasks it shares limits. Default: that of its type. An invalid name
    /// is reported when the activity is awaited.
    pub fn group(self, group: &str) -> Self {
        self.change_by_name(group, |task, group| task.group = Some(group))
    }

    /// Sets the priority. Default: that of its type.
    pub fn priority(self, priority: Priority) -> Self {
        self.change(|task| task.priority = priority)
    }

    /// Adds a tag to those of its type.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|task| task.tags.set(key, value))
    }

    /// Sets the affinity key: the task prefers the worker that last ran a task with the same key.
    /// An invalid name is reported when the activity is awaited.
    pub fn session(self, session: &str) -> Self {
        self.change_by_name(session, |task, affinity_key| task.affinity = Some(affinity_key))
    }

    /// Sets a key. If another task of the kind has it, this one is not started, and the code gets
    /// [`NotStarted`](ActivityError::NotStarted).
    pub fn key(self, key: impl Into<String>) -> Self {
        let unique = UniqueKey { key: key.into(), on_duplicate: OnDuplicate::Reject, keep_for: Duration::ZERO };
        self.change(|task| task.unique = Some(unique))
    }

    /// Submits the task now. The result is awaited later; dropping it cancels the task.
    pub fn start(self) -> Running<O> {
        match self.task.and_then(|task| check(&self.replay_context, task)) {
            Ok(task) => {
                let kind = task.kind.clone();
                let operation = Operation::new(Arc::clone(&self.replay_context), self.replay_context.submit(task));
                let timer = |until| {
                    Timer(Operation::new(Arc::clone(&self.replay_context), self.replay_context.start_timer(until)))
                };
                let until = self.until.map(timer);
                Running { kind, operation: Ok(operation), until, output: PhantomData }
            }
            Err(error) => Running {
                kind: Name::default_queue(),
                operation: Err(ActivityError::Invalid { error: error.to_string() }),
                until: None,
                output: PhantomData,
            },
        }
    }
}

/// Checks a task before the turn, which it would spoil if the store rejected it.
fn check(replay_context: &ReplayContext, mut task: NewTask) -> Result<NewTask> {
    if let Some(unique) = &mut task.unique {
        unique.on_duplicate = OnDuplicate::Reject;
    }
    // The orchestration sets its own parent and report.
    (task.parent, task.report) = (None, None);
    check_submit(replay_context, &task)?;
    Ok(task)
}

/// Returns an error if a turn cannot submit a task.
pub(super) fn check_submit(replay_context: &ReplayContext, task: &NewTask) -> Result<()> {
    replay_context.check_place()?;
    task.check(replay_context.payload_limit)?;
    match unsubmittable(task, replay_context.task) {
        Some(what) => Err(Error::invalid(format!("the orchestration `{}` {what}", replay_context.kind))),
        None => Ok(()),
    }
}

impl<O: DeserializeOwned> IntoFuture for Activity<O> {
    type Output = Result<O, ActivityError>;
    type IntoFuture = Running<O>;

    fn into_future(self) -> Running<O> {
        self.start()
    }
}

/// A submitted task. Await it for its result; dropping it before cancels the task.
#[must_use = "dropped, it is cancelled"]
pub struct Running<O> {
    kind: Name,
    operation: Result<Operation, ActivityError>,
    /// The timer of its overall timeout.
    until: Option<Timer>,
    output: PhantomData<fn() -> O>,
}

impl<O> fmt::Debug for Running<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<O: DeserializeOwned> Future for Running<O> {
    type Output = Result<O, ActivityError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let operation = match &mut self.operation {
            Ok(operation) => operation,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        if let Poll::Ready(OperationResult::Task(end)) = Pin::new(operation).poll(context) {
            return Poll::Ready(result_of(&self.kind, end));
        }
        let Some(Poll::Ready(())) = self.until.as_mut().map(|until| Pin::new(until).poll(context)) else {
            return Poll::Pending;
        };
        let error = Some("it did not end within the time limit of all its attempts".to_owned());
        let late = ActivityError::Ended { kind: self.kind.clone(), state: TaskState::Expired, error };
        // Dropping the operation cancels the task.
        self.operation = Err(late.clone());
        Poll::Ready(Err(late))
    }
}

fn result_of<O: DeserializeOwned>(kind: &Name, end: TaskEnd) -> Result<O, ActivityError> {
    let kind = kind.clone();
    let state = end.state();
    match end {
        TaskEnd::Completed { result } => decode_output(result.map(|result| Bytes::from(Vec::from(result))).as_ref())
            .map_err(|error| ActivityError::Result { kind, error: error.to_string() }),
        TaskEnd::Failed { error, .. } => Err(ActivityError::Ended { kind, state, error }),
        TaskEnd::NotStarted { existing } => Err(ActivityError::NotStarted { kind, existing }),
    }
}

/// A moment to be awaited. Dropping it before forgets it.
#[derive(Debug)]
#[must_use = "it is waited for when it is awaited"]
pub struct Timer(pub(super) Operation);

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}

/// A request to cancel, to be awaited.
#[derive(Debug)]
pub(super) struct Cancelled {
    replay_context: Arc<ReplayContext>,
    number: u64,
}

impl Cancelled {
    pub(in crate::orchestration) fn new(replay_context: Arc<ReplayContext>) -> Self {
        let number = replay_context.await_cancellation();
        Self { replay_context, number }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.replay_context.poll_cancelled(self.number, context)
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.replay_context.abandon_cancellation(self.number);
    }
}

/// A signal to be awaited. If it is dropped before, a signal that has arrived goes to the next
/// waiter.
#[must_use = "it is waited for when it is awaited"]
pub struct Signalled<T> {
    pub(in crate::orchestration) name: Name,
    pub(super) operation: Operation,
    pub(in crate::orchestration) payload: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Signalled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signalled").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> Future for Signalled<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.operation).poll(context) {
            Poll::Ready(OperationResult::Signal(payload)) => Poll::Ready(read_signal(&self.name, &payload)),
            _ => Poll::Pending,
        }
    }
}

fn read_signal<T: DeserializeOwned>(name: &Name, payload: &Bytes) -> Result<T, Failure> {
    serde_json::from_slice(payload).map_err(|error| {
        Failure::permanent(format!(
            "the payload of the signal `{name}` does not match the type that the code reads: {error}"
        ))
    })
}

/// The signals of one name, one after the other.
#[derive(Debug, Clone)]
pub struct EventQueue<T> {
    pub(in crate::orchestration) replay_context: Arc<ReplayContext>,
    pub(in crate::orchestration) name: Name,
    pub(in crate::orchestration) payload: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> EventQueue<T> {
    /// Waits for the next signal. Signals are taken in the order of their arrival, each once.
    pub fn next(&self) -> Signalled<T> {
        let number = self.replay_context.await_signal(&self.name);
        let operation = Operation::new(Arc::clone(&self.replay_context), number);
        Signalled { name: self.name.clone(), operation, payload: PhantomData }
    }

    /// Takes the next signal if it has already arrived. Signals that were sent before the
    /// orchestration started, or began again, are there when its code begins. An orchestration that
    /// takes signals until this returns `None`, and then ends, misses none: signals that arrive
    /// before the end is written are offered to its code first.
    ///
    /// # Errors
    /// An error if the payload is not a `T`. The signal is taken in this case, too.
    pub fn try_next(&self) -> Result<Option<T>, Failure> {
        let taken = self.replay_context.take_signal(&self.name);
        taken.map(|payload| read_signal(&self.name, &payload)).transpose()
    }
}

/// A step that runs in the turn. Dropping it before its end aborts it where it awaits.
#[must_use = "its result is there when it is awaited"]
pub struct Step<O> {
    pub(in crate::orchestration) name: String,
    pub(super) operation: Operation,
    pub(super) output: PhantomData<fn() -> O>,
}

impl<O> fmt::Debug for Step<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<O: DeserializeOwned> Future for Step<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.operation).poll(context) {
            Poll::Ready(OperationResult::Step(StepEnd::Done { result })) => {
                Poll::Ready(serde_json::from_slice(&result).map_err(|error| {
                    Failure::permanent(format!(
                        "the result of the step `{}` does not match the type that the code reads: {error}",
                        self.name
                    ))
                }))
            }
            Poll::Ready(OperationResult::Step(StepEnd::Failed { error })) => {
                Poll::Ready(Err(Failure::permanent(error)))
            }
            _ => Poll::Pending,
        }
    }
}
