//! Reads an engine's store.

use onward_store::{
    PendingBatch, PendingBatchSelection, QueueDay, QueueRecord, Refusal, SessionRecord, StoreReads, TaskId,
};

use crate::engine::Engine;
use crate::error::Result;

/// The inspector. These methods do what `onward task`, `onward queue` and `onward stats` do,
/// together with [`cancel`](Self::cancel), [`retry`](Self::retry), their forms for many tasks,
/// [`pause`](Self::pause), [`set_queue`](Self::set_queue), [`set_limit`](Self::set_limit),
/// [`why`](Self::why) and the reads of the [`store`](Self::store).
impl Engine {
    /// Returns the ends of tasks on each of the last `days` days, 1 to 90, by queue; today is the
    /// last. See [`StoreReads::history`](onward_store::StoreReads::history).
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn history(&self, days: u32) -> Result<Vec<QueueDay>> {
        Ok(self.inner.store.history(days).await?)
    }

    /// Returns the workers that now serve a task's kind in its queue, oldest first, whether the
    /// task waits or runs. For an orchestration it returns those with code that can continue it,
    /// and for a task that has ended none.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found); the store's error if it could not be read.
    pub async fn serving(&self, task: TaskId) -> Result<Vec<SessionRecord>> {
        let record = self.inner.store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?;
        if record.state.is_ended() {
            return Ok(Vec::new());
        }
        let (queue, kind, is_orchestration) = (&record.queue, &record.kind, record.orchestration);
        let instance = if is_orchestration { self.inner.store.instance(task).await? } else { None };
        let version = instance.and_then(|instance| instance.version);
        let serves = |session: &SessionRecord| {
            if is_orchestration {
                session.serves_orchestration(queue, kind, version)
            } else {
                session.serves(queue, kind)
            }
        };
        Ok(self.inner.store.sessions().await?.into_iter().filter(serves).collect())
    }

    /// Returns the pending batches ([`Aggregate`](crate::task::Aggregate)), ordered by the time at
    /// which they are ready; see
    /// [`StoreReads::pending_batches`](onward_store::StoreReads::pending_batches).
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn pending_batches(&self, which: PendingBatchSelection) -> Result<Vec<PendingBatch>> {
        Ok(self.inner.store.pending_batches(which).await?)
    }

    /// Returns a queue with its sizes.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found); the store's error if it could not be read.
    pub async fn queue(&self, name: &str) -> Result<QueueRecord> {
        let queues = self.inner.store.queues().await?;
        let found = queues.into_iter().find(|queue| queue.name.as_str() == name);
        match found {
            Some(queue) => Ok(queue),
            None => Err(Refusal::QueueNotFound(onward_store::Name::new(name)?).into()),
        }
    }
}
