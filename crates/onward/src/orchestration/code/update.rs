//! Updates: requests to the code of an orchestration that get a reply.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use onward_store::Name;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::json;
use super::operation::Operation;
use crate::bounds;
use crate::error::{Error, Result};
use crate::orchestration::replay::{OperationResult, ReplayContext};

/// An update as it is sent.
#[derive(Serialize, Deserialize)]
pub(in crate::orchestration) struct Request {
    /// The id of the update.
    pub(in crate::orchestration) update: String,
    pub(in crate::orchestration) payload: Value,
}

/// The reply of the code, as it is kept among the values of the orchestration.
#[derive(Serialize, Deserialize)]
pub(in crate::orchestration) struct Reply {
    pub(in crate::orchestration) update: String,
    pub(in crate::orchestration) answer: std::result::Result<Value, String>,
}

/// The prefix of the name of a signal that is an update.
pub(in crate::orchestration) const SIGNAL_PREFIX: &str = "update.";

/// Returns the name of the signal that carries an update.
pub(in crate::orchestration) fn signal_name(update: &str) -> String {
    format!("{SIGNAL_PREFIX}{update}")
}

/// Returns the key under which a reply is kept. The newest replies take the places of the oldest.
pub(in crate::orchestration) fn reply_key(place: u64) -> String {
    format!("onward.reply.{}", place % bounds::UPDATE_REPLIES)
}

/// The type of a reply that is not declared: each call of [`Update::accept`] chooses its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyReply {}

/// The updates of one name, one after the other, with payloads `U` and replies `A`.
pub struct UpdateQueue<U, A = AnyReply> {
    replay_context: Arc<ReplayContext>,
    name: Name,
    types: PhantomData<fn() -> (U, A)>,
}

impl<U, A> Clone for UpdateQueue<U, A> {
    fn clone(&self) -> Self {
        Self { replay_context: Arc::clone(&self.replay_context), name: self.name.clone(), types: PhantomData }
    }
}

impl<U, A> fmt::Debug for UpdateQueue<U, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateQueue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<U: DeserializeOwned, A> UpdateQueue<U, A> {
    pub(in crate::orchestration) fn new(replay_context: Arc<ReplayContext>, name: &str) -> Result<Self> {
        Ok(Self { replay_context, name: Name::new(signal_name(name))?, types: PhantomData })
    }

    /// Waits for the next update. One whose payload is not a `U` is refused and skipped.
    pub fn next(&self) -> NextUpdate<U, A> {
        let operation = Operation::new(Arc::clone(&self.replay_context), self.replay_context.await_signal(&self.name));
        NextUpdate { queue: self.clone(), operation }
    }

    /// Takes the next update if it has already arrived. One whose payload is not a `U` is refused
    /// and skipped.
    pub fn try_next(&self) -> Option<Update<U, A>> {
        loop {
            let signal = self.replay_context.take_signal(&self.name)?;
            if let Some(update) = self.read(&signal) {
                return Some(update);
            }
        }
    }

    fn read(&self, signal: &Bytes) -> Option<Update<U, A>> {
        let request: Request = serde_json::from_slice(signal).ok()?;
        let mut ticket = Ticket { replay_context: Arc::clone(&self.replay_context), update: Some(request.update) };
        match serde_json::from_value(request.payload) {
            Ok(payload) => Some(Update { ticket, payload, reply: PhantomData }),
            Err(error) => {
                ticket.reply(Err(format!("the payload does not match the type that the code reads: {error}")));
                None
            }
        }
    }
}

/// An update to be awaited. If it is dropped before, the code no longer waits for it.
#[must_use = "it is waited for when it is awaited"]
pub struct NextUpdate<U, A = AnyReply> {
    queue: UpdateQueue<U, A>,
    operation: Operation,
}

impl<U, A> fmt::Debug for NextUpdate<U, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextUpdate").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<U: DeserializeOwned, A> Future for NextUpdate<U, A> {
    type Output = Update<U, A>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Update<U, A>> {
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

/// A request that waits for a reply: [`accept`](Self::accept) or [`refuse`](Self::refuse) it.
/// Dropping it refuses it.
#[must_use = "dropped, it is refused"]
pub struct Update<U, A = AnyReply> {
    ticket: Ticket,
    payload: U,
    reply: PhantomData<fn() -> A>,
}

/// The right to reply to an update once.
struct Ticket {
    replay_context: Arc<ReplayContext>,
    /// The id of the update; `None` after the reply.
    update: Option<String>,
}

impl<U: fmt::Debug, A> fmt::Debug for Update<U, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("payload", &self.payload).finish_non_exhaustive()
    }
}

impl<U, A> Update<U, A> {
    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &U {
        &self.payload
    }

    /// Refuses the update with a reason.
    pub fn refuse(mut self, reason: &str) {
        self.ticket.reply(Err(onward_store::rules::attempt::cut(reason.to_owned(), onward_store::bounds::ERROR_BYTES)));
    }

    fn accept_with<R: Serialize>(mut self, answer: &R) -> Result<()> {
        let answer = json("reply", answer).and_then(|answer| {
            let limit = self.ticket.replay_context.payload_limit / 2;
            if answer.len() > limit {
                return Err(Error::invalid(format!(
                    "the reply has {} bytes, and the limit is {limit}; store it elsewhere and reply with a reference",
                    answer.len()
                )));
            }
            serde_json::from_slice(&answer)
                .map_err(|error| Error::invalid(format!("the reply cannot be written as JSON: {error}")))
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
}

/// The reply of an update that was not declared.
impl<U> Update<U> {
    /// Accepts the update with a reply.
    ///
    /// # Errors
    /// An error if the reply cannot be written as JSON, or exceeds half the payload limit. The
    /// update is refused with that error.
    pub fn accept<A: Serialize>(self, answer: &A) -> Result<()> {
        self.accept_with(answer)
    }
}

/// The reply of an update that was declared as an [`UpdateCall`](super::UpdateCall).
impl<U, A: Serialize> Update<U, A> {
    /// Accepts the update with a reply of the declared type.
    ///
    /// # Errors
    /// An error if the reply cannot be written as JSON, or exceeds half the payload limit. The
    /// update is refused with that error.
    pub fn accept(self, answer: &A) -> Result<()> {
        self.accept_with(answer)
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
        self.reply(Err("the code of the orchestration dropped it without a reply".to_owned()));
    }
}
