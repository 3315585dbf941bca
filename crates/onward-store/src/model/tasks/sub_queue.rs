//! Sub-queues: tasks that wait in one order.

use crate::api::name::Name;
#[cfg(feature = "postgres")]
use crate::api::task::NewTask;
#[cfg(feature = "postgres")]
use crate::api::task::TaskId;
#[cfg(feature = "postgres")]
use crate::api::timestamp::Timestamp;
use crate::model::tasks::task::Task;

/// A sub-queue: waiting tasks with the same queue, kind, group and affinity key, in the order of
/// their sort keys. Orchestrations have separate sub-queues, because claims may leave them out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubQueue {
    pub(crate) queue: Name,
    pub(crate) kind: Name,
    pub(crate) group: Option<Name>,
    pub(crate) affinity_key: Option<Name>,
    pub(crate) orchestration: bool,
}

impl SubQueue {
    /// Returns the sub-queue of a task.
    pub(crate) fn of(task: &Task) -> Self {
        let new = &task.new;
        Self {
            queue: new.queue.clone(),
            kind: new.kind.clone(),
            group: new.group.clone(),
            affinity_key: new.affinity.clone(),
            orchestration: new.orchestration,
        }
    }

    /// Returns a sample task of the sub-queue.
    #[cfg(feature = "postgres")]
    pub(crate) fn task(&self, id: TaskId) -> Task {
        let Self { queue, kind, group, affinity_key, orchestration } = self.clone();
        let new = NewTask { queue, group, affinity: affinity_key, orchestration, ..NewTask::of(kind) };
        Task::submitted(id, new, Timestamp::MIN)
    }
}
