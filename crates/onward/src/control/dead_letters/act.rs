//! Retries and deletes dead letters.

use onward_store::{StoreReads, TaskId, TaskState, Write};

use crate::bounds;
use crate::control::BulkSummary;
use crate::engine::Engine;
use crate::error::Result;

/// Operations on dead letters that [`dead_letters`](Self::dead_letters) found.
impl Engine {
    /// Makes these tasks wait again, up to [`DEAD_LETTER_BATCH`](bounds::DEAD_LETTER_BATCH)
    /// in one commit. A task that is not a dead letter any more, or whose key is taken, is skipped.
    ///
    /// # Errors
    /// The store's error if it failed. Earlier commits stay done.
    pub async fn retry_dead(&self, tasks: &[TaskId]) -> Result<BulkSummary> {
        self.on_dead(tasks, |task| Write::Retry { task }).await
    }

    /// Removes these tasks without a trace, as [`retry_dead`](Self::retry_dead) retries them.
    ///
    /// # Errors
    /// As [`retry_dead`](Self::retry_dead).
    pub async fn delete_dead(&self, tasks: &[TaskId]) -> Result<BulkSummary> {
        self.on_dead(tasks, |task| Write::Delete { task }).await
    }

    async fn on_dead(&self, tasks: &[TaskId], write: impl Fn(TaskId) -> Write) -> Result<BulkSummary> {
        let mut summary = BulkSummary::default();
        for chunk in tasks.chunks(bounds::DEAD_LETTER_BATCH) {
            let dead = self.still_dead(chunk).await?;
            let changed = self.all_or_each(&dead, &write).await?;
            summary.tasks += changed;
            summary.skipped += chunk.len() as u64 - changed;
            summary.states.add(TaskState::Dead, changed);
        }
        Ok(summary)
    }

    /// Returns the tasks that are dead letters now. Another caller may have retried one since it
    /// was found, and it may have completed: a retry would run it again.
    async fn still_dead(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>> {
        let mut dead = Vec::new();
        for task in tasks {
            let record = self.store().task(*task).await?;
            dead.extend(record.filter(|record| record.state == TaskState::Dead).map(|record| record.id));
        }
        Ok(dead)
    }

    /// Changes all tasks in one write, or each in its own if one of them is refused. Returns the
    /// number that changed.
    async fn all_or_each(&self, tasks: &[TaskId], write: impl Fn(TaskId) -> Write) -> Result<u64> {
        let count = tasks.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        match self.apply(Write::All(tasks.iter().map(|task| write(*task)).collect())).await {
            Ok(_) => return Ok(count),
            Err(error) if error.refusal().is_none() => return Err(error),
            Err(_) => {}
        }
        let mut changed = 0;
        for task in tasks {
            match self.apply(write(*task)).await {
                Ok(_) => changed += 1,
                Err(error) if error.refusal().is_none() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(changed)
    }
}
