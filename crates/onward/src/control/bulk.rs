//! The same done to many tasks.

use onward_store::bounds::BULK;
use onward_store::{Bulk, BulkDone, BulkVerb, Name, Outcome, StateCounts, StoreReads, TaskFilter, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// What was done to many tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct BulkSummary {
    /// To how many tasks it was done.
    pub tasks: u64,
    /// Their number by the state that each had before.
    pub states: StateCounts,
    /// How many of them run and were asked to stop.
    pub asked: u64,
    /// To how many it could not be done: their key is taken, or they changed meanwhile.
    pub passed_over: u64,
}

/// Looking after many tasks at once. A filter says which; an empty one means all. Each goes in
/// steps of up to 1000 tasks, each a commit of its own, from the newest task there is down to the
/// oldest, so that nobody is held up for long: a future that is dropped has done a part.
impl Engine {
    /// Cancels every live task that a filter selects: one that has not started ends; the handler of
    /// a running one is asked to stop, at once in this process, else when its process hears of it.
    ///
    /// # Errors
    /// What the store reports if it could not do it. What was done before stays done.
    pub async fn cancel_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Cancel, filter).await
    }

    /// Makes every ended task that a filter selects wait again under its old number. A filter
    /// without states selects those that failed, were cancelled, expired or are dead letters; name
    /// [`Completed`](onward_store::TaskState::Completed) to repeat finished work. Of tasks with the
    /// same key the newest waits again.
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all).
    pub async fn retry_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Retry, filter).await
    }

    /// Removes every task that a filter selects without a trace, running ones excepted.
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all).
    pub async fn delete_all(&self, filter: TaskFilter) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Delete, filter).await
    }

    /// Moves every live task that a filter selects to another queue, which is made if it is not
    /// there. As [`move_to`](Self::move_to): one that runs goes on in the other queue if it goes on
    /// after its attempt, and counts here all the same; so does one that is there already.
    ///
    /// # Errors
    /// As [`cancel_all`](Self::cancel_all), and [`is_invalid`](Error::is_invalid) if `queue` is no
    /// name.
    pub async fn move_all(&self, filter: TaskFilter, queue: impl AsRef<str>) -> Result<BulkSummary> {
        self.bulk(BulkVerb::Move(Name::new(queue)?), filter).await
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

    /// How many tasks a filter selects.
    ///
    /// # Errors
    /// What the store reports if it could not be read.
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
            self.ask_to_stop(&done.asked);
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
        self.asked += done.asked.len() as u64;
        self.passed_over += done.passed_over;
    }
}
