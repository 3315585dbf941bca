//! Removes tasks permanently.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::limit::{Limit, LimitScope};
use crate::api::name::Name;
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::api::write::{Prune, Scope};
use crate::bounds;
use crate::rules;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};
use crate::sqlite::commit::transition_log::{Logged, decode};
use crate::sqlite::limits::limit_usage::ScopeNumber;
use crate::sqlite::verbs::relations::batches::is_batch_item;

/// The bounds and the progress of a prune.
///
/// It removes ended tasks in the order of their ends, log row by log row, from where the last prune
/// stopped.
struct Pruning {
    /// Tasks that ended before this time are removed.
    before: i64,
    /// The number of tasks to remove regardless of the time of their end, the oldest ends first.
    excess: u64,
    /// The number of tasks that may still be removed.
    left: usize,
    /// The number of tasks removed so far.
    removed: u64,
    /// The log row of the last end that was removed.
    last_row: i64,
    /// The log row of the first end that stays although it is in scope, if the prune reached one.
    kept_row: Option<i64>,
    /// True if more tasks could be removed.
    more: bool,
}

/// The data of an ended task that was removed.
struct Removed {
    /// The sub-queue's number.
    sub_queue: i64,
    /// The row of the log that records its end.
    ended_in: i64,
}

impl Pruning {
    /// Returns true if the next end is to be removed. Otherwise records why the prune stops there.
    fn takes(&mut self, row: i64, at: i64) -> bool {
        let is_over = at < self.before || self.excess > 0;
        if is_over && self.left > 0 {
            self.excess = self.excess.saturating_sub(1);
            return true;
        }
        self.kept_row = Some(row);
        self.more |= is_over;
        false
    }

    /// Records the removal of a task whose end is in log row `row`.
    fn removed(&mut self, row: i64) {
        self.left = self.left.saturating_sub(1);
        self.removed += 1;
        self.last_row = self.last_row.max(row);
    }

    /// Returns the first log row that must stay.
    fn forget_before(&self) -> i64 {
        self.kept_row.map_or(self.last_row + 1, |kept| kept.min(self.last_row + 1))
    }
}

impl Transaction<'_> {
    /// Removes tasks of a queue in given states, live ones included.
    pub(in crate::sqlite) fn purge(&mut self, queue: &Name, states: &[TaskState], limit: usize) -> VerbResult<Outcome> {
        rules::purge::check(queue, states)?;
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

    /// Returns live tasks of a queue in some states, oldest first.
    fn live_of_queue(&self, queue: i64, states: &[TaskState], limit: usize) -> Result<Vec<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/tasks/live_tasks_of_queue.sql"))?;
        let scheduled = states.contains(&TaskState::Scheduled);
        let waiting = states.contains(&TaskState::Waiting);
        let blocked = states.contains(&TaskState::Blocked);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows =
            statement.query_map(params![queue, scheduled, waiting, limit, blocked], |row| Ok((row.get(0)?, true)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the oldest ended tasks of a queue.
    fn ended_of_queue(&self, queue: i64, states: &[TaskState], limit: usize) -> Result<Vec<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/tasks/ended_tasks_of_queue.sql"))?;
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

    /// Removes a task with all its rows. For the dependents of a live task this counts as a
    /// cancellation.
    pub(in crate::sqlite::verbs) fn remove_without_trace(&mut self, id: TaskId) -> Result<()> {
        if let Some(task) = self.live(id)? {
            self.leave_list(&task.entry())?;
            if let Some(key) = &task.key {
                let kind = self.kind_of(task.sub_queue);
                self.cache.index.free_key(self.connection, kind, key, id.0)?;
            }
            self.connection.prepare_cached("DELETE FROM task WHERE id = ?")?.execute([id.0])?;
            self.untag(id, &task.options.tags)?;
            self.propagate_end(&task, None)?;
            self.forget_child(id, task.options.parent.map(|parent| parent.0))?;
            self.log(id, task.sub_queue, Change::Purged);
            self.report_end(&task, TaskState::Cancelled, (task.claims, None))?;
            if task.options.orchestration {
                self.remove_instance(id)?;
            }
            self.hint.transitions += 1;
            self.notify(TaskNotification::Ended { task: id });
            if is_batch_item(&task) {
                self.leave_batch(&task, true)?;
            }
            return self.remove_details(id);
        }
        if let Some(removed) = self.remove_ended(id)? {
            self.forget_retained_key(id)?;
            self.log(id, removed.sub_queue, Change::Purged);
            self.hint.transitions += 1;
            self.notify(TaskNotification::Ended { task: id });
        }
        Ok(())
    }

    /// Removes an ended task.
    fn remove_ended(&mut self, id: TaskId) -> Result<Option<Removed>> {
        let removed: Option<(Removed, i64, i64, TaskOptions)> = self
            .connection
            .prepare_cached(
                "DELETE FROM history WHERE id = ? RETURNING sub_queue, ended_in, state, finished_at, options",
            )?
            .query_row([id.0], |row| {
                let removed = Removed { sub_queue: row.get(0)?, ended_in: row.get(1)? };
                Ok((removed, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .optional()?;
        let Some((removed, state, finished_at, options)) = removed else { return Ok(None) };
        self.uncount(removed.sub_queue, state);
        self.forget_retention(id, finished_at, &options)?;
        self.untag(id, &options.tags)?;
        self.forget_child(id, options.parent.map(|parent| parent.0))?;
        if options.aggregate.is_some() {
            self.forget_batch_of(id)?;
        }
        if options.orchestration {
            self.remove_instance(id)?;
        }
        self.remove_details(id)?;
        Ok(Some(removed))
    }

    /// Deletes the rows of a task in other tables.
    fn remove_details(&self, id: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM attempt_error WHERE task = ?")?.execute([id.0])?;
        self.connection.prepare_cached("DELETE FROM progress WHERE task = ?")?.execute([id.0])?;
        self.connection.prepare_cached("DELETE FROM successor WHERE task = ?")?.execute([id.0])?;
        self.remove_output(id)
    }

    /// Deletes a queue that has no live tasks, with its settings.
    pub(in crate::sqlite) fn delete_queue(&mut self, queue: &Name) -> VerbResult<Outcome> {
        let number = self.cache.names.queue(queue).ok_or_else(|| Refusal::QueueNotFound(queue.clone()))?;
        let live: i64 = self
            .connection
            .prepare_cached("SELECT count(*) FROM task WHERE sub_queue IN (SELECT id FROM sub_queue WHERE queue = ?)")?
            .query_row([number], |row| row.get(0))?;
        if live > 0 {
            return Err(Refusal::QueueInUse { queue: queue.clone(), live: live.unsigned_abs() }.into());
        }
        self.cache.pauses.clear(self.connection, &Scope::Queue(queue.clone()))?;
        self.cache.queues.forget(self.connection, number)?;
        let scope = LimitScope::Queue(queue.clone());
        self.save_all_counters()?;
        let (scope, now) = ((&scope, Some(ScopeNumber::Queue(number))), self.steady_time());
        self.cache.limits.set(self.connection, scope, Limit::default(), 0, now)?;
        self.cache.limits.fair_shares.forget_queue(self.connection, number)?;
        self.cache.names.delete_queue(self.connection, queue)?;
        self.cache.queues.reconfigured(self.connection)?;
        Ok(Outcome::Done)
    }

    /// Removes tasks whose own retention is over. Then walks the log from its oldest row, and
    /// removes ended tasks without a retention of their own. Deletes the log rows before the point
    /// at which it stops.
    pub(in crate::sqlite) fn prune(&mut self, prune: &Prune) -> VerbResult<Outcome> {
        self.forget_retained_keys()?;
        let count = |keep: u64| -> Result<u64> {
            Ok(self.history_count()?.saturating_sub(self.retention_count()?).saturating_sub(keep))
        };
        let mut pruning = Pruning {
            before: prune.older_than.map_or(i64::MIN, |age| self.now.minus(age).as_microseconds()),
            excess: prune.keep.map_or(Ok(0), count)?,
            left: prune.limit,
            removed: 0,
            last_row: 0,
            kept_row: None,
            more: false,
        };
        self.prune_expired_retentions(&mut pruning)?;
        if prune.older_than.is_some() || prune.keep.is_some() || pruning.removed > 0 {
            self.prune_rows(&mut pruning)?;
        }
        if pruning.removed > 0 {
            self.forget_log(pruning.forget_before())?;
        }
        Ok(Outcome::Removed { tasks: pruning.removed, more: pruning.more })
    }

    /// Removes tasks whose own retention is over.
    fn prune_expired_retentions(&mut self, pruning: &mut Pruning) -> Result<()> {
        let (tasks, more) = self.expired_retentions(pruning.left)?;
        pruning.more = more;
        for task in tasks {
            let removed = self.remove_ended(task)?;
            removed.into_iter().for_each(|removed| pruning.removed(removed.ended_in));
        }
        Ok(())
    }

    /// Walks the log from the oldest row to the first row that must stay. That row is cached, so
    /// the next prune does not walk over removed ends again.
    fn prune_rows(&mut self, pruning: &mut Pruning) -> Result<()> {
        let mut row = self.cache.pruned_to - 1;
        while let Some((id, at, changes)) = self.next_log_row(row)? {
            row = id;
            if !self.prune_row(pruning, (id, at), &changes)? {
                self.cache.pruned_to = id;
                return Ok(());
            }
        }
        self.cache.pruned_to = self.cache.next_log;
        // The log row of this transaction is not in the table yet.
        let changes = self.log.bytes().to_vec();
        self.prune_row(pruning, (self.cache.next_log, self.now.as_microseconds()), &changes).map(drop)
    }

    /// Removes the tasks that ended in a log row. Returns true if the prune continues.
    fn prune_row(&mut self, pruning: &mut Pruning, (row, at): (i64, i64), changes: &[u8]) -> Result<bool> {
        for task in ended_tasks(changes)? {
            if !self.ended_in(task, row)? {
                continue;
            }
            if !pruning.takes(row, at) {
                return Ok(false);
            }
            self.remove_ended(task)?;
            pruning.removed(row);
        }
        Ok(true)
    }

    /// Returns true if a task last ended in log row `row`, and has no retention of its own.
    fn ended_in(&self, task: TaskId, row: i64) -> Result<bool> {
        let ended: Option<(i64, TaskOptions)> = self
            .connection
            .prepare_cached("SELECT ended_in, options FROM history WHERE id = ?")?
            .query_row([task.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(ended.is_some_and(|(ended_in, options)| ended_in == row && options.retention.is_none()))
    }

    /// Returns the first log row above a number.
    fn next_log_row(&self, after: i64) -> Result<Option<(i64, i64, Vec<u8>)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT id, at, changes FROM log WHERE id > ? ORDER BY id LIMIT 1")?;
        Ok(statement.query_row([after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?)
    }

    /// Deletes log rows below a number. The newest row stays, because it has the number of the next
    /// task.
    fn forget_log(&mut self, before: i64) -> Result<()> {
        if self.cache.limits.has_deferred_counters() {
            // Deferred counters are recomputed from the log, so they are saved before rows are
            // deleted.
            self.save_all_counters()?;
        }
        self.connection
            .prepare_cached("DELETE FROM log WHERE id < ?")?
            .execute([before.min(self.cache.next_log - 1)])?;
        Ok(())
    }

    /// Returns the number of ended tasks, from the statistics.
    fn history_count(&self) -> Result<u64> {
        let saved: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(sum(in_history), 0) FROM statistics")?
            .query_row([], |row| row.get(0))?;
        let unsaved: i64 = self.statistics.values().map(|change| change.in_history).sum();
        u64::try_from(saved + unsaved)
            .map_err(|_| Error::corrupt("the store counts fewer than no ended tasks; restore a backup"))
    }

    /// Removes unique keys whose time is over.
    fn forget_retained_keys(&self) -> Result<()> {
        self.connection
            .prepare_cached(
                "DELETE FROM retained_key WHERE (kind, key) IN (SELECT kind, key FROM retained_key WHERE until <= ? LIMIT ?)",
            )?
            .execute(params![self.now.as_microseconds(), bounds::SWEEP.cast_signed()])?;
        Ok(())
    }
}

/// Returns the tasks that ended in a log row, in the order of their ends. A task that ended twice
/// counts at its last end.
pub(in crate::sqlite) fn ended_tasks(changes: &[u8]) -> Result<Vec<TaskId>> {
    let ends: Vec<TaskId> = decode(changes)?.into_iter().filter(Logged::is_end).map(|change| change.task).collect();
    let last: HashMap<TaskId, usize> = ends.iter().enumerate().map(|(sort_key, task)| (*task, sort_key)).collect();
    Ok(ends
        .into_iter()
        .enumerate()
        .filter(|(sort_key, task)| last.get(task) == Some(sort_key))
        .map(|(_, task)| task)
        .collect())
}
