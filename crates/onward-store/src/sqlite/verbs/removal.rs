//! Removing tasks for good.

use rusqlite::{OptionalExtension, params};

use crate::error::{Error, Result};
use crate::event::Change;
use crate::limits;
use crate::name::Name;
use crate::outcome::{Outcome, Refusal};
use crate::sqlite::log::decode;
use crate::sqlite::transaction::{Transaction, Verb};
use crate::task::{TaskId, TaskState};
use crate::write::{Prune, Scope};

/// How far a prune may go.
struct PruneBounds {
    /// Only what ended before.
    before: i64,
    /// Only so many.
    limit: u64,
}

impl Transaction<'_> {
    pub(in crate::sqlite) fn purge(&mut self, queue: &Name, states: &[TaskState], limit: usize) -> Verb<Outcome> {
        if states.is_empty() || states.contains(&TaskState::Running) {
            let text =
                "a purge names the states of the tasks it removes, and running tasks cannot be removed; cancel them";
            return Err(Refusal::Invalid(text.into()).into());
        }
        let number = self.cache.names.queue(queue).ok_or_else(|| Refusal::QueueNotFound(queue.clone()))?;
        let wanted = limit.saturating_add(1);
        let mut tasks = self.live_of_queue(number, states, wanted)?;
        tasks.extend(self.ended_of_queue(number, states, wanted)?);
        tasks.sort_unstable();
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        for (task, _) in &tasks {
            self.remove_without_trace(TaskId(*task))?;
        }
        Ok(Outcome::Removed { tasks: tasks.len() as u64, more })
    }

    /// Live tasks of a queue in some states, oldest first.
    fn live_of_queue(&self, queue: i64, states: &[TaskState], limit: usize) -> Result<Vec<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../sql/live_of_queue.sql"))?;
        let scheduled = states.contains(&TaskState::Scheduled);
        let waiting = states.contains(&TaskState::Waiting);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![queue, scheduled, waiting, limit], |row| Ok((row.get(0)?, true)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn ended_of_queue(&self, queue: i64, states: &[TaskState], limit: usize) -> Result<Vec<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../sql/ended_of_queue.sql"))?;
        let mut tasks = Vec::new();
        for state in states.iter().filter(|state| state.is_ended()) {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![queue, state.code(), limit], |row| Ok((row.get(0)?, false)))?;
            tasks.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        tasks.sort_unstable();
        tasks.dedup();
        tasks.truncate(limit);
        Ok(tasks)
    }

    fn remove_without_trace(&mut self, id: TaskId) -> Result<()> {
        if let Some(task) = self.live(id)? {
            self.cache.index.remove(self.connection, &task.entry())?;
            if let Some(key) = &task.key {
                let kind = self.kind_of(task.lane);
                self.cache.index.free_key(self.connection, kind, key, id.0)?;
            }
            self.connection.prepare_cached("DELETE FROM task WHERE id = ?")?.execute([id.0])?;
            self.log(id, task.lane, Change::Purged);
            self.hint.transitions += 1;
            return self.remove_details(id);
        }
        if let Some(lane) = self.remove_ended(id, None)? {
            self.log(id, lane, Change::Purged);
            self.hint.transitions += 1;
        }
        Ok(())
    }

    /// Removes an ended task, if it ended in that log row; answers its lane.
    fn remove_ended(&mut self, id: TaskId, ended_in: Option<i64>) -> Result<Option<i64>> {
        let removed: Option<(i64, i64)> = self
            .connection
            .prepare_cached(
                "DELETE FROM history WHERE id = ?1 AND ended_in = coalesce(?2, ended_in) RETURNING lane, state",
            )?
            .query_row(params![id.0, ended_in], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((lane, state)) = removed else { return Ok(None) };
        self.uncount(lane, state);
        self.remove_details(id)?;
        Ok(Some(lane))
    }

    fn remove_details(&self, id: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM attempt_error WHERE task = ?")?.execute([id.0])?;
        self.connection.prepare_cached("DELETE FROM progress WHERE task = ?")?.execute([id.0])?;
        self.connection.prepare_cached("DELETE FROM follower WHERE task = ?")?.execute([id.0])?;
        Ok(())
    }

    pub(in crate::sqlite) fn delete_queue(&mut self, queue: &Name) -> Verb<Outcome> {
        let number = self.cache.names.queue(queue).ok_or_else(|| Refusal::QueueNotFound(queue.clone()))?;
        let live: i64 = self
            .connection
            .prepare_cached("SELECT count(*) FROM task WHERE lane IN (SELECT id FROM lane WHERE queue = ?)")?
            .query_row([number], |row| row.get(0))?;
        if live > 0 {
            return Err(Refusal::QueueInUse { queue: queue.clone(), live: live.unsigned_abs() }.into());
        }
        self.cache.pauses.clear(self.connection, &Scope::Queue(queue.clone()))?;
        self.cache.names.delete_queue(self.connection, queue)?;
        Ok(Outcome::Done)
    }

    /// Forgets ended tasks in the order in which they ended, by walking the log from its oldest row; a row all of whose
    /// tasks are gone is forgotten too.
    pub(in crate::sqlite) fn prune(&mut self, prune: &Prune) -> Verb<Outcome> {
        self.forget_kept_keys()?;
        let before = prune.older_than.map_or(i64::MAX, |age| self.now.minus(age).as_microseconds());
        let over = match prune.keep {
            Some(keep) => self.history_count()?.saturating_sub(keep),
            None if prune.older_than.is_some() => u64::MAX,
            None => 0,
        };
        let limit = over.min(prune.limit as u64);
        let removed = self.prune_rows(&PruneBounds { before, limit })?;
        let more = removed == limit && removed < over && self.more_to_prune(before)?;
        Ok(Outcome::Removed { tasks: removed, more })
    }

    fn prune_rows(&mut self, bounds: &PruneBounds) -> Result<u64> {
        let mut removed = 0;
        let mut last_row = 0;
        while removed < bounds.limit {
            let Some((row, changes)) = self.next_log_row(last_row, bounds.before)? else { break };
            last_row = row;
            let mut whole = true;
            for change in decode(&changes)?.into_iter().filter(crate::sqlite::log::Logged::is_end) {
                if removed == bounds.limit {
                    whole = false;
                    break;
                }
                removed += u64::from(self.remove_ended(change.task, Some(row))?.is_some());
            }
            if whole {
                self.forget_log_row(row)?;
            }
        }
        Ok(removed)
    }

    fn next_log_row(&self, after: i64, before: i64) -> Result<Option<(i64, Vec<u8>)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT id, changes, at FROM log WHERE id > ? ORDER BY id LIMIT 1")?;
        let row: Option<(i64, Vec<u8>, i64)> =
            statement.query_row([after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        Ok(row.filter(|(_, _, at)| *at < before).map(|(id, changes, _)| (id, changes)))
    }

    /// The newest row stays: it carries the number of the next task.
    fn forget_log_row(&self, row: i64) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM log WHERE id = ?1 AND id < (SELECT max(id) FROM log)")?
            .execute([row])?;
        Ok(())
    }

    fn more_to_prune(&self, before: i64) -> Result<bool> {
        let oldest: Option<i64> = self
            .connection
            .prepare_cached("SELECT at FROM log ORDER BY id LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        Ok(oldest.is_some_and(|at| at < before) && self.history_count()? > 0)
    }

    fn history_count(&self) -> Result<u64> {
        let saved: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(sum(kept), 0) FROM statistics")?
            .query_row([], |row| row.get(0))?;
        let unsaved: i64 = self.statistics.values().map(|change| change.kept).sum();
        u64::try_from(saved + unsaved)
            .map_err(|_| Error::corrupt("the store counts fewer than no ended tasks; restore a backup"))
    }

    fn forget_kept_keys(&self) -> Result<()> {
        self.connection
            .prepare_cached(
                "DELETE FROM kept_key WHERE (kind, key) IN (SELECT kind, key FROM kept_key WHERE until <= ? LIMIT ?)",
            )?
            .execute(params![self.now.as_microseconds(), limits::SWEEP.cast_signed()])?;
        Ok(())
    }
}
