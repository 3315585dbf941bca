//! Queries: questions to the code of an orchestration that change nothing.

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
    /// Queries the code of an orchestration, which replies by
    /// [`on_query`](crate::orchestration::OrchestrationContext::on_query).
    ///
    /// This process replays the code up to the last written turn. Nothing is written, the running
    /// orchestration is not disturbed, and one that has ended can be queried too. A query reads the
    /// history, and this engine needs the code.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found). [`is_invalid`](Error::is_invalid) if there is no code
    /// for the kind here, if the code differs from the history, or if `name` is not a [`Name`] or
    /// not a known query. Also if the code refuses the query, or the answer is not an `A`.
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

    /// Queries a [recorded](Self::record_history) history: the answer is that of its orchestration
    /// at its end.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid), as for [`query`](Self::query).
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

/// Returns the code's answer to a query at its present point.
fn answer<A: DeserializeOwned>(instance: &Instance, name: &str, question: &Bytes) -> Result<A> {
    let answer = instance.machine.replay_context().answer_query(name, question);
    let answer = answer.map_err(|failure| Error::invalid(failure.message().to_owned()))?;
    serde_json::from_slice(&answer)
        .map_err(|error| Error::invalid(format!("the reply to the query `{name}` is of another type: {error}")))
}
