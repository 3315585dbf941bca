//! The context of an orchestration's code.

use std::future::{Future, ready};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_store::text::{Shown, hidden_in};
use onward_store::{Name, NewTask, Tags, TaskId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::operation::{Activity, Cancelled, EventQueue, Operation, Signalled, Step, Timer, check_submit};
use super::update::UpdateQueue;
use crate::error::{Error, Result};
use crate::handlers::{AlternativeEnd, Failure};
use crate::json::encode;
use crate::orchestration::replay::{ReplayContext, StepEnd, StepFuture, tags};
use crate::submit::{Task, typed};

/// The context of an orchestration: the source of everything that it awaits and of every value that
/// differs between runs. It is cheap to clone.
///
/// The code must be deterministic: no clock, no random numbers and no I/O except through this
/// context. `tokio::select!` chooses at random unless it is `biased`;
/// [`select`](super::combinators::select) and [`join_all`](super::combinators::join_all) are
/// deterministic.
#[derive(Debug, Clone)]
pub struct OrchestrationContext {
    replay_context: Arc<ReplayContext>,
}

impl OrchestrationContext {
    pub(in crate::orchestration) fn new(replay_context: Arc<ReplayContext>) -> Self {
        Self { replay_context }
    }

    /// Returns the id of the orchestration's task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.replay_context.task
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &Name {
        &self.replay_context.kind
    }

    /// Returns the payload with which it was started, or has [continued](Self::continue_as_new).
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.replay_context.payload
    }

    /// Returns the number of times that it has [continued as new](Self::continue_as_new).
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.replay_context.generation
    }

    /// Returns the time at which this turn began, or its last step ended. It is the same in every
    /// replay, and costs nothing.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.replay_context.now()
    }

    /// Returns a random number. It is the same in every replay, and costs nothing.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.replay_context.random()
    }

    /// Returns a random UUID (version 4), in lower case with hyphens. It is the same in every
    /// replay, and costs nothing.
    #[must_use]
    pub fn uuid(&self) -> String {
        let high = (self.random() & !0xf000) | 0x4000;
        let low = (self.random() & !(0b11 << 62)) | (0b10 << 62);
        let (time_low, time_middle, time_high) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
        format!("{time_low:08x}-{time_middle:04x}-{time_high:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
    }

    /// Returns true if the code is being replayed: it repeats what it did before. `tracing` output
    /// is suppressed during replay, so each line is logged once.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.replay_context.is_replaying()
    }

    /// Returns a task to be submitted and awaited: an activity, or another orchestration if its
    /// type declares that.
    pub fn activity<T: Task>(&self, task: T) -> Activity<T::Output> {
        Activity::new(Arc::clone(&self.replay_context), typed::new_task(&task))
    }

    /// Returns an untyped task to be submitted and awaited. This method sets its parent and report.
    pub fn activity_task<O: DeserializeOwned>(&self, task: NewTask) -> Activity<O> {
        Activity::new(Arc::clone(&self.replay_context), Ok(task))
    }

    pub(in crate::orchestration) fn activity_of<O>(&self, task: Result<NewTask>) -> Activity<O> {
        Activity::new(Arc::clone(&self.replay_context), task)
    }

    /// Returns another orchestration to be started and awaited. If it is dropped before its end,
    /// its cancellation is requested.
    pub fn orchestration<T: Task>(&self, task: T) -> Activity<T::Output> {
        let new = typed::new_task(&task).and_then(|new| is_orchestration(new, T::ORCHESTRATION));
        Activity::new(Arc::clone(&self.replay_context), new)
    }

    /// Submits a task, or starts an orchestration, without waiting for it. It continues whatever
    /// happens to this orchestration. It is submitted with the turn, and so exactly once.
    ///
    /// # Errors
    /// An error if no store would accept it.
    pub fn detach<T: Task>(&self, task: T) -> Result<()> {
        self.detach_task(typed::new_task(&task)?)
    }

    /// Submits an untyped task without waiting for it.
    ///
    /// # Errors
    /// An error if no store would accept it.
    pub fn detach_task(&self, task: NewTask) -> Result<()> {
        check_submit(&self.replay_context, &task)?;
        self.replay_context.detach(task);
        Ok(())
    }

    /// Waits for a duration, which a restart does not extend. Waiting costs nothing.
    pub fn timer(&self, after: Duration) -> Timer {
        self.timer_until(self.now().plus(after))
    }

    /// Waits for a moment.
    pub fn timer_until(&self, until: Timestamp) -> Timer {
        let number = self.replay_context.start_timer(until);
        Timer(Operation::new(Arc::clone(&self.replay_context), number))
    }

    /// Waits for a signal that is [sent](crate::Engine::signal) under a name. Signals that were
    /// sent before are kept in the order of their arrival, and each is taken once.
    ///
    /// # Errors
    /// An error if `name` is not a [`Name`].
    pub fn event<T: DeserializeOwned>(&self, name: &str) -> Result<Signalled<T>> {
        Ok(self.queue(name)?.next())
    }

    /// Returns the signals that are sent under a name, to be taken one after the other.
    ///
    /// # Errors
    /// An error if `name` is not a [`Name`].
    pub fn queue<T: DeserializeOwned>(&self, name: &str) -> Result<EventQueue<T>> {
        Ok(EventQueue {
            replay_context: Arc::clone(&self.replay_context),
            name: Name::new(name)?,
            payload: PhantomData,
        })
    }

    /// Runs a step in the turn, without a task, and records its result, so that it does not run
    /// again. Use it for work that takes milliseconds. If the process dies before the result is
    /// recorded, the step runs again. While a step runs, the orchestration consumes no messages.
    ///
    /// The result is recorded as JSON. A failure is recorded too, and not retried. A step whose
    /// name is not a [`Name`] does not run, and fails with the reason.
    pub fn step<O, F, Fut>(&self, name: impl Into<String>, step: F) -> Step<O>
    where
        O: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        let (name, refused) = named(name.into());
        let future: StepFuture = match refused {
            None => Box::pin(async move { step_end(step().await) }),
            Some(error) => Box::pin(ready(StepEnd::Failed { error })),
        };
        let number = self.replay_context.begin_step(name.clone(), future);
        let operation = Operation::new(Arc::clone(&self.replay_context), number);
        Step { name, operation, output: PhantomData }
    }

    /// Returns true if the code takes the branch of a change: always, except for an orchestration
    /// that passed this point before the change was made. Keep the call under the same name for as
    /// long as such orchestrations may live.
    #[must_use]
    pub fn patched(&self, name: &str) -> bool {
        self.replay_context.is_patched(&Shown(name).to_string())
    }

    /// Publishes the status of the orchestration, which
    /// [`orchestration_status`](crate::Engine::orchestration_status) returns.
    ///
    /// # Errors
    /// An error if it cannot be written as JSON, or exceeds the payload limit.
    pub fn set_status<T: Serialize>(&self, status: &T) -> Result<()> {
        let status = json("status", status)?;
        self.check_size("status", &status)?;
        self.replay_context.publish_status(status);
        Ok(())
    }

    /// Publishes a value under a key, to be read from outside. It stays when the orchestration
    /// [continues as new](Self::continue_as_new) and after its end.
    ///
    /// # Errors
    /// An error if it cannot be written as JSON or exceeds the payload limit, or if the key is
    /// empty or has more than [`KEY_BYTES`](onward_store::bounds::KEY_BYTES).
    pub fn set_value<T: Serialize>(&self, key: impl Into<String>, value: &T) -> Result<()> {
        let (key, value) = (key.into(), json("value", value)?);
        let longest = onward_store::bounds::KEY_BYTES;
        if key.is_empty() || key.len() > longest {
            return Err(Error::invalid(format!(
                "the key of a value has from 1 to {longest} bytes, and `{}` has {}",
                Shown(&key),
                key.len()
            )));
        }
        if let Some(wrong) = hidden_in(&key) {
            return Err(Error::invalid(format!("the key of a value {wrong}")));
        }
        self.check_size("value", &value)?;
        self.replay_context.publish_value(key, Some(value));
        Ok(())
    }

    /// Returns the tags by which the orchestration is found: those that it was started with, with
    /// the changes of its code.
    #[must_use]
    pub fn tags(&self) -> Tags {
        self.replay_context.tags()
    }

    /// Sets a tag of the orchestration and replaces an earlier value of the key.
    /// [Lists](onward_store::TaskFilter::tags) find the orchestration by it from the end of the
    /// turn on, also after its end. Tags stay when it [continues as new](Self::continue_as_new).
    /// Each call is an event of its history, so the code must repeat it in a replay.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if no task may have [such a tag](Tags), or one more, or if
    /// the key begins with `onward.`, which is reserved for the engine. Nothing has changed then.
    pub fn set_tag(&self, key: impl Into<String>, value: impl Into<String>) -> Result<()> {
        self.change_tag(key.into(), Some(value.into()))
    }

    /// Removes a tag, if the orchestration has one with this key.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the key begins with `onward.`.
    pub fn remove_tag(&self, key: impl Into<String>) -> Result<()> {
        self.change_tag(key.into(), None)
    }

    fn change_tag(&self, key: String, value: Option<String>) -> Result<()> {
        tags::check_key(&key)?;
        self.replay_context.change_tag(key, value)
    }

    fn check_size(&self, what: &str, bytes: &Bytes) -> Result<()> {
        let (size, limit) = (bytes.len(), self.replay_context.payload_limit);
        if size <= limit {
            return Ok(());
        }
        let kind = self.kind();
        Err(Error::invalid(format!(
            "the {what} of the orchestration `{kind}` has {size} bytes, and may have {limit}; keep it elsewhere and pass a reference"
        )))
    }

    /// Removes a value.
    pub fn remove_value(&self, key: impl Into<String>) {
        self.replay_context.publish_value(key.into(), None);
    }

    /// Registers a function that answers queries of this name from outside
    /// ([`query`](crate::Engine::query)). It sees state that the code shares with it, by an `Arc`,
    /// and changes nothing.
    pub fn on_query<Q, A, F>(&self, name: impl Into<String>, answer: F)
    where
        Q: DeserializeOwned,
        A: Serialize,
        F: Fn(Q) -> Result<A, Failure> + Send + Sync + 'static,
    {
        let name = name.into();
        let asked = name.clone();
        let answer = move |question: &[u8]| {
            let question = serde_json::from_slice(question).map_err(|error| {
                Failure::permanent(format!("the query `{asked}` does not match the type that the code reads: {error}"))
            })?;
            json("answer", &answer(question)?).map_err(|error| Failure::permanent(error.to_string()))
        };
        self.replay_context.register_query(name, Arc::new(answer));
    }

    /// Returns the updates of one name from outside ([`update`](crate::Engine::update)), each of
    /// which waits for a reply.
    ///
    /// # Errors
    /// An error if `update.` and the name are not a [`Name`].
    pub fn updates<U: DeserializeOwned>(&self, name: &str) -> Result<UpdateQueue<U>> {
        UpdateQueue::new(Arc::clone(&self.replay_context), name)
    }

    /// Returns the updates of one name, whose replies have a declared type.
    pub(super) fn declared_updates<U: DeserializeOwned, A>(&self, name: &str) -> Result<UpdateQueue<U, A>> {
        UpdateQueue::new(Arc::clone(&self.replay_context), name)
    }

    /// Completes when cancellation of the orchestration is requested. Code that has called this
    /// handles the request itself, and cleans up as needed. Code that has not is dropped where it
    /// awaits: everything that it awaits is cancelled, and it ends as cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        Cancelled::new(Arc::clone(&self.replay_context))
    }

    /// Returns true if cancellation of the orchestration was requested.
    #[must_use]
    pub fn is_cancel_requested(&self) -> bool {
        self.replay_context.is_cancel_requested()
    }

    /// Begins again with another payload and an empty history: return it as the error. Use it for
    /// an endless orchestration, whose history would grow without limit. Signals that were not
    /// taken are passed to the new generation.
    #[must_use]
    pub fn continue_as_new<T: Serialize>(&self, payload: &T) -> Failure {
        match json("payload", payload) {
            Ok(payload) => Failure::with_alternative_end(AlternativeEnd::ContinueAsNew(payload), "it continues as new"),
            Err(error) => Failure::permanent(error.to_string()),
        }
    }
}

fn is_orchestration(task: NewTask, is_one: bool) -> Result<NewTask> {
    if is_one {
        return Ok(task);
    }
    Err(Error::invalid(format!(
        "`{}` is not an orchestration; set `ORCHESTRATION = true` in its type, or call `activity`",
        task.kind
    )))
}

/// Returns the recorded name of a step, and the reason if it is not a valid name.
fn named(name: String) -> (String, Option<String>) {
    match Name::new(&name) {
        Ok(_) => (name, None),
        Err(error) => (Shown(&name).to_string(), Some(format!("a step was not run: {error}"))),
    }
}

fn step_end<O: Serialize>(result: Result<O, Failure>) -> StepEnd {
    match result.map(|output| encode(&output)) {
        Ok(Ok(result)) => StepEnd::Done { result: Vec::from(result).into() },
        Ok(Err(error)) => StepEnd::Failed { error: format!("its result cannot be written as JSON: {error}") },
        Err(failure) => StepEnd::Failed { error: failure.message().to_owned() },
    }
}

pub(in crate::orchestration) fn json<T: Serialize>(what: &str, value: &T) -> Result<Bytes> {
    encode(value)
        .map_err(|error| Error::invalid(format!("the {what} of an orchestration cannot be written as JSON: {error}")))
}
