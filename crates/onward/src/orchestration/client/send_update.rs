//! Sends an update to an orchestration and waits for its reply.

use std::time::Duration;

use onward_store::{InstanceRecord, Recipient, TaskId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::control::OrchestrationStatus;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::orchestration::code::json;
use crate::orchestration::code::update::{Reply, Request, SIGNAL_PREFIX, reply_key, signal_name};
use crate::{bounds, timer};

/// The longest id of an update, in bytes.
const ID_BYTES: usize = 64;

/// The reply of an orchestration to an update.
#[derive(Debug, Clone, PartialEq)]
pub enum UpdateReply {
    /// The code accepted the update.
    Accepted(Value),
    /// The code refused the update, for this reason.
    Refused(String),
}

impl Engine {
    /// Sends a request to an orchestration, and waits for the reply of its code
    /// ([`updates`](crate::orchestration::OrchestrationContext::updates)).
    ///
    /// The request is durable before the wait, and is delivered exactly once; the reply is durable
    /// before it is returned. If the future is dropped, the request may still be carried out. A
    /// reply that no caller fetches is kept until [`bounds::UPDATE_REPLIES`] newer ones have
    /// replaced it.
    ///
    /// It waits for up to [`bounds::UPDATE_TIMEOUT`] (30 s); [`update_within`](Self::update_within)
    /// sets another time.
    ///
    /// # Errors
    /// The errors of [`signal`](Self::signal); [`is_invalid`](Error::is_invalid) if the code
    /// refuses the update, or the reply is not an `A`;
    /// [`is_already_ended`](Error::is_already_ended) if the orchestration ends without a reply.
    /// [`is_unanswered`](Error::is_unanswered) if there is no reply in time; the text names the
    /// updates that its code waits for.
    pub async fn update<U: Serialize + Sync, A: DeserializeOwned>(
        &self,
        orchestration: TaskId,
        name: &str,
        payload: &U,
    ) -> Result<A> {
        self.update_within(orchestration, name, payload, bounds::UPDATE_TIMEOUT).await
    }

    /// Sends a request as [`update`](Self::update) does, and waits for the reply at most for
    /// `timeout`. The request stays after that: the code may take it later.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update).
    pub async fn update_within<U: Serialize + Sync, A: DeserializeOwned>(
        &self,
        orchestration: TaskId,
        name: &str,
        payload: &U,
        timeout: Duration,
    ) -> Result<A> {
        let id = format!("{:032x}", fastrand::u128(..));
        let payload: Value = serde_json::from_slice(&json("update", payload)?)
            .map_err(|error| Error::invalid(format!("the update cannot be written as JSON: {error}")))?;
        self.send_update(orchestration, name, payload, &id).await?;
        let clock = &*self.inner.clock;
        let until = clock.steady().saturating_add(timeout);
        tokio::select! {
            biased;
            reply = self.wait_for_update(orchestration, &id) => answer_of(name, reply?),
            () = timer::reached(clock, until) => Err(self.unanswered(orchestration, name, timeout).await),
        }
    }

    /// Sends a request to an orchestration and returns when it is durable, without the reply.
    /// `update` is the id by which [`wait_for_update`](Self::wait_for_update) and
    /// [`update_reply`](Self::update_reply) find the reply: 1 to 64 bytes, which no other update of
    /// the orchestration has.
    ///
    /// # Errors
    /// The errors of [`signal`](Self::signal); [`is_invalid`](Error::is_invalid) if the id has
    /// another length.
    pub async fn send_update(&self, orchestration: TaskId, name: &str, payload: Value, update: &str) -> Result<()> {
        if !(1..=ID_BYTES).contains(&update.len()) {
            let length = update.len();
            return Err(Error::invalid(format!("the id of an update has {length} bytes and may have 1 to {ID_BYTES}")));
        }
        let request = json("update", &Request { update: update.to_owned(), payload })?;
        self.send(Recipient::Task(orchestration), &signal_name(name), request).await
    }

    /// Returns the reply to an update; `None` if the code has not replied, or if
    /// [`bounds::UPDATE_REPLIES`] newer replies have replaced it.
    ///
    /// # Errors
    /// The errors of [`orchestration_status`](Self::orchestration_status).
    pub async fn update_reply(&self, orchestration: TaskId, update: &str) -> Result<Option<UpdateReply>> {
        Ok(reply_to(update, self.orchestration_status(orchestration).await?.record()))
    }

    /// Waits for the reply to an update. Cancel-safe; it does not poll.
    ///
    /// # Errors
    /// The errors of [`orchestration_status`](Self::orchestration_status);
    /// [`is_already_ended`](Error::is_already_ended) if the orchestration ends without a reply.
    pub async fn wait_for_update(&self, orchestration: TaskId, update: &str) -> Result<UpdateReply> {
        let mut reply = None;
        let is_answered = |status: &OrchestrationStatus| {
            reply = reply_to(update, status.record());
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
            "orchestration {orchestration} did not reply to the update `{name}` within {timeout:?}: {waits}; the request stays, and may be \
             carried out later"
        ))
    }
}

fn reply_to(update: &str, record: &InstanceRecord) -> Option<UpdateReply> {
    let replies = (0..bounds::UPDATE_REPLIES).filter_map(|place| record.values.get(&reply_key(place)));
    let mut replies = replies.filter_map(|reply| serde_json::from_slice::<Reply>(reply).ok());
    replies.find(|reply| reply.update == update).map(|reply| match reply.answer {
        Ok(answer) => UpdateReply::Accepted(answer),
        Err(reason) => UpdateReply::Refused(reason),
    })
}

fn answer_of<A: DeserializeOwned>(name: &str, reply: UpdateReply) -> Result<A> {
    match reply {
        UpdateReply::Refused(reason) => Err(Error::invalid(format!("the update `{name}` was refused: {reason}"))),
        UpdateReply::Accepted(answer) => serde_json::from_value(answer)
            .map_err(|error| Error::invalid(format!("the reply to the update `{name}` is of another type: {error}"))),
    }
}
