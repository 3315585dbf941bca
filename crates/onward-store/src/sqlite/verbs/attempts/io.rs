//! The I/O of tasks. It is stored among their options, so it moves to history with them, and a task
//! without I/O costs nothing.

use rusqlite::{OptionalExtension, params};

use crate::api::error::{Error, Result};
use crate::api::io::{Io, IoStatistics};
use crate::api::outcome::Outcome;
use crate::api::task::Lease;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};
use crate::sqlite::reads::statistics::read_totals;

impl Transaction<'_> {
    /// Records the I/O of a running task.
    pub(in crate::sqlite) fn record_io(&mut self, lease: Lease, io: Io) -> VerbResult<Outcome> {
        let (mut task, _) = self.running_under(lease)?;
        self.cache.running_rows.remove(task.id);
        task.options.io = Some(io);
        self.connection
            .prepare_cached("UPDATE task SET options = ? WHERE id = ?")?
            .execute(params![task.options, task.id.0])?;
        Ok(Outcome::Done)
    }

    /// Counts the expected and the recorded I/O of a completed task.
    pub(super) fn count_io(&self, sub_queue: i64, expected: Io, recorded: Option<Io>) -> Result<()> {
        if expected.is_none() && recorded.is_none() {
            return Ok(());
        }
        let kind = self.kind_of(sub_queue);
        let totals: Option<String> = self
            .connection
            .prepare_cached("SELECT totals FROM kind_io WHERE kind = ?")?
            .query_row([kind], |row| row.get(0))
            .optional()?;
        let mut totals = totals.map_or(Ok(IoStatistics::default()), |text| read_totals(&text))?;
        totals.count(expected, recorded);
        let text = serde_json::to_string(&totals).map_err(|error| Error::invalid(error.to_string()))?;
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO kind_io (kind, totals) VALUES (?, ?)")?
            .execute(params![kind, text])?;
        Ok(())
    }
}
