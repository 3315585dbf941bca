//! Looking at an engine's store.

use onward_store::{
    CollectionRecord, CollectionSelection, QueueDay, QueueRecord, Refusal, SessionRecord, StoreReads, TaskId,
};

use crate::engine::Engine;
use crate::error::Result;

/// The inspector: all that `onward task`, `onward queue` and `onward stats` do, a program does with
/// these, [`cancel`](Self::cancel), [`retry`](Self::retry), their forms for many tasks,
/// [`pause`](Self::pause), [`set_queue`](Self::set_queue), [`set_limit`](Self::set_limit),
/// [`why`](Self::why) and the reads of the [`store`](Self::store).
impl Engine {
    /// How tasks ended on each of the last `days` days, 1 to 90, by queue, today the last of them;
    /// see [`Store::history`](crate::Store::history).
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn history(&self, days: u32) -> Result<Vec<QueueDay>> {
        Ok(self.inner.store.history(days).await?)
    }

    /// The workers that serve a task's kind in its queue now, oldest first, whether it waits or
    /// runs; of an orchestration, those with code that goes on with it. None for one that has
    /// ended.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found); what the store reports if it could not be
    /// read.
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

    /// What is being collected to be handed over as one ([`Aggregate`](crate::Aggregate)), what is
    /// handed over next first; see [`Store::collections`](crate::Store::collections).
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn collections(&self, which: CollectionSelection) -> Result<Vec<CollectionRecord>> {
        Ok(self.inner.store.collections(which).await?)
    }

    /// A queue with its sizes.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found); what the store reports if it could not be
    /// read.
    pub async fn queue(&self, name: &str) -> Result<QueueRecord> {
        let queues = self.inner.store.queues().await?;
        let found = queues.into_iter().find(|queue| queue.name.as_str() == name);
        match found {
            Some(queue) => Ok(queue),
            None => Err(Refusal::QueueNotFound(onward_store::Name::new(name)?).into()),
        }
    }
}
