//! Questions to the code of an orchestration, which change nothing.

use bytes::Bytes;
use onward_store::{Name, TaskId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::recorded_history::RecordedHistory;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::orchestration::code::json;
use crate::orchestration::turn::Instance;

impl Engine {
    /// Asks the code of an orchestration, by what it answers
    /// [`on_query`](crate::orchestration::OrchestrationContext::on_query). The code is replayed for
    /// that in this process, up to the last turn that was written: nothing is written, nobody is
    /// disturbed, and one that has ended answers too. It takes a read of the history, and this
    /// engine needs the code.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_invalid`](Error::is_invalid) if there is no code
    /// for its kind here, it does something else than its history says, `name` is no [`Name`] or a
    /// question that it does not know, it refuses it, or answers something else than an `A`.
    pub async fn query<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        orchestration: TaskId,
        name: &str,
        question: &Q,
    ) -> Result<A> {
        Name::new(name)?;
        let question = json("question", question)?;
        answer(&self.instance_at(orchestration).await?, name, &question)
    }

    /// The same of a [recorded](Self::record_history) history: what its orchestration would have
    /// answered at its end.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid), as [`query`](Self::query).
    pub fn query_history<Q: Serialize, A: DeserializeOwned>(
        &self,
        history: &RecordedHistory,
        name: &str,
        question: &Q,
    ) -> Result<A> {
        Name::new(name)?;
        let question = json("question", question)?;
        let instance = self.instance_of(history).map_err(|failure| Error::invalid(failure.to_string()))?;
        answer(&instance, name, &question)
    }

    async fn instance_at(&self, orchestration: TaskId) -> Result<Instance> {
        let (start, history) = self.read_start(orchestration).await?;
        let instance = self.replayed(&self.inner.codes()?, start, &history);
        instance.map_err(|error| Error::invalid(error.to_string()))
    }
}

/// What the code answers to a question, where it stands.
fn answer<A: DeserializeOwned>(instance: &Instance, name: &str, question: &Bytes) -> Result<A> {
    let answer = instance.machine.replay_context().answer_query(name, question);
    let answer = answer.map_err(|failure| Error::invalid(failure.message().to_owned()))?;
    serde_json::from_slice(&answer)
        .map_err(|error| Error::invalid(format!("the answer to the query `{name}` is of another type: {error}")))
}
