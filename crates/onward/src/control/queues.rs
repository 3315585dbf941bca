//! Settings of an engine's queues.

use onward_store::{Outcome, QueueMode, QueueSettings, SetQueue, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Queues. The store keeps their settings, which apply to every engine on it, in every process,
/// from the next claim on. Tasks that were claimed before and have not started are released.
impl Engine {
    /// Changes a queue's weight, its concurrency, or both, and returns the settings that now apply.
    /// Running tasks continue, even beyond a new limit.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a value out of its range, and for an empty change; the
    /// store's error if it could not keep the change.
    pub async fn set_queue(&self, set: SetQueue) -> Result<QueueSettings> {
        match self.apply(Write::SetQueue(set)).await? {
            Outcome::QueueSet(settings) => Ok(settings),
            _ => Err(Error::unexpected("a change of a queue")),
        }
    }

    /// Changes how engines choose among queues, except for those that were opened with [their own
    /// mode](crate::EngineBuilder::queue_mode).
    ///
    /// # Errors
    /// The store's error if it could not keep the change.
    pub async fn set_queue_mode(&self, mode: QueueMode) -> Result<()> {
        self.done(Write::SetQueueMode(mode)).await
    }
}
