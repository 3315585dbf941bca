//! How an engine's store works queues off.

use onward_store::{Outcome, QueueMode, QueueSettings, SetQueue, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Queues. What is set here is kept in the store and holds for every engine on it, in every
/// process, from the next claim on; what was claimed before and has not started is given back.
impl Engine {
    /// Changes a queue's weight, its concurrency, or both, and answers what holds now. What runs
    /// goes on, also beyond a new limit.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a value out of its range, and for a change of nothing;
    /// what the store reports if it could not keep it.
    pub async fn set_queue(&self, set: SetQueue) -> Result<QueueSettings> {
        match self.apply(Write::SetQueue(set)).await? {
            Outcome::QueueSet(settings) => Ok(settings),
            _ => Err(Error::unexpected("a change of a queue")),
        }
    }

    /// Changes how engines choose among queues, where they were not opened with [a mode of their
    /// own](crate::EngineBuilder::queue_mode).
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn set_queue_mode(&self, mode: QueueMode) -> Result<()> {
        self.done(Write::SetQueueMode(mode)).await
    }
}
