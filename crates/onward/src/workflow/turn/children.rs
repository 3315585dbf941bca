//! The tasks of a run's steps, by the references under which they report.

use onward_store::{Page, Store, StoreReads, TaskFilter, TaskId};
use rustc_hash::FxHashMap;

use crate::error::Result;

/// The tasks that a run waits for, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Children {
    tasks: FxHashMap<u64, TaskId>,
    /// True if tasks from before the instance was loaded are not known.
    is_incomplete: bool,
}

impl Children {
    /// Returns the children of a run that was loaded from its history.
    pub(super) fn unknown() -> Self {
        Self { tasks: FxHashMap::default(), is_incomplete: true }
    }

    pub(super) fn insert(&mut self, reference: u64, task: TaskId) {
        self.tasks.insert(reference, task);
    }

    pub(super) fn remove(&mut self, reference: u64) {
        self.tasks.remove(&reference);
    }

    /// Returns the task of a reference. Tasks from before the instance was loaded are read once,
    /// when the first of them is needed.
    pub(super) async fn task(&mut self, store: &dyn Store, run: TaskId, reference: u64) -> Result<Option<TaskId>> {
        if !self.tasks.contains_key(&reference) && self.is_incomplete {
            self.read(store, run).await?;
            self.is_incomplete = false;
        }
        Ok(self.tasks.get(&reference).copied())
    }

    async fn read(&mut self, store: &dyn Store, run: TaskId) -> Result<()> {
        let filter = TaskFilter { parent: Some(run), ..TaskFilter::default() };
        let mut page = Page::default();
        loop {
            let found = store.tasks(filter.clone(), page).await?;
            for task in &found.tasks {
                if let Some(reference) = task.report {
                    self.tasks.entry(reference).or_insert(task.id);
                }
            }
            match found.next {
                Some(before) => page.before = Some(before),
                None => return Ok(()),
            }
        }
    }
}
