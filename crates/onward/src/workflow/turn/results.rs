//! Results that are read because an expression needs them.

use bytes::Bytes;
use onward_store::{Store, StoreReads, TaskId};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::workflow::run::Results;

/// The results that were read in a turn.
#[derive(Debug, Default)]
pub(super) struct ReadResults(FxHashMap<TaskId, Bytes>);

impl ReadResults {
    /// Reads the results of tasks.
    ///
    /// # Errors
    /// The store's error; `is_invalid` if a task is gone.
    pub(super) async fn read(&mut self, store: &dyn Store, tasks: Vec<TaskId>) -> Result<()> {
        for task in tasks {
            let Some(record) = store.task(task).await? else {
                return Err(Error::invalid(format!(
                    "the result of task {task} is needed and was deleted; reset the step that made it, with `onward workflow reset`"
                )));
            };
            self.0.insert(task, record.result.into_bytes().unwrap_or_default());
        }
        Ok(())
    }
}

impl Results for ReadResults {
    fn result(&self, task: TaskId) -> Option<&[u8]> {
        self.0.get(&task).map(Bytes::as_ref)
    }
}
