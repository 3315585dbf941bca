//! Leases: the tasks that each session holds.
//!
//! A row of `lease` covers the live tasks in a range of numbers. Tasks that are claimed together
//! and have consecutive numbers share a row, so a claim of a thousand tasks writes one. A task that
//! ends leaves no trace in it; the row is deleted after its last task. A task that leaves the lease
//! without ending, because it waits again or has a new lease, divides the row.
//!
//! The claim number in the row is the fence: it goes up each time a task is claimed, so an older
//! lease matches no row.

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::task::{SessionId, TaskId};
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::Transaction;

/// A task to lease.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Leased {
    /// The task.
    pub(in crate::sqlite) task: TaskId,
    /// The claim's number.
    pub(in crate::sqlite) claim: u32,
    /// The time at which it would expire if it were not claimed.
    pub(in crate::sqlite) expires_at: Option<i64>,
}

impl Leased {
    /// Returns true if this task and the next can share a row.
    fn shares_with(&self, next: &Self) -> bool {
        self.task.0 + 1 == next.task.0
            && self.claim == next.claim
            && self.expires_at.is_none()
            && next.expires_at.is_none()
    }
}

/// A row of `lease`.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct LeaseRow {
    /// The first task of the range.
    pub(in crate::sqlite) first: i64,
    /// The last task of the range.
    pub(in crate::sqlite) last: i64,
    /// The session's number.
    pub(in crate::sqlite) session: i64,
    /// The claim's number, equal for all tasks.
    pub(in crate::sqlite) claim: u32,
    /// The start of the attempts.
    pub(in crate::sqlite) started_at: i64,
    /// The time at which the task would expire if it were not claimed; only for a range of one.
    pub(in crate::sqlite) expires_at: Option<i64>,
}

impl Transaction<'_> {
    /// Leases tasks to a session from now on. The tasks have no lease.
    pub(in crate::sqlite) fn lease(&self, session: SessionId, tasks: impl IntoIterator<Item = Leased>) -> Result<()> {
        let mut tasks: Vec<Leased> = tasks.into_iter().collect();
        tasks.sort_unstable_by_key(|leased| leased.task);
        for range in tasks.chunk_by(Leased::shares_with) {
            let (Some(first), Some(last)) = (range.first(), range.last()) else { continue };
            self.insert_lease(LeaseRow {
                first: first.task.0,
                last: last.task.0,
                session: session.0,
                claim: first.claim,
                started_at: self.now.as_microseconds(),
                expires_at: first.expires_at,
            })?;
        }
        Ok(())
    }

    /// Renews the lease of a task that has a row of its own. Returns true if there is such a row.
    pub(super) fn renew_single_lease(&self, leased: Leased) -> Result<bool> {
        let renewed = self
            .connection
            .prepare_cached(
                "UPDATE lease SET claim = ?2, started_at = ?3, expires_at = ?4 WHERE first = ?1 AND last = ?1",
            )?
            .execute(params![leased.task.0, leased.claim, self.now.as_microseconds(), leased.expires_at])?;
        Ok(renewed > 0)
    }

    /// Inserts a row of `lease`.
    fn insert_lease(&self, lease: LeaseRow) -> Result<()> {
        let LeaseRow { first, last, session, claim, started_at, expires_at } = lease;
        self.connection
            .prepare_cached(prepared_statements::ADD_LEASE)?
            .execute(params![first, last, session, claim, started_at, expires_at])?;
        Ok(())
    }

    /// Returns the row that covers a live task.
    pub(super) fn lease_of(&self, task: TaskId) -> Result<Option<LeaseRow>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/attempts/lease_of_task.sql"))?;
        let lease = statement.query_row([task.0], |row| {
            Ok(LeaseRow {
                first: row.get(0)?,
                last: row.get(1)?,
                session: row.get(2)?,
                claim: row.get(3)?,
                started_at: row.get(4)?,
                expires_at: row.get(5)?,
            })
        });
        Ok(lease.optional()?)
    }

    /// Removes a task from the row that covers its number, if there is one.
    pub(in crate::sqlite::verbs) fn leave_lease(&self, task: TaskId) -> Result<()> {
        let Some(lease) = self.lease_of(task)? else { return Ok(()) };
        self.connection.prepare_cached("DELETE FROM lease WHERE first = ?")?.execute([lease.first])?;
        let before = LeaseRow { last: task.0 - 1, ..lease };
        let behind = LeaseRow { first: task.0 + 1, ..lease };
        for part in [before, behind] {
            if part.first <= part.last && self.has_tasks(part.first, part.last)? {
                self.insert_lease(part)?;
            }
        }
        Ok(())
    }

    /// Returns true if a task of a range is live.
    fn has_tasks(&self, first: i64, last: i64) -> Result<bool> {
        let mut statement =
            self.connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM task WHERE id BETWEEN ? AND ?)")?;
        Ok(statement.query_row([first, last], |row| row.get(0))?)
    }

    /// Deletes the rows between two numbers whose tasks have all ended.
    pub(in crate::sqlite) fn drop_empty_leases(&self, first: TaskId, last: TaskId) -> Result<()> {
        self.connection
            .prepare_cached(include_str!("../../sql/attempts/drop_empty_leases.sql"))?
            .execute([first.0, last.0])?;
        Ok(())
    }
}
