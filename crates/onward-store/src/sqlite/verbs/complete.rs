//! Ending attempts well, many at once.
//!
//! Completions of tasks without a key touch nothing but their own rows, so they may be gathered and done set-based: before any
//! other write that could see them, and at the end of the transaction. Nobody can tell.

use bytes::Bytes;
use rusqlite::params;

use crate::error::{Error, Result};
use crate::event::Change;
use crate::news::TaskNews;
use crate::outcome::{Outcome, Refusal};
use crate::sqlite::transaction::{Held, LiveTask, Transaction, Verb, id_values};
use crate::task::{Lease, TaskId, TaskState, check_payload};

impl Transaction<'_> {
    pub(in crate::sqlite) fn complete(&mut self, lease: Lease, result: Option<&Bytes>) -> Verb<Outcome> {
        let known = self.cache.held.get(lease.task).filter(|task| task.is_held_by(lease) && task.key.is_none());
        if let Some(task) = known {
            let (id, lane, run_at, attempts) = (task.id, task.lane, task.run_at, task.attempts.saturating_add(1));
            let Some(held) = task.held else { return Err(Refusal::LeaseLost(lease).into()) };
            self.check_result(lane, result)?;
            self.gather(id, lane, result)?;
            self.count_completed(lane, attempts, run_at, held.started_at);
            return Ok(Outcome::Done);
        }
        self.flush_completions()?;
        let (task, held) = self.held_by(lease)?;
        self.check_result(task.lane, result)?;
        self.complete_one(&task, held, result)?;
        Ok(Outcome::Done)
    }

    fn check_result(&self, lane: i64, result: Option<&Bytes>) -> Verb<()> {
        let Some(result) = result else { return Ok(()) };
        let kind = self.cache.names.lane(lane).map_or("", |lane| lane.kind_name.as_str());
        check_payload("result", result.len(), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()).into())
    }

    /// Leaves a completion for [`flush_completions`](Self::flush_completions). A result goes to history at once, since a set of
    /// ids cannot carry it.
    fn gather(&mut self, id: TaskId, lane: i64, result: Option<&Bytes>) -> Result<()> {
        if let Some(result) = result {
            let moved = self
                .connection
                .prepare_cached(include_str!("../sql/complete_with_result.sql"))?
                .execute(params![id.0, self.cache.next_log, self.now.as_microseconds(), result.as_ref()])?;
            check_moved(moved, 1)?;
        }
        self.completions.push((id, result.is_some()));
        self.cache.held.remove(id);
        self.count_running(lane, -1);
        self.log(id, lane, Change::Completed);
        self.hint.transitions += 1;
        self.tell(TaskNews::Completed { task: id, result: result.cloned() });
        Ok(())
    }

    /// Does the completions that were gathered.
    pub(in crate::sqlite) fn flush_completions(&mut self) -> Result<()> {
        if self.completions.is_empty() {
            return Ok(());
        }
        let mut completions = std::mem::take(&mut self.completions);
        completions.sort_unstable();
        let mut without_result = completions.iter().filter(|(_, has_result)| !has_result).map(|(id, _)| *id).peekable();
        if without_result.peek().is_some() {
            self.move_to_history(&Ranges::of(without_result))?;
        }
        self.delete_ended(&Ranges::of(completions.iter().map(|(id, _)| *id)))
    }

    fn move_to_history(&self, tasks: &Ranges) -> Result<()> {
        let (entry, now) = (self.cache.next_log, self.now.as_microseconds());
        let mut statement = self.connection.prepare_cached(include_str!("../sql/complete_range.sql"))?;
        for (first, last) in &tasks.long {
            check_moved(statement.execute(params![first.0, last.0, entry, now])?, length(*first, *last))?;
        }
        if tasks.single.is_empty() {
            return Ok(());
        }
        let ids = id_values(tasks.single.iter().copied());
        let mut statement = self.connection.prepare_cached(include_str!("../sql/complete_tasks.sql"))?;
        check_moved(statement.execute(params![ids, entry, now])?, tasks.single.len())
    }

    fn delete_ended(&self, tasks: &Ranges) -> Result<()> {
        for (first, last) in &tasks.long {
            let mut statement = self.connection.prepare_cached("DELETE FROM task WHERE id BETWEEN ? AND ?")?;
            statement.execute([first.0, last.0])?;
            let mut statement = self.connection.prepare_cached("DELETE FROM lease WHERE task BETWEEN ? AND ?")?;
            statement.execute([first.0, last.0])?;
        }
        if tasks.single.is_empty() {
            return Ok(());
        }
        let ids = id_values(tasks.single.iter().copied());
        self.connection.prepare_cached("DELETE FROM task WHERE id IN rarray(?)")?.execute([&ids])?;
        self.connection.prepare_cached("DELETE FROM lease WHERE task IN rarray(?)")?.execute([&ids])?;
        Ok(())
    }

    fn count_completed(&mut self, lane: i64, attempts: u32, run_at: i64, started_at: i64) {
        let run = (self.now.as_microseconds() - started_at).max(0);
        let change = self.statistics.entry((lane, TaskState::Completed)).or_default();
        change.ended += 1;
        change.kept += 1;
        change.attempts += i64::from(attempts);
        change.wait += (started_at - run_at).max(0);
        change.run += run;
        change.run_maximum = change.run_maximum.max(run);
    }

    fn complete_one(&mut self, task: &LiveTask, held: Held, result: Option<&Bytes>) -> Result<()> {
        self.count_completed(task.lane, task.attempts.saturating_add(1), task.run_at, held.started_at);
        self.end_completed(task, held, result)
    }
}

/// The shortest range for which a statement of its own costs less than its tasks one by one.
const LONG: usize = 4;

/// Tasks, divided into ranges without gaps, which SQLite walks at half the cost, and others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ranges {
    /// First and last task.
    long: Vec<(TaskId, TaskId)>,
    single: Vec<TaskId>,
}

impl Ranges {
    /// Divides tasks in ascending order.
    fn of(tasks: impl Iterator<Item = TaskId>) -> Self {
        let mut ranges = Self::default();
        let mut open: Option<(TaskId, TaskId)> = None;
        for task in tasks {
            match &mut open {
                Some((_, last)) if last.0 + 1 == task.0 => *last = task,
                _ => ranges.add(open.replace((task, task))),
            }
        }
        ranges.add(open);
        ranges
    }

    fn add(&mut self, range: Option<(TaskId, TaskId)>) {
        match range {
            Some((first, last)) if length(first, last) >= LONG => self.long.push((first, last)),
            Some((first, last)) => self.single.extend((first.0..=last.0).map(TaskId)),
            None => {}
        }
    }
}

fn length(first: TaskId, last: TaskId) -> usize {
    usize::try_from(last.0 - first.0 + 1).unwrap_or(0)
}

fn check_moved(moved: usize, expected: usize) -> Result<()> {
    if moved == expected {
        return Ok(());
    }
    Err(Error::corrupt("a running task is not in the store any more; restore a backup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_without_gaps_are_a_range_if_they_are_enough() {
        let ranges = Ranges::of([1, 2, 4, 5, 6, 7, 8, 10].map(TaskId).into_iter());
        let single = [1, 2, 10].map(TaskId).to_vec();
        assert_eq!(ranges, Ranges { long: vec![(TaskId(4), TaskId(8))], single });
    }
}
