//! How queues are worked off.

use crate::error::Result;
use crate::outcome::{Outcome, Refusal};
use crate::queue::{QueueMode, SetQueue};
use crate::rules;
use crate::sqlite::transaction::{Transaction, Verb};

impl Transaction<'_> {
    pub(in crate::sqlite) fn set_queue(&mut self, set: &SetQueue) -> Verb<Outcome> {
        rules::queue::check(set)?;
        if let Some(text) = self.cache.names.refusal(Some(&set.queue), None) {
            return Err(Refusal::Invalid(text).into());
        }
        let number = self.cache.names.ensure_queue(self.connection, &set.queue)?;
        let settings = rules::queue::after(self.cache.queues.settings(number), set);
        let running = if settings.concurrency.is_some() { self.count_leases(number)? } else { 0 };
        self.cache.queues.set(self.connection, number, settings, running)?;
        self.hint.work += 1;
        Ok(Outcome::QueueSet(settings))
    }

    pub(in crate::sqlite) fn set_queue_mode(&mut self, mode: QueueMode) -> Verb<Outcome> {
        self.cache.queues.set_mode(self.connection, mode)?;
        self.hint.work += 1;
        Ok(Outcome::Done)
    }

    /// How many tasks of a queue run. Cost: as many as run in all; so it is asked when a limit is set, and then kept by
    /// [`count_running`](Self::count_running).
    fn count_leases(&self, queue: i64) -> Result<i64> {
        let mut statement = self.connection.prepare_cached(include_str!("../sql/count_leases_of_queue.sql"))?;
        Ok(statement.query_row([queue], |row| row.get(0))?)
    }

    /// Notes that a task of a lane begins to run (1) or ends to (-1). What makes room for another is worth a look.
    pub(in crate::sqlite) fn count_running(&mut self, lane: i64, change: i64) {
        if !self.cache.queues.is_limited() {
            return;
        }
        let queue = self.cache.names.lane(lane).map(|lane| lane.queue);
        if queue.is_some_and(|queue| self.cache.queues.count(queue, change)) {
            self.hint.work += 1;
        }
    }
}
