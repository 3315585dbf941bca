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
        let completions = std::mem::take(&mut self.completions);
        let without_result = completions.iter().filter(|(_, has_result)| !has_result).map(|(id, _)| *id);
        let expected = without_result.clone().count();
        if expected > 0 {
            let moved = self.connection.prepare_cached(include_str!("../sql/complete_tasks.sql"))?.execute(params![
                id_values(without_result),
                self.cache.next_log,
                self.now.as_microseconds()
            ])?;
            check_moved(moved, expected)?;
        }
        let all = id_values(completions.iter().map(|(id, _)| *id));
        self.connection.prepare_cached("DELETE FROM task WHERE id IN rarray(?)")?.execute([&all])?;
        self.connection.prepare_cached("DELETE FROM lease WHERE task IN rarray(?)")?.execute([&all])?;
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

fn check_moved(moved: usize, expected: usize) -> Result<()> {
    if moved == expected {
        return Ok(());
    }
    Err(Error::corrupt("a running task is not in the store any more; restore a backup"))
}
