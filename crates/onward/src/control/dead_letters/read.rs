//! Reads dead letters.

use std::collections::BTreeMap;

use onward_store::{Page, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState, bounds as store_bounds};

use super::cause::{DeadCause, DeadCauses};
use crate::bounds;
use crate::engine::Engine;
use crate::error::Result;

/// Dead letters by their cause. The cause of a dead letter is its kind and its last error, without
/// the numbers in it.
impl Engine {
    /// Returns the causes of the newest [`DEAD_LETTERS`](bounds::DEAD_LETTERS) dead letters.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn dead_causes(&self) -> Result<DeadCauses> {
        let mut causes: BTreeMap<String, DeadCause> = BTreeMap::new();
        let mut tasks = 0;
        let has_more = self
            .read_dead(|task| {
                tasks += 1;
                let cause = DeadCause::of(task);
                match causes.get_mut(&cause.fingerprint) {
                    Some(known) => known.add(cause),
                    None => drop(causes.insert(cause.fingerprint.clone(), cause)),
                }
                true
            })
            .await?;
        let mut causes: Vec<DeadCause> = causes.into_values().collect();
        causes.sort_by_key(|cause| std::cmp::Reverse((cause.tasks, cause.newest_at)));
        Ok(DeadCauses { causes, tasks, has_more })
    }

    /// Returns up to `limit` dead letters of a cause, the newest first.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn dead_letters(&self, fingerprint: &str, limit: usize) -> Result<Vec<TaskId>> {
        let mut found = Vec::new();
        self.read_dead(|task| {
            if DeadCause::of(task).fingerprint == fingerprint {
                found.push(task.id);
            }
            found.len() < limit
        })
        .await?;
        found.truncate(limit);
        Ok(found)
    }

    /// Passes dead letters to a function, the newest first, until it returns false. Returns true if
    /// there are more than the bound.
    async fn read_dead(&self, mut take: impl FnMut(&TaskRecord) -> bool) -> Result<bool> {
        let filter = TaskFilter { states: vec![TaskState::Dead], ..TaskFilter::default() };
        let (mut before, mut read) = (None, 0);
        while read < bounds::DEAD_LETTERS {
            let limit = store_bounds::PAGE.min(bounds::DEAD_LETTERS - read);
            let page = self.store().tasks(filter.clone(), Page { before, limit }).await?;
            read += page.tasks.len();
            if !page.tasks.iter().all(&mut take) {
                return Ok(false);
            }
            before = page.next;
            if before.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
