//! The pending batches, and the batch of each item.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::rules::aggregate::PendingBatchState;

/// A queue, a kind and a group. Tasks with equal values form one batch.
pub(crate) type BatchKey = (Name, Name, Option<Name>);

/// The pending batches, and the batch of each item.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batches {
    pub(crate) pending: BTreeMap<BatchKey, (PendingBatchState, BTreeSet<TaskId>)>,
    pub(crate) batch_of: BTreeMap<TaskId, TaskId>,
    /// Pairs of a batch and an item, live or ended.
    pub(crate) items: BTreeSet<(TaskId, TaskId)>,
}

impl Batches {
    /// Returns the batch that an item belongs to.
    pub(in crate::model) fn batch_of(&self, item: TaskId) -> Option<TaskId> {
        self.batch_of.get(&item).copied()
    }

    /// Adds an item to a batch.
    pub(crate) fn adopt(&mut self, batch: TaskId, item: TaskId) {
        self.batch_of.insert(item, batch);
        self.items.insert((batch, item));
    }

    /// Removes an item from its batch.
    pub(in crate::model) fn forget(&mut self, item: TaskId) {
        if let Some(batch) = self.batch_of.remove(&item) {
            self.items.remove(&(batch, item));
        }
    }

    /// Returns the first item of a batch whose number is at least `from`.
    pub(super) fn item_from(&self, batch: TaskId, from: TaskId) -> Option<TaskId> {
        let next = self.items.range((batch, from)..).next();
        next.filter(|(of, _)| *of == batch).map(|(_, item)| *item)
    }

    /// Returns all items of a batch by number, ended ones included.
    pub(super) fn items_of(&self, batch: TaskId) -> Vec<TaskId> {
        let of = self.items.range((batch, TaskId(i64::MIN))..=(batch, TaskId(i64::MAX)));
        of.map(|(_, item)| *item).collect()
    }

    /// Returns whether a batch has items.
    pub(in crate::model) fn has_items(&self, batch: TaskId) -> bool {
        self.item_from(batch, TaskId(i64::MIN)).is_some()
    }
}

/// Returns the key of the pending batch that a task joins.
pub(in crate::model) fn batch_key_of(new: &NewTask) -> BatchKey {
    (new.queue.clone(), new.kind.clone(), new.group.clone())
}
