//! Tasks that the user names by number, or one by its key.

use clap::Args;
use onward_store::{Name, Page, Store, StoreReads, TaskFilter, TaskId, TaskState};

/// The tasks that the user named.
#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// Task numbers
    #[arg(value_name = "TASK", required_unless_present = "key", conflicts_with = "key")]
    tasks: Vec<TaskId>,
    /// The task with this key, instead of numbers: the live one, else the newest
    #[arg(long)]
    key: Option<String>,
    /// With --key: only of this kind
    #[arg(long, requires = "key")]
    kind: Option<Name>,
}

impl Tasks {
    /// Returns the task numbers.
    ///
    /// # Errors
    /// Returns an error if no task has the key.
    pub(super) async fn numbers(self, store: &dyn Store) -> anyhow::Result<Vec<TaskId>> {
        let Some(key) = self.key else { return Ok(self.tasks) };
        let filter = TaskFilter { kind: self.kind, key: Some(key.clone()), ..TaskFilter::default() };
        let live = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        for filter in [TaskFilter { states: live, ..filter.clone() }, filter] {
            let found = store.task_ids(filter, Page { before: None, limit: 1 }).await?.tasks;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Err(anyhow::anyhow!("no task has the key `{key}`; it may have been pruned from history"))
    }
}
