//! Operations on many tasks.

use onward_store::bounds::BULK;
use onward_store::{Bulk, BulkDone, BulkVerb, Name, Outcome, StateCounts, StoreReads, TaskFilter, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// The result of an operation on many tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct BulkSummary {
    /// The number of tasks that were changed.
    pub tasks: u64,
    /// Their number by the state that each had before.
    pub states: StateCounts,
    /// The number of running ones among them that were asked to stop.
    pub cancel_requested: u64,
    /// The number of tasks that could not be changed: their key is taken, or they changed at the
    /// same time.
    pub skipped: u64,
}

/// Operations on many tasks. A filter selects the tasks; an empty one selects all. Each operation
/// works in steps of up to 1000 tasks, each in its own commit, from the newest task to the oldest,
/// so that other writers wait only briefly. If its future is dropped, a part of the tasks has been
/// changed.
impl Engine {
    /// Cancels every live task that a filter selects. A task that has not started ends. The handler
    /// of a running one is asked to stop: at once in this process, and otherwise when its process
    /// is notified.
    ///
    /// # Errors
    /// The store's error if it failed. Earlier steps stay done.
    pub async fn cancel_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Cancel, filter).await
    }

    /// Makes every ended task that a filter selects wait again under its old id. A filter without
    /// states selects tasks that failed, were cancelled, expired or are dead letters; name
    /// [`Completed`](onward_store::TaskState::Completed) to repeat finished work. Of several tasks
    /// with the same key only the newest waits again.
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all).
    pub async fn retry_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Retry, filter).await
    }

    /// Removes every task that a filter selects without a trace, except running ones.
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all).
    pub async fn delete_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Delete, filter).await
    }

    /// Moves every live task that a filter selects to another queue, which is created if it does
    /// not exist. As with [`move_to`](Self::move_to), a running task continues in the other queue
    /// if it continues after its attempt. It counts here anyway, and so does a task that is there
    /// already.
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all), and [`is_invalid`](Error::is_invalid) if
    /// `queue` is not a name.
    pub async fn move_all(&self, filter: TaskFilter, queue: impl AsRef<str>) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Move(Name::new(queue)?), filter).await
    }

    /// Makes every scheduled task that a filter selects due now.
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all).
    pub async fn run_all_now(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::RunNow, filter).await
    }

    /// Ends every live task that a filter selects and that does not run as a dead letter.
    ///
    /// # Errors
    /// The errors of [`cancel_all`](Self::cancel_all).
    pub async fn kill_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Kill, filter).await
    }

    /// Returns the number of tasks that a filter selects.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn count(&self, filter: TaskFilter) -> Result<u64> {
        Ok(self.inner.store.count(filter).await?)
    }

    pub(crate) async fn bulk(&self, verb: BulkVerb, filter: TaskFilter) -> Result<BulkSummary> {
        let mut summary = BulkSummary::default();
        let mut bulk = Bulk { verb, filter, before: None, limit: BULK };
        loop {
            let Outcome::Bulk(done) = self.apply(Write::Bulk(Box::new(bulk.clone()))).await? else {
                return Err(Error::unexpected("a change of many tasks"));
            };
            summary.add(&done);
            self.ask_to_stop(&done.cancel_requested);
            bulk.before = done.next;
            if done.next.is_none() {
                return Ok(summary);
            }
        }
    }
}

impl BulkSummary {
    fn add(&mut self, done: &BulkDone) {
        self.tasks += done.tasks;
        self.states += done.states;
        self.cancel_requested += done.cancel_requested.len() as u64;
        self.skipped += done.skipped;
    }
}
