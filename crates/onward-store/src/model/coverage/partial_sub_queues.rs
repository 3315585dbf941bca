//! Sub-queues that are not fully loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::Task;
use crate::rules::order::SortKey;

/// The sub-queues that are not fully loaded, each with the sort key up to which it is loaded and a
/// sample task of the sub-queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartialSubQueues {
    sub_queues: BTreeMap<SubQueue, (SortKey, Arc<Task>)>,
    /// The lowest of the sort keys.
    pub(in crate::model) first: Option<SortKey>,
}

impl PartialSubQueues {
    /// Returns the table with the lowest sort key computed.
    #[cfg(feature = "postgres")]
    pub(crate) fn of(sub_queues: BTreeMap<SubQueue, (SortKey, Arc<Task>)>) -> Self {
        let first = sub_queues.values().map(|(sort_key, _)| *sort_key).min();
        Self { sub_queues, first }
    }

    /// Sets the end of the loaded part of a sub-queue, or marks the sub-queue as fully loaded.
    #[cfg(feature = "postgres")]
    pub(crate) fn set(&mut self, sub_queue: &SubQueue, more: Option<(SortKey, Arc<Task>)>) {
        let mut sub_queues = std::mem::take(&mut self.sub_queues);
        match more {
            Some(more) => drop(sub_queues.insert(sub_queue.clone(), more)),
            None => drop(sub_queues.remove(sub_queue)),
        }
        *self = Self::of(sub_queues);
    }

    /// Returns whether every sub-queue is fully loaded.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_empty(&self) -> bool {
        self.sub_queues.is_empty()
    }

    /// Returns each sub-queue with the sort key up to which it is loaded and its sample task.
    pub(in crate::model) fn iter(&self) -> impl Iterator<Item = (&SubQueue, SortKey, &Task)> {
        self.sub_queues.iter().map(|(sub_queue, (sort_key, task))| (sub_queue, *sort_key, &**task))
    }
}
