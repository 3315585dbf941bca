//! Limits on the number of running tasks in an engine's store, and on the rate of their starts.

use onward_store::rules::order::{between, last_sort_key, sort_key};
use onward_store::{Limit, LimitRecord, Outcome, Refusal, SetLimit, StoreReads, TaskId, TaskState, WaitReason, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Limits. The store keeps them, and they apply to every engine on it, in every process, from the
/// next claim on. Tasks that were claimed before and have not started are released.
impl Engine {
    /// Changes the limit of the whole store, a queue, a kind, a group, or each group whose name has
    /// a prefix, and returns the limit that now applies. Running tasks continue, even beyond a new
    /// limit.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a value out of its range, and for an empty change; the
    /// store's error if it could not keep the change.
    pub async fn set_limit(&self, set: SetLimit) -> Result<Limit> {
        match self.apply(Write::SetLimit(set)).await? {
            Outcome::LimitSet(limit) => Ok(limit),
            _ => Err(Error::unexpected("a change of a limit")),
        }
    }

    /// Returns the reasons why a task does not run, each with a text that names what would release
    /// it. There is none for a task that could start now, runs, or has ended. For
    /// [pressure](crate::pressure::PressureSource) only this engine's own is considered.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; the store's error if it
    /// could not be read.
    pub async fn why(&self, task: TaskId) -> Result<Vec<WaitReason>> {
        let mut reasons = self.inner.store.why(task).await?.ok_or(Refusal::TaskNotFound(task))?;
        reasons.extend(self.pressure_on(task).await?);
        Ok(reasons)
    }

    /// Returns the reason if this engine is under pressure and the task is not urgent enough.
    async fn pressure_on(&self, task: TaskId) -> Result<Option<WaitReason>> {
        let pressure = self.inner.gauge.pressure();
        let (Some(least), Some(source)) = (pressure.least, pressure.highest_source()) else { return Ok(None) };
        let Some(record) = self.inner.store.task(task).await? else { return Ok(None) };
        let (now, sort_key) = (self.inner.clock.now(), sort_key(record.priority, record.run_at, task));
        let last = last_sort_key(least, now);
        if record.state != TaskState::Waiting || sort_key <= last {
            return Ok(None);
        }
        let until = now.plus(between(last, sort_key));
        let (source, percent) = (source.name.clone(), percent(source.pressure));
        Ok(Some(WaitReason::Pressure { source, percent, least, until }))
    }

    /// Returns the limits in force and their usage, in the order of their scopes.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn limits(&self) -> Result<Vec<LimitRecord>> {
        Ok(self.inner.store.limits().await?)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0.0 to 1.0")]
fn percent(share: f32) -> u8 {
    (share * 100.0).round() as u8
}
