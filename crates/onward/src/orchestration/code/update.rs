//! Requests to the code of an orchestration that it answers.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use onward_store::{InstanceRecord, Name, Recipient, TaskId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::json;
use super::operation::Operation;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::orchestration::client::OrchestrationStatus;
use crate::orchestration::replay::{OperationResult, ReplayContext};
use crate::{bounds, timer};

/// An update as it is sent.
#[derive(Serialize, Deserialize)]
struct Request {
    /// Which one it is.
    update: String,
    payload: Value,
}

/// What the code answered, as it is kept among the values of the orchestration.
#[derive(Serialize, Deserialize)]
struct Reply {
    update: String,
    answer: std::result::Result<Value, String>,
}

/// The beginning of the name of a signal that is an update.
const SIGNAL_PREFIX: &str = "update.";

/// Under which name a signal comes that is an update.
fn signal_name(update: &str) -> String {
    format!("{SIGNAL_PREFIX}{update}")
}

/// Under which key a reply is kept: the newest take the places of the oldest.
fn reply_key(place: u64) -> String {
    format!("onward.reply.{}", place % bounds::UPDATE_REPLIES)
}

/// Updates of one name, one after the other.
#[derive(Debug, Clone)]
pub struct UpdateQueue<U> {
    replay_context: Arc<ReplayContext>,
    name: Name,
    payload: PhantomData<fn() -> U>,
}

impl<U: DeserializeOwned> UpdateQueue<U> {
    pub(in crate::orchestration) fn new(replay_context: Arc<ReplayContext>, name: &str) -> Result<Self> {
        Ok(Self { replay_context, name: Name::new(signal_name(name))?, payload: PhantomData })
    }

    /// Waits for the next. One whose payload is no `U` is refused and passed over.
    pub fn next(&self) -> Asked<U> {
        let operation = Operation::new(Arc::clone(&self.replay_context), self.replay_context.await_signal(&self.name));
        Asked {
            queue: Self {
                replay_context: Arc::clone(&self.replay_context),
                name: self.name.clone(),
                payload: PhantomData,
            },
            operation,
        }
    }

    /// Takes the next if it has come already. One whose payload is no `U` is refused and passed
    /// over.
    pub fn try_next(&self) -> Option<Update<U>> {
        loop {
            let signal = self.replay_context.take_signal(&self.name)?;
            if let Some(update) = self.read(&signal) {
                return Some(update);
            }
        }
    }

    fn read(&self, signal: &Bytes) -> Option<Update<U>> {
        let request: Request = serde_json::from_slice(signal).ok()?;
        let mut ticket = Ticket { replay_context: Arc::clone(&self.replay_context), update: Some(request.update) };
        match serde_json::from_value(request.payload) {
            Ok(payload) => Some(Update { ticket, payload }),
            Err(error) => {
                ticket.reply(Err(format!("the payload is not what the code expects: {error}")));
                None
            }
        }
    }
}

/// An update that is to come. Dropped before, it is waited for no longer.
#[must_use = "it is waited for when it is awaited"]
pub struct Asked<U> {
    queue: UpdateQueue<U>,
    operation: Operation,
}

impl<U> fmt::Debug for Asked<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<U: DeserializeOwned> Future for Asked<U> {
    type Output = Update<U>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Update<U>> {
        loop {
            let Poll::Ready(OperationResult::Signal(signal)) = Pin::new(&mut self.operation).poll(context) else {
                return Poll::Pending;
            };
            if let Some(update) = self.queue.read(&signal) {
                return Poll::Ready(update);
            }
            let replay_context = &self.queue.replay_context;
            let next = Operation::new(Arc::clone(replay_context), replay_context.await_signal(&self.queue.name));
            self.operation = next;
        }
    }
}

/// A request that waits for an answer: [`accept`](Self::accept) or [`refuse`](Self::refuse) it.
/// Dropped without, it is refused.
#[must_use = "dropped, it is refused"]
pub struct Update<U> {
    ticket: Ticket,
    payload: U,
}

/// The right to answer an update, once.
struct Ticket {
    replay_context: Arc<ReplayContext>,
    /// Which update; none when it is answered.
    update: Option<String>,
}

impl<U: fmt::Debug> fmt::Debug for Update<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("payload", &self.payload).finish_non_exhaustive()
    }
}

impl<U> Update<U> {
    /// What is asked for.
    #[must_use]
    pub fn payload(&self) -> &U {
        &self.payload
    }

    /// Answers.
    ///
    /// # Errors
    /// If the answer cannot be written as JSON, or is larger than a payload may be; then the update
    /// is refused with that.
    pub fn accept<A: Serialize>(mut self, answer: &A) -> Result<()> {
        let answer = json("answer", answer).and_then(|answer| {
            let limit = self.ticket.replay_context.payload_limit / 2;
            if answer.len() > limit {
                return Err(Error::invalid(format!("the answer has {} bytes, and may have {limit}", answer.len())));
            }
            serde_json::from_slice(&answer)
                .map_err(|error| Error::invalid(format!("the answer cannot be written as JSON: {error}")))
        });
        match answer {
            Ok(answer) => {
                self.ticket.reply(Ok(answer));
                Ok(())
            }
            Err(error) => {
                self.ticket.reply(Err(error.to_string()));
                Err(error)
            }
        }
    }

    /// Says no, and why.
    pub fn refuse(mut self, reason: &str) {
        self.ticket.reply(Err(onward_store::rules::attempt::cut(reason.to_owned(), onward_store::bounds::ERROR_BYTES)));
    }
}

impl Ticket {
    fn reply(&mut self, answer: std::result::Result<Value, String>) {
        let Some(update) = self.update.take() else { return };
        if let Ok(reply) = json("reply", &Reply { update, answer }) {
            self.replay_context.reply(reply_key, reply);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.reply(Err("the code of the orchestration has not answered it".to_owned()));
    }
}

impl Engine {
    /// Asks an orchestration for something, and waits for the answer of its code
    /// ([`updates`](super::context::OrchestrationContext::updates)). The request is durable before it is
    /// waited for, and is taken in exactly once; the answer is durable before it is given. If the
    /// future is dropped, it may be carried out all the same. An answer that nobody fetches is kept
    /// until as many as [`bounds::UPDATE_REPLIES`] newer ones are there.
    ///
    /// It waits for up to [`bounds::UPDATE_TIMEOUT`] (30 s);
    /// [`update_within`](Self::update_within) sets another time.
    ///
    /// # Errors
    /// As [`signal`](Self::signal); [`is_invalid`](Error::is_invalid) if the code refuses it, or
    /// answers something else than an `A`; [`is_already_ended`](Error::is_already_ended) if the
    /// orchestration ends without an answer; [`is_unanswered`](Error::is_unanswered) if it does not
    /// answer in time; the text says which updates its code waits for.
    pub async fn update<U: Serialize + Sync, A: DeserializeOwned>(
        &self,
        orchestration: TaskId,
        name: &str,
        payload: &U,
    ) -> Result<A> {
        self.update_within(orchestration, name, payload, bounds::UPDATE_TIMEOUT).await
    }

    /// Asks as [`update`](Self::update) does, and waits for the answer no longer than `timeout`.
    /// The request stays then: the code may take it later.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub async fn update_within<U: Serialize + Sync, A: DeserializeOwned>(
        &self,
        orchestration: TaskId,
        name: &str,
        payload: &U,
        timeout: Duration,
    ) -> Result<A> {
        let id = format!("{:032x}", fastrand::u128(..));
        let payload = serde_json::from_slice(&json("update", payload)?)
            .map_err(|error| Error::invalid(format!("the update cannot be written as JSON: {error}")))?;
        let request = json("update", &Request { update: id.clone(), payload })?;
        self.send(Recipient::Task(orchestration), &signal_name(name), request).await?;
        let clock = &*self.inner.clock;
        let until = clock.steady().saturating_add(timeout);
        tokio::select! {
            biased;
            reply = self.reply(orchestration, &id) => answer_of(name, reply?),
            () = timer::reached(clock, until) => Err(self.unanswered(orchestration, name, timeout).await),
        }
    }

    /// Waits for the reply to an update.
    async fn reply(&self, orchestration: TaskId, id: &str) -> Result<Reply> {
        let mut reply = None;
        let is_answered = |status: &OrchestrationStatus| {
            reply = reply_to(id, status.record());
            reply.is_some()
        };
        self.wait_for_status(orchestration, is_answered).await?;
        reply.ok_or_else(|| Error::unexpected("an update"))
    }

    async fn unanswered(&self, orchestration: TaskId, name: &str, timeout: Duration) -> Error {
        let status = match self.orchestration_status(orchestration).await {
            Ok(status) => status,
            Err(error) => return error,
        };
        let awaited = status.awaits().iter().filter_map(|event| event.strip_prefix(SIGNAL_PREFIX));
        let awaited: Vec<String> = awaited.map(|update| format!("`{update}`")).collect();
        let waits = match awaited.as_slice() {
            _ if status.is_paused() => "it is paused".to_owned(),
            [] => "its code waits for no update now".to_owned(),
            updates => format!("its code waits for the updates {} now", updates.join(", ")),
        };
        Error::unanswered(format!(
            "orchestration {orchestration} did not answer the update `{name}` within {timeout:?}: {waits}; the request stays, and may be \
             carried out later"
        ))
    }
}

fn reply_to(update: &str, record: &InstanceRecord) -> Option<Reply> {
    let replies = (0..bounds::UPDATE_REPLIES).filter_map(|place| record.values.get(&reply_key(place)));
    replies.filter_map(|reply| serde_json::from_slice::<Reply>(reply).ok()).find(|reply| reply.update == update)
}

fn answer_of<A: DeserializeOwned>(name: &str, reply: Reply) -> Result<A> {
    let answer = reply.answer.map_err(|reason| Error::invalid(format!("the update `{name}` was refused: {reason}")))?;
    serde_json::from_value(answer)
        .map_err(|error| Error::invalid(format!("the answer to the update `{name}` is of another type: {error}")))
}
