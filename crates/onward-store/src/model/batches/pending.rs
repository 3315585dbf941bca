//! Pending batches: tasks are collected until the batch is full or its time is over.

use std::collections::BTreeSet;

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::batches::index::BatchKey;
use crate::model::batches::index::batch_key_of;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::aggregate::{self, ItemFacts, PendingBatchState};

impl State {
    /// Adds a task to the pending batch of its queue, kind and group.
    pub(in crate::model) fn collect(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|task| !task.state.is_ended()) else { return };
        let Some(aggregate) = task.new.aggregate else { return };
        let (key, bytes, now) = (batch_key_of(&task.new), bytes_of(&task.new), self.now.wall);
        let has_room = |(pending_batch, _): &(PendingBatchState, _)| pending_batch.has_room_for(bytes);
        if !self.batches.pending.get(&key).is_none_or(has_room) {
            self.close_batch(&key);
        }
        let (before, mut items) =
            self.batches.pending.remove(&key).map_or((None, BTreeSet::new()), |(before, of)| (Some(before), of));
        items.insert(id);
        let pending_batch = PendingBatchState::joined(before, id, aggregate, bytes, now);
        self.batches.pending.insert(key.clone(), (pending_batch, items));
        if pending_batch.is_full() {
            self.close_batch(&key);
        }
    }

    /// Submits a pending batch as a batch. Returns its number of items.
    fn close_batch(&mut self, key: &BatchKey) -> usize {
        let Some((_, items)) = self.batches.pending.remove(key) else { return 0 };
        let tasks: Vec<&Task> = items.iter().filter_map(|item| self.tasks.get(*item)).collect();
        let Some(oldest) = tasks.first() else { return 0 };
        let mut new = NewTask::of(oldest.new.kind.clone());
        (new.queue, new.group) = (oldest.new.queue.clone(), oldest.new.group.clone());
        aggregate::adopt(&mut new, &tasks.into_iter().map(facts).collect::<Vec<_>>());
        let batch = self.insert(new);
        self.tasks.change(batch, |task| task.items = u32::try_from(items.len()).unwrap_or(u32::MAX));
        for item in &items {
            self.batches.adopt(batch, *item);
            self.log(*item, Change::Batched { batch });
        }
        items.len()
    }

    /// Submits the pending batches that are ready, the longest overdue first. Returns their number.
    pub(in crate::model) fn close_ready_batches(&mut self) -> u64 {
        let now = self.now.wall;
        let ready = self.batches.pending.iter().filter(|(_, (pending_batch, _))| pending_batch.ready_at <= now);
        let order_key = |pending_batch: &PendingBatchState| (pending_batch.ready_at, pending_batch.began_with);
        let mut ready: Vec<_> =
            ready.map(|(key, (pending_batch, _))| (order_key(pending_batch), key.clone())).collect();
        ready.sort_unstable();
        let (mut batches, mut items) = (0, 0);
        for (_, key) in ready {
            if items >= bounds::SWEEP {
                break;
            }
            items += self.close_batch(&key);
            batches += 1;
        }
        batches
    }

    /// Returns the time at which the first pending batch is ready if no more items arrive.
    pub(in crate::model) fn next_ready_batch(&self) -> Option<Timestamp> {
        self.batches.pending.values().map(|(pending_batch, _)| pending_batch.ready_at).min()
    }

    /// Removes a task from its pending batch, and deletes a pending batch that becomes empty.
    pub(in crate::model) fn leave_pending_batch(&mut self, id: TaskId, new: &NewTask) {
        let key = batch_key_of(new);
        let Some((pending_batch, items)) = self.batches.pending.get_mut(&key) else { return };
        if !items.remove(&id) {
            return;
        }
        match pending_batch.left(bytes_of(new)) {
            Some(left) => *pending_batch = left,
            None => drop(self.batches.pending.remove(&key)),
        }
    }

    /// Returns the pending batches, the one that is ready first at the beginning.
    pub(crate) fn pending_batch_records(&self, which: &PendingBatchSelection) -> Vec<PendingBatch> {
        let is_wanted = |queue: &Name| which.queue.as_ref().is_none_or(|wanted| wanted == queue);
        let mut found: Vec<_> = self.batches.pending.iter().filter(|((queue, ..), _)| is_wanted(queue)).collect();
        found.sort_unstable_by_key(|(_, (pending_batch, _))| (pending_batch.ready_at, pending_batch.began_with));
        let record = |(key, (pending_batch, _)): (&BatchKey, &(PendingBatchState, _))| {
            let (queue, kind, group) = key.clone();
            let PendingBatchState { items, size, bytes: payload_bytes, began_at, ready_at, .. } = *pending_batch;
            PendingBatch { queue, kind, group, items, size, payload_bytes, began_at, ready_at }
        };
        found.into_iter().take(which.limit.clamp(1, bounds::PAGE)).map(record).collect()
    }

    /// Returns whether a task is in a pending batch.
    pub(in crate::model) fn is_in_pending_batch(&self, task: &Task) -> bool {
        let is_live = !task.state.is_ended();
        is_live && task.new.aggregate.is_some() && self.batches.batch_of(task.id).is_none()
    }

    /// Removes a task from its pending batch, so that it can be collected elsewhere.
    pub(in crate::model) fn stop_collecting(&mut self, id: TaskId) {
        if let Some(new) = self.tasks.get(id).map(|task| task.new.clone()) {
            self.leave_pending_batch(id, &new);
        }
    }
}

/// Returns the properties of an item that its batch adopts.
fn facts(item: &Task) -> ItemFacts {
    let NewTask { priority, timeout, heartbeat_timeout, retention, retry, io, .. } = item.new;
    ItemFacts { priority, timeout, heartbeat_timeout, retention, retry, io }
}

/// Returns the size of a payload.
fn bytes_of(new: &NewTask) -> u64 {
    new.payload.len() as u64
}
