//! Cached rows of running tasks that this process has claimed, so that ending them needs no read of
//! their rows.

use crate::api::task::TaskId;
use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;

/// The number of cached rows; for other tasks the rows are read.
const MAX_ROWS: usize = 65_536;

/// A cache of rows, never the truth: a change of a running task's row removes it first.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct RunningTasks(NumberMap<i64, Box<LiveTask>>);

impl RunningTasks {
    /// Adds a task, unless there are too many.
    pub(in crate::sqlite) fn insert(&mut self, task: Box<LiveTask>) {
        if self.0.len() < MAX_ROWS {
            self.0.insert(task.id.0, task);
        }
    }

    /// Returns a task's row.
    pub(in crate::sqlite) fn get(&self, task: TaskId) -> Option<&LiveTask> {
        self.0.get(&task.0).map(Box::as_ref)
    }

    /// Returns a task's row for a change that is also written.
    pub(in crate::sqlite) fn get_mut(&mut self, task: TaskId) -> Option<&mut LiveTask> {
        self.0.get_mut(&task.0).map(Box::as_mut)
    }

    /// Forgets a task, which must be done before its row changes.
    pub(in crate::sqlite) fn remove(&mut self, task: TaskId) {
        self.take(task);
    }

    /// Takes a task's row.
    pub(in crate::sqlite) fn take(&mut self, task: TaskId) -> Option<Box<LiveTask>> {
        self.0.remove(&task.0)
    }
}
