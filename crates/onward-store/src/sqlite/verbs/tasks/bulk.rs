//! Bulk operations: one operation applied to many tasks.

use crate::api::bulk::{Bulk, BulkDone, BulkVerb};
use crate::api::error::Result;
use crate::api::outcome::Outcome;
use crate::api::task::{TaskId, TaskState};
use crate::rules;
use crate::rules::bulk::Chunk;
use crate::sqlite::commit::transaction::{Transaction, VerbError, VerbResult};
use crate::sqlite::reads::filter::Range;
use crate::sqlite::reads::list::newest_ids;

impl Transaction<'_> {
    /// Applies an operation to a chunk of the tasks that a filter selects. A rejected task does not
    /// stop the others.
    pub(in crate::sqlite) fn bulk(&mut self, bulk: &Bulk) -> VerbResult<BulkDone> {
        rules::bulk::check(bulk)?;
        let Some(chunk) = Chunk::of(bulk, TaskId(self.cache.next_task - 1)) else { return Ok(BulkDone::default()) };
        if chunk.filter.asks_for_tags() {
            self.write_tags()?;
        }
        let range = Range { from: Some(chunk.from), before: Some(chunk.before) };
        let mut tasks = newest_ids(self.connection, &chunk.filter, range, chunk.limit + 1)?;
        let mut done = BulkDone { next: chunk.cut(&mut tasks), ..BulkDone::default() };
        // All states are read first, because the end of one task may wake or end another.
        let mut selected = Vec::with_capacity(tasks.len());
        for task in tasks {
            selected.extend(self.state_of(task)?.map(|before| (task, before)));
        }
        for (task, before) in selected {
            match self.bulk_one(&bulk.verb, task) {
                Ok(outcome) => done.count(task, before, &Ok(outcome)),
                Err(VerbError::Refused(refusal)) => done.count(task, before, &Err(refusal)),
                Err(failed) => return Err(failed),
            }
        }
        Ok(done)
    }

    /// Returns the state of a task, which the filter compares; `None` if the task does not exist.
    fn state_of(&mut self, task: TaskId) -> Result<Option<TaskState>> {
        match self.live(task)? {
            Some(live) => Ok(Some(live.state())),
            None => self.ended_state(task),
        }
    }

    /// Applies the operation to one task.
    fn bulk_one(&mut self, verb: &BulkVerb, task: TaskId) -> VerbResult<Outcome> {
        match verb {
            BulkVerb::Cancel => self.cancel(task),
            BulkVerb::Retry => self.retry(task),
            BulkVerb::RunNow => self.run_now(task),
            BulkVerb::Kill => self.kill(task),
            BulkVerb::Pause => self.pause_orchestration(task),
            BulkVerb::Resume => self.resume_orchestration(task),
            BulkVerb::Move(queue) => self.move_task(task, queue),
            BulkVerb::Delete => {
                self.remove_without_trace(task)?;
                Ok(Outcome::Done)
            }
        }
    }
}
