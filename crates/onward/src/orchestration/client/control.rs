//! What a program does to orchestrations from outside.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    BulkVerb, InstanceRecord, Name, OnDuplicate, Outcome, Recipient, Refusal, Signal, StoreReads, TaskFilter, TaskId,
    Write,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control::BulkSummary;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handlers::Failure;
use crate::orchestration::code::{OrchestrationContext, json};
use crate::orchestration::code_table::OrchestrationOptions;
use crate::orchestration::replay::HistoryEvent;
use crate::orchestration::turn::read_history;
use crate::submit::{Handle, Task, Waiters, typed};

/// What an orchestration shows.
#[derive(Debug, Clone)]
pub struct OrchestrationStatus(InstanceRecord);

impl OrchestrationStatus {
    /// What it says of itself; `None` if it has said nothing.
    ///
    /// # Errors
    /// If what it said is no `T`.
    pub fn status<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.0.status.as_ref().map(|status| read("status", status)).transpose()
    }

    /// A value that it keeps; `None` if it has none under the key.
    ///
    /// # Errors
    /// If the value is no `T`.
    pub fn value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.0.values.get(key).map(|value| read("value", value)).transpose()
    }

    /// Whether somebody has [paused](Engine::pause_orchestration) it.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.0.hold.is_paused()
    }

    /// The names of the events that it waits for, as its last turn told.
    #[must_use]
    pub fn awaits(&self) -> &[Name] {
        &self.0.awaits
    }

    /// What the store keeps of it.
    #[must_use]
    pub fn record(&self) -> &InstanceRecord {
        &self.0
    }
}

fn read<T: DeserializeOwned>(what: &str, bytes: &Bytes) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("the {what} of the orchestration is of another type: {error}")))
}

/// Orchestrations: functions that cannot be lost ([`orchestration`](crate::orchestration)). They
/// are started by submitting them, and are tasks in every other way too: waited for, listed,
/// cancelled, paused, limited.
impl Engine {
    /// Registers the code of a kind of orchestrations. It counts from the next run on. What is
    /// wrong with it (a second one of the kind) is told by the run.
    pub fn orchestrate<T, F, Fut>(&self, function: F) -> &Self
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.orchestrate_with(OrchestrationOptions::new(), function)
    }

    /// Registers code with options: one of several versions of its kind.
    pub fn orchestrate_with<T, F, Fut>(&self, options: OrchestrationOptions, function: F) -> &Self
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.inner.register_orchestration(options, function);
        self
    }

    /// Sends an orchestration something under a name; its code takes it by
    /// [`event`](OrchestrationContext::event), now or when it comes by there. Durable when
    /// answered, and consumed exactly once.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended),
    /// [`is_invalid`](Error::is_invalid) if the task is no orchestration or the payload is too
    /// large, and a [refusal](Error::refusal) if too much waits for it already.
    pub async fn signal<T: Serialize + Sync>(&self, orchestration: TaskId, name: &str, payload: &T) -> Result<()> {
        self.send(Recipient::Task(orchestration), name, json("signal", payload)?).await
    }

    /// The same to the active orchestration of a kind that has a key.
    ///
    /// # Errors
    /// As [`signal`](Self::signal); [`Refusal::NoneWithKey`] if there is none.
    pub async fn signal_key<T: Serialize + Sync>(&self, kind: &str, key: &str, name: &str, payload: &T) -> Result<()> {
        let to = Recipient::Key { kind: Name::new(kind)?, key: key.to_owned() };
        self.send(to, name, json("signal", payload)?).await
    }

    /// The same with a payload as bytes, to any recipient.
    ///
    /// # Errors
    /// As [`signal`](Self::signal).
    pub async fn send(&self, to: Recipient, name: &str, payload: Bytes) -> Result<()> {
        let signal = Signal { to, name: Name::new(name)?, payload };
        match self.apply_and_wake(Write::Signal(Box::new(signal))).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::unexpected("a signal")),
        }
    }

    /// Sends something to the active orchestration that has the key of `start`, and starts it first
    /// if there is none: both or neither. What is there already is kept as it is, whatever `start`
    /// says.
    ///
    /// # Errors
    /// As [`signal`](Self::signal) and [`submit`](Self::submit); [`is_invalid`](Error::is_invalid)
    /// if `start` has no key, or is no orchestration.
    pub async fn signal_or_start<T: Task + Sync, P: Serialize + Sync>(
        &self,
        start: T,
        name: &str,
        payload: &P,
    ) -> Result<Handle<T::Output>> {
        let mut new = typed::new_task(&start)?;
        if !new.orchestration {
            return Err(Error::invalid(format!("`{}` is no orchestration; say so in its type", T::KIND)));
        }
        let Some(unique) = &mut new.unique else {
            return Err(Error::invalid(format!(
                "this `{}` has no key by which the orchestration is found; give its type one",
                T::KIND
            )));
        };
        unique.on_duplicate = OnDuplicate::Skip;
        let position = Waiters::position(&self.inner);
        let to = Recipient::Key { kind: new.kind.clone(), key: unique.key.clone() };
        let signal = Signal { to, name: Name::new(name)?, payload: json("signal", payload)? };
        let writes = vec![Write::Submit(Box::new(new)), Write::Signal(Box::new(signal))];
        let Outcome::All(outcomes) = self.apply(Write::All(writes)).await? else {
            return Err(Error::unexpected("a start and a signal"));
        };
        match outcomes.first() {
            Some(Outcome::Submitted(submitted)) => Ok(Handle::new(self.clone(), *submitted, position)),
            _ => Err(Error::unexpected("a start and a signal")),
        }
    }

    /// Sends something to the active orchestration of a kind that has a key; where none has, it is
    /// kept for at least `keep_for` for the one that starts with that key, and is there when its
    /// first turn begins. Up to [`bounds::UNSTARTED_KEPT`](onward_store::bounds::UNSTARTED_KEPT),
    /// for [`UNSTARTED_KEYS`](onward_store::bounds::UNSTARTED_KEYS) keys and
    /// [`UNSTARTED_EVENTS`](onward_store::bounds::UNSTARTED_EVENTS) signals of each. What is kept
    /// is an orchestration that was never started, in the queue
    /// [`UNSTARTED_QUEUE`](onward_store::bounds::UNSTARTED_QUEUE): it is listed, cancelled and
    /// deleted as any. [`signal_or_start`](Self::signal_or_start) starts one instead.
    ///
    /// # Errors
    /// As [`signal`](Self::signal); [`is_invalid`](Error::is_invalid) for a time out of bounds, or
    /// one key too many; [`Refusal::NoneWithKey`] if the key is kept for an orchestration that has
    /// ended.
    pub async fn signal_or_keep<T: Serialize + Sync>(
        &self,
        (kind, key): (&str, &str),
        keep_for: Duration,
        name: &str,
        payload: &T,
    ) -> Result<()> {
        let to = Recipient::KeyOrStart { kind: Name::new(kind)?, key: key.to_owned(), keep_for };
        self.send(to, name, json("signal", payload)?).await
    }

    /// Has an orchestration have no turn until it is [resumed](Self::resume_orchestration), by
    /// whomever: what comes for it is kept, also that it is to be cancelled; activities that run go
    /// on and end; timers fire after it. A turn that is under way ends first. It is kept in the
    /// store, so it holds whatever restarts. Pausing one that is paused changes nothing.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended), and a
    /// [refusal](Error::refusal) if it is no orchestration.
    pub async fn pause_orchestration(&self, orchestration: TaskId) -> Result<()> {
        self.done(Write::PauseOrchestration { task: orchestration }).await
    }

    /// Lets a paused orchestration go on. Resuming one that is not paused changes nothing.
    ///
    /// # Errors
    /// As [`pause_orchestration`](Self::pause_orchestration).
    pub async fn resume_orchestration(&self, orchestration: TaskId) -> Result<()> {
        self.done(Write::ResumeOrchestration { task: orchestration }).await
    }

    /// Pauses every live orchestration that a filter selects. In steps, as
    /// [`cancel_all`](Self::cancel_all).
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all).
    pub async fn pause_orchestrations(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Pause, filter).await
    }

    /// Resumes every live orchestration that a filter selects. In steps, as
    /// [`cancel_all`](Self::cancel_all).
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all).
    pub async fn resume_orchestrations(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Resume, filter).await
    }

    /// Ends an orchestration as cancelled, at once, without its code hearing of it: nothing is
    /// cleaned up, but what it waits for is cancelled. [`cancel`](Self::cancel) asks it to end by
    /// itself.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended), and a
    /// [refusal](Error::refusal) if it is no orchestration.
    pub async fn terminate(&self, orchestration: TaskId, reason: &str) -> Result<()> {
        match self.apply(Write::Terminate { task: orchestration, reason: reason.to_owned() }).await? {
            Outcome::Cancelled => Ok(()),
            _ => Err(Error::unexpected("a termination")),
        }
    }

    /// What an orchestration shows of itself, also after its end.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; a [refusal](Error::refusal)
    /// if it is no orchestration.
    pub async fn orchestration_status(&self, orchestration: TaskId) -> Result<OrchestrationStatus> {
        if let Some(record) = self.inner.store.instance(orchestration).await? {
            return Ok(OrchestrationStatus(record));
        }
        self.record(orchestration).await?;
        Err(Refusal::NotAnOrchestration(orchestration).into())
    }

    /// Waits until what an orchestration shows of itself is as wanted, whoever runs it, and answers
    /// that. Cancel-safe; nothing is polled. What it shows only for a moment, between two looks,
    /// may be passed over.
    ///
    /// # Errors
    /// As [`orchestration_status`](Self::orchestration_status);
    /// [`is_already_ended`](Error::is_already_ended) if it has ended, and never will.
    pub async fn wait_for_status(
        &self,
        orchestration: TaskId,
        mut is_wanted: impl FnMut(&OrchestrationStatus) -> bool + Send,
    ) -> Result<OrchestrationStatus> {
        let mut changes = self.store().changes();
        loop {
            changes.hint();
            // Read in this order, what has ended shows what it is going to show.
            let record = self.record(orchestration).await?;
            let status = self.orchestration_status(orchestration).await?;
            if is_wanted(&status) {
                return Ok(status);
            }
            if record.state.is_ended() {
                return Err(Refusal::AlreadyEnded { task: orchestration, state: record.state }.into());
            }
            if changes.changed().await.is_none() {
                return Err(onward_store::Error::closed().into());
            }
        }
    }

    /// The history of an orchestration, oldest event first. The whole of it is read.
    ///
    /// # Errors
    /// As [`orchestration_status`](Self::orchestration_status); if the history cannot be read.
    pub async fn orchestration_history(&self, orchestration: TaskId) -> Result<Vec<HistoryEvent>> {
        let length = self.orchestration_status(orchestration).await?.0.length;
        Ok(read_history(&**self.store(), orchestration, length).await?.events)
    }
}
