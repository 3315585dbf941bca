//! Cached rows of orchestrations between two turns, so that a message need not read the row.

use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;

/// The number of cached rows. Rows of further orchestrations are read.
const MAX_ROWS: usize = 4096;

/// A cache of rows. It belongs to the index, which removes a row when its orchestration leaves its
/// list. Every change of a task that no session holds removes it from its list first, so a cached
/// row is current.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct IdleOrchestrations(NumberMap<i64, Box<LiveTask>>);

impl IdleOrchestrations {
    /// Caches an orchestration, unless it is scheduled: a scheduled one changes when it is due,
    /// without this cache. Drops all rows if there are too many; orchestrations that often receive
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

    /// Returns the cached row, for a change that is also made in the table.
    pub(in crate::sqlite) fn get_mut(&mut self, task: i64) -> Option<&mut LiveTask> {
        self.0.get_mut(&task).map(Box::as_mut)
    }

    /// Drops the row of an orchestration.
    pub(in crate::sqlite) fn remove(&mut self, task: i64) {
        if !self.0.is_empty() {
            self.0.remove(&task);
        }
    }
}
