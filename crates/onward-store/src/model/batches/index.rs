//! What is collected, and which task is an item of which batch.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::rules::aggregate::PendingBatchState;

/// Queue, kind and group: what is collected together.
pub(crate) type BatchKey = (Name, Name, Option<Name>);

/// What is being collected, and who is an item of which batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batches {
    pub(crate) pending: BTreeMap<BatchKey, (PendingBatchState, BTreeSet<TaskId>)>,
    pub(crate) batch_of: BTreeMap<TaskId, TaskId>,
    /// A batch and an item, live or ended.
    pub(crate) items: BTreeSet<(TaskId, TaskId)>,
}

impl Batches {
    pub(in crate::model) fn batch_of(&self, item: TaskId) -> Option<TaskId> {
        self.batch_of.get(&item).copied()
    }

    pub(crate) fn adopt(&mut self, batch: TaskId, item: TaskId) {
        self.batch_of.insert(item, batch);
        self.items.insert((batch, item));
    }

    /// A task is an item of its batch no more.
    pub(in crate::model) fn forget(&mut self, item: TaskId) {
        if let Some(batch) = self.batch_of.remove(&item) {
            self.items.remove(&(batch, item));
        }
    }

    /// The first item of a batch from a number on.
    pub(super) fn item_from(&self, batch: TaskId, from: TaskId) -> Option<TaskId> {
        let next = self.items.range((batch, from)..).next();
        next.filter(|(of, _)| *of == batch).map(|(_, item)| *item)
    }

    pub(super) fn items_of(&self, batch: TaskId) -> Vec<TaskId> {
        let of = self.items.range((batch, TaskId(i64::MIN))..=(batch, TaskId(i64::MAX)));
        of.map(|(_, item)| *item).collect()
    }

    pub(in crate::model) fn has_items(&self, batch: TaskId) -> bool {
        self.item_from(batch, TaskId(i64::MIN)).is_some()
    }
}

pub(in crate::model) fn batch_key_of(new: &NewTask) -> BatchKey {
    (new.queue.clone(), new.kind.clone(), new.group.clone())
}
