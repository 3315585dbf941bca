//! What time brings.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::limits;
use crate::outcome::Swept;
use crate::sqlite::index::position;
use crate::sqlite::transaction::{Transaction, Verb};
use crate::task::{Priority, TaskId, TaskState};

impl Transaction<'_> {
    pub(in crate::sqlite) fn sweep(&mut self) -> Verb<Swept> {
        self.end_pauses()?;
        let due = self.promote_due()?;
        let expired = self.expire()?;
        let lost = self.lapse_sessions()?;
        Ok(Swept { due, expired, lost, next_due: self.next_due()? })
    }

    fn end_pauses(&mut self) -> Result<()> {
        for scope in self.cache.pauses.elapsed(self.now) {
            self.cache.pauses.clear(self.connection, &scope)?;
            self.hint.work += 1;
        }
        Ok(())
    }

    fn promote_due(&mut self) -> Result<u64> {
        let due = self.cache.index.due(self.connection, self.now.as_microseconds(), limits::SWEEP)?;
        for (run_at, task, lane) in &due {
            self.cache.index.remove_scheduled(self.connection, *run_at, *task)?;
            let priority: u8 = self
                .connection
                .prepare_cached("UPDATE task SET scheduled = 0 WHERE id = ? RETURNING priority")?
                .query_row([task], |row| row.get(0))?;
            self.cache.index.add_ready(self.connection, *lane, position(Priority(priority), *task))?;
            self.hint.work += 1;
        }
        Ok(due.len() as u64)
    }

    fn expire(&mut self) -> Result<u64> {
        let expired = self.cache.index.expired(self.connection, self.now.as_microseconds(), limits::SWEEP)?;
        for task in &expired {
            if let Some(live) = self.live(TaskId(*task))? {
                self.end_unheld(&live, TaskState::Expired)?;
            }
        }
        Ok(expired.len() as u64)
    }

    /// Takes back what sessions hold whose lease is over.
    fn lapse_sessions(&mut self) -> Result<u64> {
        let mut lost = 0;
        for session in self.lapsed_sessions()? {
            lost += self.lapse(session, limits::SWEEP - lost)?;
            if lost >= limits::SWEEP {
                break;
            }
        }
        Ok(lost as u64)
    }

    fn lapsed_sessions(&self) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(include_str!("../sql/lapsed_sessions.sql"))?;
        let sessions = statement.query_map([self.steady], |row| row.get(0))?;
        Ok(sessions.collect::<rusqlite::Result<_>>()?)
    }

    /// Takes back what a session holds, at most `limit` tasks; the session is gone when it holds nothing more.
    pub(in crate::sqlite) fn lapse(&mut self, session: i64, limit: usize) -> Result<usize> {
        let tasks = self.held_tasks(session, limit)?;
        for task in &tasks {
            if let Some(live) = self.live(*task)?
                && let Some(held) = live.held
            {
                self.lose(&live, held)?;
            }
        }
        if tasks.len() < limit || self.held_tasks(session, 1)?.is_empty() {
            self.forget_session(session)?;
        }
        Ok(tasks.len())
    }

    /// How long until time alone changes something.
    pub(in crate::sqlite) fn next_due(&self) -> Result<Option<Duration>> {
        let wall = [
            self.cache.index.next_time(self.connection)?,
            self.cache.pauses.next_end().map(crate::timestamp::Timestamp::as_microseconds),
        ];
        let wall = wall.into_iter().flatten().min().map(|at| at.saturating_sub(self.now.as_microseconds()));
        let lapse = self.next_lapse()?.map(|at| at.saturating_sub(self.steady));
        let next = [wall, lapse].into_iter().flatten().min();
        Ok(next.map(|microseconds| Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))))
    }

    /// When the next session lapses that holds something.
    fn next_lapse(&self) -> Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(include_str!("../sql/next_lapse.sql"))?;
        Ok(statement.query_row(params![], |row| row.get(0)).optional()?.flatten())
    }
}
