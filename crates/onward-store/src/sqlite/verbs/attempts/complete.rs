//! Completes attempts, many at once.
//!
//! A completion checks its lease and frees its key at once. Moving the row to history is put off,
//! so that many rows move in one statement. They are moved before any other write that could see
//! them, and at the end of the transaction. So no caller can observe the difference.

use bytes::Bytes;
use rusqlite::params;

use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{Lease, TaskId, TaskState, check_payload};
use crate::sqlite::columns::links::DEPENDENTS;
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::{LiveTask, RunningAttempt, Transaction, VerbResult, id_values};

impl Transaction<'_> {
    /// Completes an attempt. The row of a task without other relations than dependents moves later,
    /// with others. Any other task ends at once.
    pub(in crate::sqlite) fn complete(&mut self, lease: Lease, result: Option<&Bytes>) -> VerbResult<Outcome> {
        let successors = self.cache.successors;
        let known = self.cache.running_rows.get(lease.task).filter(|task| {
            let is_plain = task.links & !DEPENDENTS == 0 && !task.options.orchestration;
            task.is_held_by(lease) && is_plain && (task.key.is_none() || !successors)
        });
        if let Some(task) = known {
            let Some(running) = task.running else { return Err(Refusal::LeaseLost(lease).into()) };
            let (sub_queue, run_at, attempts) = (task.sub_queue, task.run_at, task.attempts.saturating_add(1));
            let (expected_io, io) = (task.options.expected_io, task.options.io);
            self.check_result(sub_queue, result)?;
            self.gather(Completion { task: lease.task, running, has_result: result.is_some() }, sub_queue, result)?;
            self.count_completed(sub_queue, attempts, run_at, running.started_at);
            self.count_io(sub_queue, expected_io, io)?;
            return Ok(Outcome::Done);
        }
        self.flush_completions()?;
        let (task, running) = self.running_under(lease)?;
        self.check_result(task.sub_queue, result)?;
        self.complete_one(&task, running, result)?;
        Ok(Outcome::Done)
    }

    /// Rejects a result that is too large.
    pub(super) fn check_result(&self, sub_queue: i64, result: Option<&Bytes>) -> VerbResult<()> {
        let Some(result) = result else { return Ok(()) };
        let kind = self.cache.names.sub_queue(sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        check_payload("result", result.len(), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()).into())
    }

    /// Puts a completion off to [`flush_completions`](Self::flush_completions). A task with a
    /// result moves to history at once, because one statement for a range of tasks cannot carry
    /// results.
    fn gather(&mut self, completion: Completion, sub_queue: i64, result: Option<&Bytes>) -> Result<()> {
        let Completion { task, running, .. } = completion;
        if let Some(result) = result {
            let moved = self
                .connection
                .prepare_cached(include_str!("../../sql/attempts/complete_with_result.sql"))?
                .execute(params![
                    task.0,
                    running.claim,
                    running.started_at,
                    self.cache.next_log,
                    self.now.as_microseconds(),
                    result.as_ref()
                ])?;
            check_count(moved, 1)?;
        }
        self.completions.push(completion);
        let completed = self.cache.running_rows.take(task);
        if let Some(task) = &completed {
            task.key.as_ref().map_or(Ok(()), |key| self.free_key(task, key))?;
            self.note_retention(task.id, task.options.retention)?;
            if task.links & DEPENDENTS != 0 {
                self.queue_propagation(task.id);
            }
        }
        self.count_end(sub_queue)?;
        self.log(task, sub_queue, Change::Completed);
        self.hint.transitions += 1;
        if let Some(task) = completed.filter(|task| task.options.report.is_some()) {
            self.report_end(&task, TaskState::Completed, (running.claim, result))?;
        }
        self.notify(TaskNotification::Completed { task, result: result.cloned() });
        Ok(())
    }

    /// Writes the completions that were put off.
    pub(in crate::sqlite) fn flush_completions(&mut self) -> Result<()> {
        if self.completions.is_empty() {
            return Ok(());
        }
        let mut completions = std::mem::take(&mut self.completions);
        completions.sort_unstable_by_key(|completion| completion.task);
        let without_result = completions.iter().filter(|completion| !completion.has_result);
        self.move_to_history(&Ranges::of(without_result.map(|completion| (completion.task, completion.running))))?;
        self.delete_ended(&Ranges::of(completions.iter().map(|completion| (completion.task, ()))))
    }

    /// Copies completed tasks to the history, by ranges if possible.
    fn move_to_history(&self, tasks: &Ranges<RunningAttempt>) -> Result<()> {
        let (entry, now) = (self.cache.next_log, self.now.as_microseconds());
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/attempts/complete_range.sql"))?;
        for range in &tasks.long {
            let RunningAttempt { claim, started_at, .. } = range.alike;
            let moved = statement.execute(params![range.first.0, range.last.0, claim, started_at, entry, now])?;
            check_count(moved, range.length())?;
        }
        if tasks.single.is_empty() {
            return Ok(());
        }
        let ids = id_values(tasks.single.iter().copied());
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/attempts/complete_tasks.sql"))?;
        check_count(statement.execute(params![ids, entry, now])?, tasks.single.len())
    }

    /// Deletes completed tasks, and the leases whose tasks have all ended.
    fn delete_ended(&self, tasks: &Ranges<()>) -> Result<()> {
        for range in &tasks.long {
            let mut statement = self.connection.prepare_cached(prepared_statements::DELETE_RANGE)?;
            check_count(statement.execute([range.first.0, range.last.0])?, range.length())?;
            self.drop_empty_leases(range.first, range.last)?;
        }
        if tasks.single.is_empty() {
            return Ok(());
        }
        let ids = id_values(tasks.single.iter().copied());
        self.connection.prepare_cached(prepared_statements::DELETE_TASKS)?.execute([&ids])?;
        self.connection
            .prepare_cached(include_str!("../../sql/attempts/drop_empty_leases_of_tasks.sql"))?
            .execute([&ids])?;
        Ok(())
    }

    /// Counts a completion in the statistics.
    pub(in crate::sqlite::verbs) fn count_completed(
        &mut self,
        sub_queue: i64,
        attempts: u32,
        run_at: i64,
        started_at: i64,
    ) {
        let run = (self.now.as_microseconds() - started_at).max(0);
        let base = self.cache.names.ungrouped_of(sub_queue);
        let change = self.statistics.entry((base, TaskState::Completed)).or_default();
        change.ended += 1;
        change.in_history += 1;
        change.attempts += i64::from(attempts);
        change.wait += (started_at - run_at).max(0);
        change.run += run;
        change.run_maximum = change.run_maximum.max(run);
    }

    /// Completes one task without putting it off.
    pub(in crate::sqlite::verbs) fn complete_one(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        result: Option<&Bytes>,
    ) -> Result<()> {
        self.count_completed(task.sub_queue, task.attempts.saturating_add(1), task.run_at, running.started_at);
        self.count_io(task.sub_queue, task.options.expected_io, task.options.io)?;
        self.end_completed(task, running, result)
    }
}

/// A completion that has an outcome but is not written yet.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Completion {
    /// The task.
    task: TaskId,
    /// The lease. Tasks with equal leases and consecutive numbers form a range.
    running: RunningAttempt,
    /// True if the task is in history already, with its result.
    has_result: bool,
}

/// The shortest range for which one statement costs less than its tasks one by one.
const LONG: usize = 4;

/// Tasks, divided into ranges and single tasks. SQLite walks a range at half the cost of single
/// tasks.
#[derive(Debug, PartialEq, Eq)]
struct Ranges<T> {
    /// The ranges that are long enough.
    long: Vec<Range<T>>,
    /// All other tasks.
    single: Vec<TaskId>,
}

/// Tasks with consecutive numbers and one common property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range<T> {
    /// The first task.
    first: TaskId,
    /// The last task.
    last: TaskId,
    /// The common property.
    alike: T,
}

impl<T: Copy + Eq> Ranges<T> {
    /// Divides tasks, which come in ascending order.
    fn of(tasks: impl Iterator<Item = (TaskId, T)>) -> Self {
        let mut ranges = Self { long: Vec::new(), single: Vec::new() };
        let mut open: Option<Range<T>> = None;
        for (task, alike) in tasks {
            match &mut open {
                Some(range) if range.last.0 + 1 == task.0 && range.alike == alike => range.last = task,
                _ => ranges.add(open.replace(Range { first: task, last: task, alike })),
            }
        }
        ranges.add(open);
        ranges
    }

    /// Adds a range, or its tasks if it is short.
    fn add(&mut self, range: Option<Range<T>>) {
        match range {
            Some(range) if range.length() >= LONG => self.long.push(range),
            Some(Range { first, last, .. }) => self.single.extend((first.0..=last.0).map(TaskId)),
            None => {}
        }
    }
}

impl<T> Range<T> {
    /// Returns the number of tasks.
    fn length(&self) -> usize {
        usize::try_from(self.last.0 - self.first.0 + 1).unwrap_or(0)
    }
}

/// Checks that a statement has changed every task. A missing row means damage.
fn check_count(changed: usize, expected: usize) -> Result<()> {
    if changed == expected {
        return Ok(());
    }
    Err(Error::corrupt("a running task is not in the store any more; restore a backup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, alike: i64) -> Range<i64> {
        Range { first: TaskId(first), last: TaskId(last), alike }
    }

    #[test]
    fn tasks_without_gaps_are_a_range_if_they_are_enough() {
        let ranges = Ranges::of([1, 2, 4, 5, 6, 7, 8, 10].map(|task| (TaskId(task), 0)).into_iter());
        let single = [1, 2, 10].map(TaskId).to_vec();
        assert_eq!(ranges, Ranges { long: vec![range(4, 8, 0)], single });
    }

    #[test]
    fn a_range_is_of_tasks_that_are_alike() {
        let ranges = Ranges::of((1..=8).map(|task| (TaskId(task), i64::from(task > 4))));
        assert_eq!(ranges, Ranges { long: vec![range(1, 4, 0), range(5, 8, 1)], single: Vec::new() });
    }
}
