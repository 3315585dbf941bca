//! The items of batches.

use crate::api::event::Change;
use crate::api::notification::TaskNotification;
use crate::api::outcome::Refusal;
use crate::api::reason::WaitReason;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::model::batches::index::batch_key_of;
use crate::model::dependencies::dependents::UnpropagatedEnd;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::aggregate::{self, PendingBatchState};

impl State {
    /// Removes an ended or removed task from its pending batch or its batch. An item that ended
    /// with its batch stays in it.
    pub(in crate::model) fn leave_batch(&mut self, id: TaskId, new: &NewTask, is_removed: bool) {
        let Some(batch) = self.batches.batch_of(id) else { return self.leave_pending_batch(id, new) };
        let is_live = self.live_state(batch).is_some();
        if is_live || is_removed {
            self.batches.forget(id);
        }
        if is_live && !self.is_running(batch) && !self.batches.has_items(batch) {
            let now = self.now.wall;
            self.tasks.change(batch, |task| task.push_error_between(now, aggregate::EMPTIED.to_owned()));
            self.end(batch, TaskState::Cancelled);
        }
    }

    /// Returns the state of a task that exists and has not ended.
    fn live_state(&self, id: TaskId) -> Option<TaskState> {
        self.tasks.get(id).map(|task| task.state).filter(|state| !state.is_ended())
    }

    /// Returns whether a task runs.
    fn is_running(&self, id: TaskId) -> bool {
        self.live_state(id) == Some(TaskState::Running)
    }

    /// Returns the state of a task. An item runs while its batch does.
    pub(in crate::model) fn effective_state(&self, task: &Task) -> TaskState {
        let batch = self.batches.batch_of(task.id).filter(|_| !task.state.is_ended());
        if batch.is_some_and(|batch| self.is_running(batch)) { TaskState::Running } else { task.state }
    }

    /// Returns the batch of an item, unless the batch has ended.
    pub(in crate::model) fn live_batch_of(&self, item: TaskId) -> Option<&Task> {
        let batch = self.tasks.get(self.batches.batch_of(item)?)?;
        (!batch.state.is_ended()).then_some(batch)
    }

    /// Returns the live items of a batch whose cancellation was requested while the batch ran.
    fn items_to_cancel(&self, batch: TaskId) -> Vec<TaskId> {
        let is_to_cancel =
            |id: &TaskId| self.tasks.get(*id).is_some_and(|item| item.cancel_requested && !item.state.is_ended());
        self.batches.items_of(batch).into_iter().filter(is_to_cancel).collect()
    }

    /// Returns whether a cancellation was requested for items of a batch.
    pub(in crate::model) fn has_items_to_cancel(&self, batch: TaskId) -> bool {
        !self.items_to_cancel(batch).is_empty()
    }

    /// Cancels the items whose cancellation was requested while their batch ran. The batch waits
    /// again now.
    pub(in crate::model) fn cancel_marked_items(&mut self, batch: TaskId) {
        for item in self.items_to_cancel(batch) {
            self.end(item, TaskState::Cancelled);
        }
    }

    /// Returns whether the batch of an item has started. If so, deletes the item's expiry.
    pub(in crate::model) fn clear_expiry_if_started(&mut self, item: TaskId) -> bool {
        let started = self.live_batch_of(item).is_some_and(|batch| aggregate::has_started(batch.state, batch.attempts));
        if started {
            self.tasks.change(item, |task| task.expires_at = None);
        }
        started
    }

    /// Returns the next item that must end with an ended batch.
    pub(in crate::model) fn next_batch_item(&self, over: UnpropagatedEnd) -> Option<TaskId> {
        self.batches.item_from(over.task, over.next_item)
    }

    /// Ends an item with its batch.
    pub(in crate::model) fn end_item(&mut self, item: TaskId, over: UnpropagatedEnd) {
        if self.live_state(item).is_none() {
            return;
        }
        let last_error = self.tasks.get(over.task).and_then(|batch| batch.errors.last());
        let last_error = last_error.map(|error| error.message.as_str());
        if let Some(error) = aggregate::error(over.task, over.ended, last_error) {
            let now = self.now.wall;
            self.tasks.change(item, |task| task.push_error_between(now, error));
        }
        self.end(item, aggregate::end_of_item(over.ended));
    }

    /// Returns the ended items of a batch, which wait again when the ended batch is retried.
    pub(in crate::model) fn items_to_retry(&self, batch: &Task) -> Result<Vec<TaskId>, Refusal> {
        let items = self.batches.items_of(batch.id);
        if batch.items > 0 && items.is_empty() {
            return Err(aggregate::without_items(batch.id));
        }
        let ended: Vec<TaskId> = items.into_iter().filter(|item| self.live_state(*item).is_none()).collect();
        for item in &ended {
            let taken = self.tasks.get(*item).and_then(|item| self.keys.active(&item.new));
            if let Some(by) = taken {
                return Err(Refusal::KeyTaken { task: *item, by });
            }
        }
        Ok(ended)
    }

    /// Makes the items that ended with a batch wait with it again.
    pub(in crate::model) fn retry_items(&mut self, batch: TaskId, items: Vec<TaskId>) {
        self.dependencies.keep_items(batch);
        for item in items {
            let Some(new) = self.tasks.get(item).map(|task| task.new.clone()) else { continue };
            self.register_names(Some(&new.queue), None);
            self.keys.take(item, &new);
            self.reset(item);
            self.log(item, Change::Retried);
            self.notifications.push(TaskNotification::Retried { task: item });
        }
    }

    /// Returns why an item waits: it is in a pending batch, or in a batch that has not ended.
    pub(in crate::model) fn why_aggregated(&self, task: &Task) -> Option<WaitReason> {
        task.new.aggregate.filter(|_| task.state == TaskState::Blocked)?;
        if let Some(batch) = self.batches.batch_of(task.id) {
            return Some(WaitReason::InBatch { batch });
        }
        let (pending_batch, _) = self.batches.pending.get(&batch_key_of(&task.new))?;
        let PendingBatchState { items, size, ready_at, .. } = *pending_batch;
        Some(WaitReason::PendingBatch { items, size, ready_at })
    }
}
