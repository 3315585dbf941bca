//! Settings of an engine's queues.

use onward_store::bounds::BULK;
use onward_store::{Name, Outcome, QueueMode, QueueSettings, SetQueue, TaskState, Write};

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

    /// Removes the tasks of a queue in these states without a trace, the oldest first, in steps of
    /// up to 1000 tasks with a commit each. Returns their number.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) for a queue that does not exist;
    /// [`is_invalid`](Error::is_invalid) without a state, or for running tasks; the store's error
    /// if it failed. Earlier steps stay done.
    pub async fn purge(&self, queue: &Name, states: &[TaskState]) -> Result<u64> {
        let mut removed = 0;
        loop {
            let purge = Write::Purge { queue: queue.clone(), states: states.to_vec(), limit: BULK };
            let Outcome::Removed { tasks, more } = self.apply(purge).await? else {
                return Err(Error::unexpected("a purge"));
            };
            removed += tasks;
            if !more {
                return Ok(removed);
            }
        }
    }
}
