//! Filters of events.

use onward_store::{Change, Event, Name, TaskId};

/// A filter of events. An event must meet every condition that is set.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventFilter {
    pub(crate) task: Option<TaskId>,
    pub(crate) kinds: Vec<Name>,
    pub(crate) queue: Option<Name>,
    /// True selects only the ends of tasks.
    pub(crate) ends: bool,
}

impl EventFilter {
    pub(crate) fn selects(&self, event: &Event) -> bool {
        self.task.is_none_or(|task| event.task == task)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.queue.as_ref().is_none_or(|queue| event.queue == *queue)
            && (!self.ends || is_end(&event.change))
    }
}

fn is_end(change: &Change) -> bool {
    matches!(change, Change::Completed | Change::Failed | Change::Dead | Change::Cancelled | Change::Expired)
}
