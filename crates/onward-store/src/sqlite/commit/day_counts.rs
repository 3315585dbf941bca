//! Counts of ended tasks by day. A day begins with a copy of the counts so far, and its own counts
//! are the difference from that copy.

use rusqlite::params;

use crate::api::error::Result;
use crate::bounds::HISTORY_DAYS;
use crate::rules::history::{counted_on, first_day};
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::Transaction;

impl Transaction<'_> {
    /// Begins a day in the first commit in which a task ends on it, before its ends are counted.
    pub(super) fn begin_day(&mut self) -> Result<()> {
        let latest = self.latest_day()?;
        let day = counted_on(self.now, latest);
        if latest == Some(day) {
            return Ok(());
        }
        self.connection.prepare_cached(prepared_statements::ADD_DAY)?.execute([day])?;
        self.connection.prepare_cached(include_str!("../sql/commit/begin_day.sql"))?.execute([day])?;
        let first = first_day(self.now, Some(day), HISTORY_DAYS);
        self.connection.prepare_cached(prepared_statements::DROP_DAYS)?.execute(params![first])?;
        self.connection.prepare_cached(prepared_statements::DROP_DAY_STARTS)?.execute(params![first])?;
        self.cache.day = Some(day);
        Ok(())
    }

    /// Returns the latest day on which a task ended, from the cache if it is known.
    fn latest_day(&mut self) -> Result<Option<i64>> {
        if self.cache.day.is_none() {
            let mut latest = self.connection.prepare_cached(prepared_statements::LATEST_DAY)?;
            self.cache.day = latest.query_row([], |row| row.get(0))?;
        }
        Ok(self.cache.day)
    }
}
