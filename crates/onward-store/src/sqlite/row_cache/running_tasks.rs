//! Cached rows of running tasks that this process has claimed, so that their ends need not read
//! them.

use crate::api::task::TaskId;
use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;

/// The number of cached rows. Rows of further tasks are read.
const MAX_ROWS: usize = 65_536;

/// A cache of rows. A change of a running task's row drops or changes the cached row first.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct RunningTasks(NumberMap<i64, Box<LiveTask>>);

impl RunningTasks {
    /// Adds a task, unless the cache is full.
    pub(in crate::sqlite) fn insert(&mut self, task: Box<LiveTask>) {
        if self.0.len() < MAX_ROWS {
            self.0.insert(task.id.0, task);
        }
    }

    /// Returns a task's row.
    pub(in crate::sqlite) fn get(&self, task: TaskId) -> Option<&LiveTask> {
        self.0.get(&task.0).map(Box::as_ref)
    }

    /// Returns the cached row, for a change that is also made in the table.
    pub(in crate::sqlite) fn get_mut(&mut self, task: TaskId) -> Option<&mut LiveTask> {
        self.0.get_mut(&task.0).map(Box::as_mut)
    }

    /// Drops a task's row. The caller does this before it changes the row in the table.
    pub(in crate::sqlite) fn remove(&mut self, task: TaskId) {
        self.take(task);
    }

    /// Removes and returns a task's row.
    pub(in crate::sqlite) fn take(&mut self, task: TaskId) -> Option<Box<LiveTask>> {
        self.0.remove(&task.0)
    }
}
