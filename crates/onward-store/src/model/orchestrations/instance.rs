//! The stored state of an orchestration, beyond that of its task.

use std::sync::Arc;

use crate::api::orchestration::{HistoryChunk, Instance, InstanceRecord};
use crate::api::task::TaskId;
use crate::model::state::State;

impl State {
    /// Changes the instance of an orchestration. Does nothing for any other task.
    pub(super) fn change_instance(&mut self, id: TaskId, change: impl FnOnce(&mut Instance)) {
        self.tasks.change(id, |task| {
            if let Some(instance) = &mut task.instance {
                change(Arc::make_mut(instance));
            }
        });
    }

    /// Returns the instance of an orchestration.
    pub(in crate::model) fn instance(&self, id: TaskId) -> Option<&Instance> {
        self.tasks.get(id)?.instance.as_deref()
    }

    /// Returns an orchestration as a reader receives it.
    pub(crate) fn instance_record(&self, id: TaskId) -> Option<InstanceRecord> {
        self.instance(id).map(Instance::record)
    }

    /// Returns at most `limit` chunks of the history that have events from number `from` on.
    pub(crate) fn instance_history(&self, id: TaskId, from: u64, limit: usize) -> Vec<HistoryChunk> {
        let chunks = self.instance(id).map(|instance| instance.chunks.as_slice()).unwrap_or_default();
        chunks.iter().filter(|chunk| chunk.first + chunk.events > from).take(limit).cloned().collect()
    }
}
