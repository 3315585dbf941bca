//! The tasks of a run's steps, by the references under which they report.

use onward_store::{ChildTask, TaskId};
use rustc_hash::FxHashMap;

/// The tasks that a run waits for, as far as they are known: those from before the instance was
/// loaded are not.
#[derive(Debug, Default)]
pub(super) struct Children(FxHashMap<u64, TaskId>);

impl Children {
    pub(super) fn insert(&mut self, reference: u64, task: TaskId) {
        self.0.insert(reference, task);
    }

    pub(super) fn remove(&mut self, reference: u64) {
        self.0.remove(&reference);
    }

    /// Returns the number of tasks for which the run waits, as far as they are known.
    pub(super) fn open(&self) -> usize {
        self.0.len()
    }

    /// Returns the task of a reference, to cancel it: by its number if that is known.
    pub(super) fn child(&self, reference: u64) -> ChildTask {
        self.0.get(&reference).map_or(ChildTask::Reference(reference), |task| ChildTask::Task(*task))
    }
}
