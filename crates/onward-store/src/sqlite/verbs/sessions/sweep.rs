//! Sweeps: the changes that time alone causes.

use std::time::Duration;

use crate::api::error::Result;
use crate::api::outcome::Swept;
use crate::api::task::{Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules;
use crate::rules::order;
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};

impl Transaction<'_> {
    /// Sweeps. The outcome has the time until another sweep has an effect.
    pub(in crate::sqlite) fn sweep(&mut self) -> VerbResult<Swept> {
        let swept = self.sweep_now()?;
        let next = [self.next_due()?, self.next_token(None)?];
        Ok(Swept { next_due: next.into_iter().flatten().min(), ..swept })
    }

    /// Sweeps without computing the time of the next sweep.
    pub(in crate::sqlite::verbs) fn sweep_now(&mut self) -> VerbResult<Swept> {
        self.end_pauses()?;
        self.forget_unused_affinity_keys()?;
        self.release_groups()?;
        let due = self.promote_due()?;
        let lost = self.lapse_sessions()?;
        self.fail_overdue()?;
        // Last, because a task of a lapsed session may have expired, and a claim must not find it.
        let expired = self.expire()?;
        let batches = self.submit_ready_batches()?;
        self.propagate_ends()?;
        self.release_reservations()?;
        Ok(Swept { due: due + batches, expired, lost, next_due: None })
    }

    /// Ends pauses whose end has passed.
    fn end_pauses(&mut self) -> Result<()> {
        for scope in self.cache.pauses.elapsed(self.now) {
            self.cache.pauses.clear(self.connection, &scope)?;
            self.refresh_scope(&scope)?;
            self.cache.queues.reconfigured(self.connection)?;
            self.hint.work += 1;
        }
        Ok(())
    }

    /// Moves scheduled tasks that are due to their ready lists.
    fn promote_due(&mut self) -> Result<u64> {
        let due = self.cache.index.due(self.connection, self.now.as_microseconds(), bounds::SWEEP)?;
        for (run_at, task, sub_queue) in &due {
            self.cache.index.remove_scheduled(self.connection, *run_at, *task, *sub_queue)?;
            // Two statements: SQLite would create a temporary table for one with `RETURNING`.
            let priority: u8 = self
                .connection
                .prepare_cached("SELECT priority FROM task WHERE id = ?")?
                .query_row([task], |row| row.get(0))?;
            self.connection.prepare_cached("UPDATE task SET scheduled = 0 WHERE id = ?")?.execute([task])?;
            let sort_key = order::sort_key(Priority(priority), Timestamp::from_microseconds(*run_at), TaskId(*task));
            self.enter_list_when_due(*sub_queue, sort_key)?;
            self.hint.work += 1;
        }
        Ok(due.len() as u64)
    }

    /// Ends tasks that have expired.
    fn expire(&mut self) -> Result<u64> {
        let expired = self.cache.index.expired(self.connection, self.now.as_microseconds(), bounds::SWEEP)?;
        let mut ended = 0;
        for task in expired {
            let Some(live) = self.live(TaskId(task))? else { continue };
            if !self.outlives(&live)? {
                self.end_unheld(&live, TaskState::Expired)?;
                ended += 1;
            }
        }
        Ok(ended)
    }

    /// Takes the tasks of sessions back whose lease is over. Deletes sessions that have held no
    /// task for long.
    fn lapse_sessions(&mut self) -> Result<u64> {
        let mut lost = 0;
        let (lapsed, forgotten) = self.sessions_over()?;
        for session in forgotten {
            self.forget_session(session)?;
        }
        for session in lapsed {
            lost += self.lapse(session, bounds::SWEEP - lost)?;
            if lost >= bounds::SWEEP {
                break;
            }
        }
        Ok(lost as u64)
    }

    /// Returns the sessions whose lease is over: those with tasks, which lapse, and those to
    /// delete.
    fn sessions_over(&self) -> Result<(Vec<i64>, Vec<i64>)> {
        let mut statement = self.connection.prepare_cached(prepared_statements::SESSIONS_OVER)?;
        let mut sessions = statement.query([self.steady])?;
        let (mut lapsed, mut forgotten) = (Vec::new(), Vec::new());
        while let Some(row) = sessions.next()? {
            let (session, lease_until) = (row.get(0)?, row.get(1)?);
            let holds_something = self.holds_something(session)?;
            if holds_something {
                lapsed.push(session);
            } else if rules::session::is_forgotten(steady(lease_until), holds_something, steady(self.steady)) {
                forgotten.push(session);
            }
        }
        forgotten.truncate(bounds::SWEEP);
        Ok((lapsed, forgotten))
    }

    /// Returns true if a session holds a task. A query of its own: as a subquery, SQLite would
    /// build an index of all leases each time.
    fn holds_something(&self, session: i64) -> Result<bool> {
        Ok(!self.running_tasks(session, 1)?.is_empty())
    }

    /// Takes back at most `limit` tasks of a session, and deletes the session if it holds no more.
    /// Returns the number of tasks.
    pub(in crate::sqlite) fn lapse(&mut self, session: i64, limit: usize) -> Result<usize> {
        let tasks = self.running_tasks(session, limit)?;
        for task in &tasks {
            if let Some(live) = self.live(*task)?
                && let Some(running) = live.running
            {
                self.lose(&live, running)?;
            }
        }
        if tasks.len() < limit || self.running_tasks(session, 1)?.is_empty() {
            self.forget_session(session)?;
        }
        Ok(tasks.len())
    }

    /// Returns the time until the next change that time alone causes, without tokens.
    pub(in crate::sqlite) fn next_due(&mut self) -> Result<Option<Duration>> {
        let wall = [
            self.cache.index.next_time(self.connection)?,
            self.cache.pauses.next_end().map(Timestamp::as_microseconds),
            self.cache.next_overdue,
            self.cache.next_ready_batch,
        ];
        let wall = wall.into_iter().flatten().min().map(|at| at.saturating_sub(self.now.as_microseconds()));
        let lapse = self.next_lapse()?.map(|at| at.saturating_sub(self.steady));
        let unpropagated = (self.cache.has_unpropagated_ends || !self.unpropagated_ends.is_empty()).then_some(0);
        let next = [wall, lapse, unpropagated].into_iter().flatten().min();
        let next = next.map(|microseconds| Duration::from_micros(u64::try_from(microseconds).unwrap_or(0)));
        Ok([next, self.next_release()?].into_iter().flatten().min())
    }

    /// Returns the time at which the next session with tasks lapses.
    fn next_lapse(&self) -> Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(prepared_statements::SESSIONS_BY_END)?;
        let mut sessions = statement.query([])?;
        while let Some(session) = sessions.next()? {
            if self.holds_something(session.get(0)?)? {
                return Ok(Some(session.get(1)?));
            }
        }
        Ok(None)
    }
}

/// Returns a steady time from a column.
fn steady(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}
