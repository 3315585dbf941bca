//! How many tasks run at once in an engine's store, and how fast they start.

use onward_store::rules::order::{between, last_place, place};
use onward_store::{Limit, LimitRecord, Outcome, Refusal, SetLimit, StoreReads, TaskId, TaskState, WaitReason, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Limits. What is set here is kept in the store and holds for every engine on it, in every
/// process, from the next claim on; what was claimed before and has not started is given back.
impl Engine {
    /// Changes the limit of everything, a queue, a kind, a group, or of each group whose name
    /// begins so, and answers what holds now. What runs goes on, also beyond a new limit.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a value out of its range, and for a change of nothing;
    /// what the store reports if it could not keep it.
    pub async fn set_limit(&self, set: SetLimit) -> Result<Limit> {
        match self.apply(Write::SetLimit(set)).await? {
            Outcome::LimitSet(limit) => Ok(limit),
            _ => Err(Error::unexpected("a change of a limit")),
        }
    }

    /// Why a task does not run: every reason that holds now, and as text what would release it.
    /// None for a task that could start now, runs, or has ended. Of
    /// [pressure](crate::PressureSource) this engine's own is told.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; what the store reports if it
    /// could not be read.
    pub async fn why(&self, task: TaskId) -> Result<Vec<WaitReason>> {
        let mut reasons = self.inner.store.why(task).await?.ok_or(Refusal::TaskNotFound(task))?;
        reasons.extend(self.pressure_on(task).await?);
        Ok(reasons)
    }

    /// Whether this engine is under pressure and the task is not urgent enough.
    async fn pressure_on(&self, task: TaskId) -> Result<Option<WaitReason>> {
        let pressure = self.inner.gauge.pressure();
        let (Some(least), Some(source)) = (pressure.least, pressure.highest_source()) else { return Ok(None) };
        let Some(record) = self.inner.store.task(task).await? else { return Ok(None) };
        let (now, place) = (self.inner.clock.now(), place(record.priority, record.run_at, task));
        let last = last_place(least, now);
        if record.state != TaskState::Waiting || place <= last {
            return Ok(None);
        }
        let until = now.plus(between(last, place));
        let (source, percent) = (source.name.clone(), percent(source.pressure));
        Ok(Some(WaitReason::Pressure { source, percent, least, until }))
    }

    /// The limits in force and how far they are used, in the order of their scopes.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn limits(&self) -> Result<Vec<LimitRecord>> {
        Ok(self.inner.store.limits().await?)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0.0 to 1.0")]
fn percent(share: f32) -> u8 {
    (share * 100.0).round() as u8
}
