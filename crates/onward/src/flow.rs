//! How many tasks run at once in an engine's store, and how fast they start.

use onward_store::{Limit, LimitRecord, Outcome, Refusal, SetLimit, TaskId, WaitReason, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Limits. What is set here is kept in the store and holds for every engine on it, in every process, from the next claim on; what was
/// claimed before and has not started is given back.
impl Engine {
    /// Changes the limit of everything, a queue, a kind, a group, or of each group whose name begins so, and answers what holds now. What
    /// runs goes on, also beyond a new limit.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a value out of its range, and for a change of nothing; what the store reports if it
    /// could not keep it.
    pub async fn set_limit(&self, set: SetLimit) -> Result<Limit> {
        match self.apply(Write::SetLimit(set)).await? {
            Outcome::LimitSet(limit) => Ok(limit),
            _ => Err(Error::unexpected("a change of a limit")),
        }
    }

    /// Why a task does not run: every reason that holds now, and as text what would release it. None for a task that could start now,
    /// runs, or has ended.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; what the store reports if it could not be read.
    pub async fn why(&self, task: TaskId) -> Result<Vec<WaitReason>> {
        let reasons = self.inner.store.why(task).await?;
        reasons.ok_or_else(|| Refusal::TaskNotFound(task).into())
    }

    /// The limits in force and how far they are used, in the order of their scopes.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn limits(&self) -> Result<Vec<LimitRecord>> {
        Ok(self.inner.store.limits().await?)
    }
}
