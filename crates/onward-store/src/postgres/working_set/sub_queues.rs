//! The loaded parts of the sub-queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::model::{PartialSubQueues, SubQueue};
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::task_row::LoadedTask;
use crate::rules::order::SortKey;

/// Waiting tasks by sub-queue and sort key, at most `limit` of each sub-queue.
#[derive(Debug)]
pub(in crate::postgres) struct SubQueueRows {
    /// The tasks, those of a sub-queue one after another.
    pub(crate) tasks: Vec<LoadedTask>,
    /// The limit: a sub-queue with fewer tasks has no more.
    pub(crate) limit: usize,
}

/// A sub-queue without loaded tasks: the values that its tasks share, and the sort key of the
/// first.
#[derive(Debug)]
pub(in crate::postgres) struct SubQueueHead {
    /// The sub-queue.
    pub(crate) sub_queue: SubQueue,
    /// The sort key of its first task.
    pub(crate) sort_key: SortKey,
}

impl WorkingSet {
    /// Returns true if every waiting task is loaded, and `None` if waiting tasks were not
    /// requested.
    pub(in crate::postgres) fn all_waiting_loaded(&self) -> Option<bool> {
        self.state.tasks.coverage.loaded()?.sub_queues.as_ref().map(PartialSubQueues::is_empty)
    }

    /// Adds every waiting task of the store.
    pub(in crate::postgres) fn all_waiting(&mut self, tasks: Vec<LoadedTask>) {
        for task in tasks {
            self.task(task);
        }
        self.change_loaded(|loaded| loaded.sub_queues = Some(PartialSubQueues::default()));
    }

    /// Adds the first tasks of some sub-queues, and the `heads` of those without loaded tasks. A
    /// loaded sub-queue is complete up to the first head of the same queue and kind.
    pub(crate) fn sub_queues(&mut self, sub_queues: SubQueueRows, heads: Vec<SubQueueHead>) {
        let mut bounds: BTreeMap<(Name, Name), SortKey> = BTreeMap::new();
        for SubQueueHead { sub_queue, sort_key } in &heads {
            let bound = bounds.entry((sub_queue.queue.clone(), sub_queue.kind.clone())).or_insert(*sort_key);
            *bound = (*bound).min(*sort_key);
        }
        let mut found: BTreeMap<SubQueue, Vec<TaskId>> = BTreeMap::new();
        for task in sub_queues.tasks {
            let id = self.task(task);
            let sub_queue = self.state.tasks.get(id).map(SubQueue::of);
            sub_queue.into_iter().for_each(|sub_queue| found.entry(sub_queue).or_default().push(id));
        }
        let more = found.into_iter().filter_map(|(sub_queue, tasks)| {
            let last = self.state.tasks.share(*tasks.last()?)?;
            let is_full = tasks.len() >= sub_queues.limit;
            let bound = || bounds.get(&(sub_queue.queue.clone(), sub_queue.kind.clone())).copied();
            // A full sub-queue is known up to its last task; a shorter one up to the bound, or to
            // its end.
            let behind = if is_full { last.sort_key() } else { bound()? };
            Some((sub_queue, (behind, Arc::clone(last))))
        });
        let mut more: BTreeMap<_, _> = more.collect();
        more.extend(heads.into_iter().map(|SubQueueHead { sub_queue, sort_key }| {
            let task = Arc::new(sub_queue.task(sort_key.task));
            (sub_queue, (sort_key, task))
        }));
        self.change_loaded(|loaded| loaded.sub_queues = Some(PartialSubQueues::of(more)));
    }

    /// Adds the first tasks of one sub-queue.
    pub(crate) fn sub_queue(&mut self, sub_queue: &SubQueue, rows: SubQueueRows) {
        let count = rows.tasks.len();
        let last = rows.tasks.into_iter().map(|task| self.task(task)).last();
        let last = last.filter(|_| count >= rows.limit).and_then(|last| self.state.tasks.share(last)).cloned();
        self.change_loaded(|loaded| {
            loaded.sub_queues.get_or_insert_default().set(sub_queue, last.map(|last| (last.sort_key(), last)));
        });
    }
}
