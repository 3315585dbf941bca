//! Cached rows of orchestrations between two turns, so that a message to one needs no read of its
//! row.

use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;

/// The number of cached rows; for other orchestrations the rows are read.
const MAX_ROWS: usize = 4096;

/// A cache of rows, never the truth. It belongs to the index, which removes a row here when its
/// orchestration leaves its list: every change of a task that no session holds takes it out of its
/// list first.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct IdleOrchestrations(NumberMap<i64, Box<LiveTask>>);

impl IdleOrchestrations {
    /// Caches an orchestration that is not scheduled; a scheduled one is moved when it is due,
    /// without the cache. All are dropped when there are too many: those that often receive
    /// messages are soon cached again.
    pub(in crate::sqlite) fn insert(&mut self, task: &LiveTask) {
        if task.scheduled {
            return;
        }
        if self.0.len() >= MAX_ROWS {
            self.0.clear();
        }
        self.0.insert(task.id.0, Box::new(task.clone()));
    }

    /// Returns the row of an orchestration.
    pub(in crate::sqlite) fn get(&self, task: i64) -> Option<&LiveTask> {
        self.0.get(&task).map(Box::as_ref)
    }

    /// Returns the row of an orchestration for a change that is also written.
    pub(in crate::sqlite) fn get_mut(&mut self, task: i64) -> Option<&mut LiveTask> {
        self.0.get_mut(&task).map(Box::as_mut)
    }

    /// Forgets an orchestration.
    pub(in crate::sqlite) fn remove(&mut self, task: i64) {
        if !self.0.is_empty() {
            self.0.remove(&task);
        }
    }
}
