//! Sessions of workers.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{SessionId, TaskId};
use crate::api::write::OpenSession;
use crate::rules;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::columns::served;
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};

impl Transaction<'_> {
    /// Opens a session.
    pub(in crate::sqlite) fn open_session(&mut self, open: &OpenSession) -> VerbResult<Outcome> {
        rules::session::check(open)?;
        let lease = microseconds(open.lease);
        let name = rules::session::name(&open.name);
        self.connection.prepare_cached(include_str!("../../sql/sessions/open_session.sql"))?.execute(params![
            name,
            self.process,
            self.now.as_microseconds(),
            lease,
            self.steady.saturating_add(lease),
            served::write(&open.serves)?
        ])?;
        Ok(Outcome::SessionOpened(SessionId(self.connection.last_insert_rowid())))
    }

    /// Renews a session's lease, and returns the tasks that are asked to stop.
    pub(in crate::sqlite) fn renew_session(&mut self, session: SessionId) -> VerbResult<Outcome> {
        self.renew(session)?;
        Ok(Outcome::Renewed { cancel: self.cancel_requests(session)? })
    }

    /// Extends the lease of an open session to its full length.
    pub(in crate::sqlite::verbs) fn renew(&mut self, session: SessionId) -> VerbResult<()> {
        let row: Option<(u64, u64)> = self
            .connection
            .prepare_cached(prepared_statements::LEASE_OF_SESSION)?
            .query_row([session.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (lease_until, lease) = row.ok_or(Refusal::SessionLost(session))?;
        let now = u64::try_from(self.steady).unwrap_or(0);
        let of = Duration::from_micros;
        if let Some(until) = rules::session::renewed_until(of(lease_until), of(lease), of(now)) {
            self.connection
                .prepare_cached("UPDATE session SET lease_until = ? WHERE id = ?")?
                .execute(params![microseconds(until), session.0])?;
        }
        Ok(())
    }

    /// Rejects a session that does not exist.
    pub(in crate::sqlite) fn check_session(&self, session: SessionId) -> VerbResult<()> {
        let open: bool = self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM session WHERE id = ?)")?
            .query_row([session.0], |row| row.get(0))?;
        if open { Ok(()) } else { Err(Refusal::SessionLost(session).into()) }
    }

    /// Returns the session's running tasks whose cancellation was requested.
    pub(in crate::sqlite) fn cancel_requests(&self, session: SessionId) -> Result<Vec<TaskId>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/sessions/cancel_requests.sql"))?;
        let tasks = statement.query_map([session.0], |row| row.get(0).map(TaskId))?;
        Ok(tasks.collect::<rusqlite::Result<_>>()?)
    }

    /// Closes a session, and gives its tasks back.
    pub(in crate::sqlite) fn close_session(&mut self, session: SessionId) -> VerbResult<Outcome> {
        for task in self.running_tasks(session.0, usize::MAX)? {
            if let Some(task) = self.live(task)?
                && let Some(running) = task.running
            {
                self.give_back(&task, running, Duration::ZERO)?;
            }
        }
        self.forget_session(session.0)?;
        Ok(Outcome::Done)
    }

    /// Returns the tasks that a session holds.
    pub(super) fn running_tasks(&self, session: i64, limit: usize) -> Result<Vec<TaskId>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/sessions/tasks_of_session.sql"))?;
        let tasks = statement.query_map([session, limit], |row| row.get(0).map(TaskId))?;
        Ok(tasks.collect::<rusqlite::Result<_>>()?)
    }

    /// Removes a session without tasks.
    pub(super) fn forget_session(&mut self, session: i64) -> Result<()> {
        self.connection.prepare_cached(prepared_statements::FORGET_SESSION)?.execute([session])?;
        self.prefer_no_longer(session)
    }
}
