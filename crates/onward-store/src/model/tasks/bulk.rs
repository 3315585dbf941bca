//! Bulk operations: one operation applied to many tasks.

use crate::api::bulk::{Bulk, BulkDone, BulkVerb};
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::model::reads::filter::shows;
use crate::model::state::State;
use crate::rules::bulk::Chunk;

impl State {
    /// Applies an operation to the next chunk of selected tasks, newest first. Returns the start of
    /// the following chunk.
    pub(in crate::model) fn bulk(&mut self, bulk: &Bulk) -> BulkDone {
        let Some(chunk) = Chunk::of(bulk, TaskId(self.last_task)) else { return BulkDone::default() };
        let looked_at = self.tasks.between(chunk.from, chunk.before).rev();
        let selected = looked_at.filter(|task| shows(&chunk.filter, task, &self.batches)).take(chunk.limit + 1);
        let selected: Vec<(TaskId, TaskState)> = selected.map(|task| (task.id, task.state)).collect();
        let mut tasks: Vec<TaskId> = selected.iter().map(|(task, _)| *task).collect();
        let mut done = BulkDone { next: chunk.cut(&mut tasks), ..BulkDone::default() };
        for (task, before) in selected.into_iter().take(tasks.len()) {
            done.count(task, before, &self.bulk_one(&bulk.verb, task));
        }
        done
    }

    /// Applies the operation to one task. The caller counts refusals.
    fn bulk_one(&mut self, verb: &BulkVerb, task: TaskId) -> Result<Outcome, Refusal> {
        match verb {
            BulkVerb::Cancel => self.cancel(task),
            BulkVerb::Retry => self.retry(task),
            BulkVerb::RunNow => self.run_now(task),
            BulkVerb::Kill => self.kill(task),
            BulkVerb::Pause => self.pause_orchestration(task),
            BulkVerb::Resume => self.resume_orchestration(task),
            BulkVerb::Move(queue) => self.move_task(task, queue.clone()),
            BulkVerb::Delete => {
                self.remove_without_trace(task);
                Ok(Outcome::Done)
            }
        }
    }
}
