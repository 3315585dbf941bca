//! What a program does to orchestrations from outside.

use std::future::Future;

use bytes::Bytes;
use onward_store::{HistoryChunk, InstanceRecord, Name, Outcome, Recipient, Refusal, Signal, TaskId, Write};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::{OrchestrationContext, json};
use super::history::{HistoryEvent, decode_history};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::limits;
use crate::typed::Task;

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

/// Orchestrations: functions that cannot be lost ([`orchestration`](crate::orchestration)). They are started by submitting them, and are tasks in
/// every other way too: waited for, listed, cancelled, paused, limited.
impl Engine {
    /// Registers the code of a kind of orchestrations. It counts from the next run on. What is wrong with it (a second one of the kind) is told by
    /// the run.
    pub fn orchestrate<T, F, Answer>(&self, function: F) -> &Self
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.inner.register_orchestration(function);
        self
    }

    /// Sends an orchestration something under a name; its code takes it by [`event`](OrchestrationContext::event), now or when it comes by there. Durable
    /// when answered, and taken in exactly once.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended), [`is_invalid`](Error::is_invalid) if the task is no orchestration or the
    /// payload is too large, and a [refusal](Error::refusal) if too much waits for it already.
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
        match self.apply(Write::Signal(Box::new(signal))).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::unexpected("a signal")),
        }
    }

    /// What an orchestration shows of itself, also after its end.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; a [refusal](Error::refusal) if it is no orchestration.
    pub async fn orchestration_status(&self, orchestration: TaskId) -> Result<OrchestrationStatus> {
        if let Some(record) = self.inner.store.instance(orchestration).await? {
            return Ok(OrchestrationStatus(record));
        }
        self.record(orchestration).await?;
        Err(Refusal::NotAnOrchestration(orchestration).into())
    }

    /// The history of an orchestration, oldest event first. The whole of it is read.
    ///
    /// # Errors
    /// As [`orchestration_status`](Self::orchestration_status); if the history cannot be read.
    pub async fn orchestration_history(&self, orchestration: TaskId) -> Result<Vec<HistoryEvent>> {
        let length = self.orchestration_status(orchestration).await?.0.length;
        let mut events = Vec::new();
        while (events.len() as u64) < length {
            let chunks = self.chunks(orchestration, events.len() as u64).await?;
            if chunks.is_empty() {
                break;
            }
            for chunk in &chunks {
                events.extend(decode_history(chunk)?);
            }
        }
        Ok(events)
    }

    async fn chunks(&self, orchestration: TaskId, from: u64) -> Result<Vec<HistoryChunk>> {
        Ok(self.inner.store.instance_history(orchestration, from, limits::HISTORY_CHUNKS).await?)
    }
}
