//! Settings of queues.

use crate::api::error::Result;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::queue::{QueueMode, QueueSettings, SetQueue};
use crate::rules;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};

impl Transaction<'_> {
    /// Sets the settings of a queue, which is created if it is missing.
    pub(in crate::sqlite) fn set_queue(&mut self, set: &SetQueue) -> VerbResult<Outcome> {
        rules::queue::check(set)?;
        if let Some(text) = self.cache.names.refusal(Some(&set.queue), None) {
            return Err(Refusal::Invalid(text).into());
        }
        let number = self.cache.names.ensure_queue(self.connection, &set.queue)?;
        let settings = rules::queue::after(self.cache.queues.settings(number), set);
        self.keep_queue(number, settings)?;
        if set.affinity_wait.is_some() {
            self.mark_queue_changed(number)?;
        }
        self.cache.queues.reconfigured(self.connection)?;
        Ok(Outcome::QueueSet(settings))
    }

    /// Stores the settings of a queue.
    pub(super) fn keep_queue(&mut self, number: i64, settings: QueueSettings) -> Result<()> {
        let running = if settings.concurrency.is_some() { self.count_leases(number)? } else { 0 };
        self.cache.queues.set(self.connection, number, settings, running)?;
        self.hint.work += 1;
        Ok(())
    }

    /// Sets the order in which queues are served.
    pub(in crate::sqlite) fn set_queue_mode(&mut self, mode: QueueMode) -> VerbResult<Outcome> {
        self.cache.queues.set_mode(self.connection, mode)?;
        self.hint.work += 1;
        Ok(Outcome::Done)
    }

    /// Returns the number of running tasks of a queue. Its cost is proportional to all running
    /// tasks, so it is called only when a limit is set. [`count_start`](Self::count_start) and
    /// [`count_end`](Self::count_end) then maintain the number.
    pub(super) fn count_leases(&self, queue: i64) -> Result<i64> {
        let mut statement =
            self.connection.prepare_cached(include_str!("../../sql/settings/count_leases_of_queue.sql"))?;
        Ok(statement.query_row([queue], |row| row.get(0))?)
    }
}
