//! Looking at an engine's store, and intervening in what does not run.

use onward_store::{
    BulkVerb, CollectionRecord, CollectionSelection, QueueDay, QueueRecord, Refusal, SessionRecord, TaskFilter, TaskId,
    Write,
};

use crate::control::BulkSummary;
use crate::engine::Engine;
use crate::error::Result;

/// The inspector: all that `onward task`, `onward queue` and `onward stats` do, a program does with
/// these, [`cancel`](Self::cancel), [`retry`](Self::retry), their forms for many tasks,
/// [`pause`](Self::pause), [`set_queue`](Self::set_queue), [`set_limit`](Self::set_limit),
/// [`why`](Self::why) and the reads of the [`store`](Self::store).
impl Engine {
    /// Makes a scheduled task due now: one that was to run later, or that waits for its next
    /// attempt. One that is due already is left as it is.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found),
    /// [`is_already_ended`](crate::Error::is_already_ended), and a [refusal](crate::Error::refusal)
    /// for a task that runs, or waits for others.
    pub async fn run_now(&self, task: TaskId) -> Result<()> {
        self.done(Write::RunNow { task }).await
    }

    /// Ends a task that does not run as a dead letter: it will not run, and is kept to be looked at
    /// and, perhaps, [tried again](Self::retry). Other systems call it archiving.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found),
    /// [`is_already_ended`](crate::Error::is_already_ended), and a [refusal](crate::Error::refusal)
    /// for a task that runs.
    pub async fn kill(&self, task: TaskId) -> Result<()> {
        self.done(Write::Kill { task }).await
    }

    /// Removes a task that does not run, live or ended, without a trace.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found), and a [refusal](crate::Error::refusal) for a
    /// task that runs.
    pub async fn delete(&self, task: TaskId) -> Result<()> {
        self.done(Write::Delete { task }).await
    }

    /// Makes every scheduled task that a filter selects due now.
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all).
    pub async fn run_all_now(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::RunNow, filter).await
    }

    /// Ends every live task that a filter selects and that does not run as a dead letter.
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all).
    pub async fn kill_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Kill, filter).await
    }

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
