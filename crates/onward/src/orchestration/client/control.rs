//! Controls orchestrations from outside.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use onward_store::bounds::RESERVED_SIGNAL_PREFIX;
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

/// The published state of an orchestration.
#[derive(Debug, Clone)]
pub struct OrchestrationStatus(InstanceRecord);

impl OrchestrationStatus {
    /// Returns the status; `None` if the orchestration has published none.
    ///
    /// # Errors
    /// An error if the status is not a `T`.
    pub fn status<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.0.status.as_ref().map(|status| read("status", status)).transpose()
    }

    /// Returns a published value; `None` if the key has none.
    ///
    /// # Errors
    /// An error if the value is not a `T`.
    pub fn value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.0.values.get(key).map(|value| read("value", value)).transpose()
    }

    /// Returns true if the orchestration is [paused](Engine::pause_orchestration).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.0.hold.is_paused()
    }

    /// Returns the names of the events that it awaits, as of its last turn.
    /// [`bounds::AWAITED_CANCELLATION`](onward_store::bounds::AWAITED_CANCELLATION) stands for a
    /// request to cancel.
    #[must_use]
    pub fn awaits(&self) -> &[Name] {
        &self.0.awaits
    }

    /// Returns the store's record.
    #[must_use]
    pub fn record(&self) -> &InstanceRecord {
        &self.0
    }
}

fn read<T: DeserializeOwned>(what: &str, bytes: &Bytes) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("the {what} of the orchestration is of another type: {error}")))
}

/// Orchestrations: async functions that survive crashes ([`orchestration`](crate::orchestration)).
/// A submit starts an orchestration, and it is a task in every other way too: awaited, listed,
/// cancelled, paused and limited.
impl Engine {
    /// Registers the code of a kind of orchestrations. It takes effect from the next run. An
    /// invalid registration (a second one of the kind) is an error of the run.
    pub fn orchestrate<T, F, Fut>(&self, function: F) -> &Self
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.orchestrate_with(OrchestrationOptions::new(), function)
    }

    /// Registers code with options, for example one of several versions of its kind.
    pub fn orchestrate_with<T, F, Fut>(&self, options: OrchestrationOptions, function: F) -> &Self
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.inner.register_orchestration(options, function);
        self
    }

    /// Sends a signal to an orchestration under a name. Its code takes the signal by
    /// [`event`](OrchestrationContext::event), now or when it gets there. The signal is durable
    /// when this returns, and is delivered exactly once.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended),
    /// [`is_invalid`](Error::is_invalid) if the task is not an orchestration or the payload is too
    /// large, and a [refusal](Error::refusal) if too many signals wait for it already.
    pub async fn signal<T: Serialize + Sync>(&self, orchestration: TaskId, name: &str, payload: &T) -> Result<()> {
        self.send(Recipient::Task(orchestration), name, json("signal", payload)?).await
    }

    /// Sends a signal to the active orchestration of a kind that has a key.
    ///
    /// # Errors
    /// The errors of [`signal`](Self::signal); [`Refusal::NoneWithKey`] if there is none.
    pub async fn signal_key<T: Serialize + Sync>(&self, kind: &str, key: &str, name: &str, payload: &T) -> Result<()> {
        let to = Recipient::Key { kind: Name::new(kind)?, key: key.to_owned() };
        self.send(to, name, json("signal", payload)?).await
    }

    /// Sends a signal with a payload of bytes to any recipient.
    ///
    /// # Errors
    /// The errors of [`signal`](Self::signal).
    pub async fn send(&self, to: Recipient, name: &str, payload: Bytes) -> Result<()> {
        let signal = Signal { to, name: signal_name(name)?, payload };
        match self.apply_and_wake(Write::Signal(Box::new(signal))).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::unexpected("a signal")),
        }
    }

    /// Sends a signal to the active orchestration that has the key of `start`, and starts the
    /// orchestration first if there is none: both or neither. An existing orchestration is kept as
    /// it is, whatever `start` sets.
    ///
    /// # Errors
    /// The errors of [`signal`](Self::signal) and [`submit`](Self::submit);
    /// [`is_invalid`](Error::is_invalid) if `start` has no key, or is not an orchestration.
    pub async fn signal_or_start<T: Task + Sync, P: Serialize + Sync>(
        &self,
        start: T,
        name: &str,
        payload: &P,
    ) -> Result<Handle<T::Output>> {
        let mut new = typed::new_task(&start)?;
        if !new.orchestration {
            return Err(Error::invalid(format!(
                "`{}` is not an orchestration; set `ORCHESTRATION = true` in its type",
                T::KIND
            )));
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
        let signal = Signal { to, name: signal_name(name)?, payload: json("signal", payload)? };
        let writes = vec![Write::Submit(Box::new(new)), Write::Signal(Box::new(signal))];
        let Outcome::All(outcomes) = self.apply(Write::All(writes)).await? else {
            return Err(Error::unexpected("a start and a signal"));
        };
        match outcomes.first() {
            Some(Outcome::Submitted(submitted)) => Ok(Handle::new(self.clone(), *submitted, position)),
            _ => Err(Error::unexpected("a start and a signal")),
        }
    }

    /// Sends a signal to the active orchestration of a kind that has a key. If there is none, the
    /// store keeps the signal for at least `keep_for`, for the orchestration that starts with that
    /// key. It is there when its first turn begins.
    ///
    /// The limits are [`bounds::UNSTARTED_KEPT`](onward_store::bounds::UNSTARTED_KEPT),
    /// [`UNSTARTED_KEYS`](onward_store::bounds::UNSTARTED_KEYS) keys and
    /// [`UNSTARTED_EVENTS`](onward_store::bounds::UNSTARTED_EVENTS) signals for each key. Kept
    /// signals belong to an orchestration that was never started, in the queue
    /// [`UNSTARTED_QUEUE`](onward_store::bounds::UNSTARTED_QUEUE): it is listed, cancelled and
    /// deleted like any other. [`signal_or_start`](Self::signal_or_start) starts one instead.
    ///
    /// # Errors
    /// The errors of [`signal`](Self::signal); [`is_invalid`](Error::is_invalid) for a time out of
    /// bounds, or one key too many; [`Refusal::NoneWithKey`] if the key is kept for an
    /// orchestration that has ended.
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

    /// Pauses an orchestration: it has no turn until it is [resumed](Self::resume_orchestration).
    /// Messages for it are queued, including a request to cancel. Running activities continue to
    /// their ends, and timers fire after the pause. A turn that has begun ends first. The store
    /// keeps the pause, so it survives restarts. Pausing a paused orchestration changes nothing.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended), and a
    /// [refusal](Error::refusal) if it is not an orchestration.
    pub async fn pause_orchestration(&self, orchestration: TaskId) -> Result<()> {
        self.done(Write::PauseOrchestration { task: orchestration }).await
    }

    /// Resumes a paused orchestration. Resuming one that is not paused changes nothing.
    ///
    /// # Errors
    /// The errors of [`pause_orchestration`](Self::pause_orchestration).
    pub async fn resume_orchestration(&self, orchestration: TaskId) -> Result<()> {
        self.done(Write::ResumeOrchestration { task: orchestration }).await
    }

    /// Pauses every live orchestration that a filter selects, in steps like
    /// [`cancel_all`](Self::cancel_all).
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all).
    pub async fn pause_orchestrations(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Pause, filter).await
    }

    /// Resumes every live orchestration that a filter selects, in steps like
    /// [`cancel_all`](Self::cancel_all).
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all).
    pub async fn resume_orchestrations(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Resume, filter).await
    }

    /// Ends an orchestration as cancelled, at once, without notifying its code: nothing is cleaned
    /// up, but everything that it awaits is cancelled. [`cancel`](Self::cancel) requests it to end
    /// by itself.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended), and a
    /// [refusal](Error::refusal) if it is not an orchestration, or a run of a workflow.
    pub async fn terminate(&self, orchestration: TaskId, reason: &str) -> Result<()> {
        match self.apply(Write::Terminate { task: orchestration, reason: reason.to_owned() }).await? {
            Outcome::Cancelled => Ok(()),
            _ => Err(Error::unexpected("a termination")),
        }
    }

    /// Returns the published state of an orchestration, also after its end.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; a [refusal](Error::refusal)
    /// if it is not an orchestration.
    pub async fn orchestration_status(&self, orchestration: TaskId) -> Result<OrchestrationStatus> {
        if let Some(record) = self.inner.store.instance(orchestration).await? {
            return Ok(OrchestrationStatus(record));
        }
        self.record(orchestration).await?;
        Err(Refusal::NotAnOrchestration(orchestration).into())
    }

    /// Waits until the published state of an orchestration is as wanted, whichever engine runs it,
    /// and returns that state. Cancel-safe; it does not poll. A state that exists only briefly,
    /// between two reads, may be missed.
    ///
    /// # Errors
    /// The errors of [`orchestration_status`](Self::orchestration_status);
    /// [`is_already_ended`](Error::is_already_ended) if the orchestration has ended without that
    /// state.
    pub async fn wait_for_status(
        &self,
        orchestration: TaskId,
        mut is_wanted: impl FnMut(&OrchestrationStatus) -> bool + Send,
    ) -> Result<OrchestrationStatus> {
        let mut changes = self.store().changes();
        loop {
            changes.hint();
            // In this order, the status of an ended orchestration is its last one.
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

    /// Returns the history of an orchestration, oldest event first. It reads all of it.
    ///
    /// # Errors
    /// The errors of [`orchestration_status`](Self::orchestration_status); an error if the history
    /// cannot be read.
    pub async fn orchestration_history(&self, orchestration: TaskId) -> Result<Vec<HistoryEvent>> {
        let length = self.orchestration_status(orchestration).await?.0.length;
        Ok(read_history(&**self.store(), orchestration, length).await?.events)
    }
}

/// Returns the name of a signal of the caller.
fn signal_name(name: &str) -> Result<Name> {
    if name.starts_with(RESERVED_SIGNAL_PREFIX) {
        return Err(Error::invalid(format!(
            "the signal `{name}` is reserved for Onward; choose a name that does not begin with `{RESERVED_SIGNAL_PREFIX}`"
        )));
    }
    Ok(Name::new(name)?)
}
