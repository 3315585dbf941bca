//! Sends an update to an orchestration and waits for its reply.

use std::time::Duration;

use onward_store::{InstanceRecord, Recipient, TaskId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control::OrchestrationStatus;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::orchestration::code::json;
use crate::orchestration::code::update::{Reply, Request, SIGNAL_PREFIX, reply_key, signal_name};
use crate::{bounds, timer};

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
            "orchestration {orchestration} did not reply to the update `{name}` within {timeout:?}: {waits}; the request stays, and may be \
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
        .map_err(|error| Error::invalid(format!("the reply to the update `{name}` is of another type: {error}")))
}
