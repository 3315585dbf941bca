//! The retention of ended tasks that have one of their own, by its end. A task without one has no
//! row here, and its end costs nothing.

use std::time::Duration;

use rusqlite::params;

use crate::api::error::Result;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::rules::prune::retained_until;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::Transaction;

impl Transaction<'_> {
    /// Records the end of the retention of a task that ends now.
    pub(in crate::sqlite::verbs) fn note_retention(&self, task: TaskId, retention: Option<Duration>) -> Result<()> {
        let Some(retention) = retention else { return Ok(()) };
        let until = retained_until(self.now, retention).as_microseconds();
        self.connection
            .prepare_cached("INSERT INTO retention (until, task) VALUES (?, ?)")?
            .execute([until, task.0])?;
        Ok(())
    }

    /// Deletes the record of a retention, because the task is no longer in history.
    pub(super) fn forget_retention(&self, task: TaskId, finished_at: i64, options: &TaskOptions) -> Result<()> {
        let Some(retention) = options.retention else { return Ok(()) };
        let until = retained_until(Timestamp::from_microseconds(finished_at), retention).as_microseconds();
        self.connection
            .prepare_cached("DELETE FROM retention WHERE until = ? AND task = ?")?
            .execute([until, task.0])?;
        Ok(())
    }

    /// Returns tasks whose own retention is over, the earliest first, at most `limit`. The flag is
    /// true if there are more.
    pub(super) fn expired_retentions(&self, limit: usize) -> Result<(Vec<TaskId>, bool)> {
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut statement = self
            .connection
            .prepare_cached("SELECT task FROM retention WHERE until < ? ORDER BY until, task LIMIT ?")?;
        let tasks = statement.query_map(params![self.now.as_microseconds(), wanted], |row| row.get(0).map(TaskId))?;
        let mut tasks: Vec<TaskId> = tasks.collect::<rusqlite::Result<_>>()?;
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        Ok((tasks, more))
    }

    /// Returns the number of ended tasks that have a retention of their own.
    pub(super) fn retention_count(&self) -> Result<u64> {
        let mut statement = self.connection.prepare_cached("SELECT count(*) FROM retention")?;
        let count: i64 = statement.query_row([], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}
