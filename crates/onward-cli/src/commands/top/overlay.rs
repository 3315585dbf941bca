//! What lies over the panes, or waits for an answer.

use onward_store::{TaskId, TaskRecord};

/// What lies over the panes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Overlay {
    /// Nothing.
    #[default]
    None,
    /// The keys.
    Help,
    /// The filter is being typed.
    Filter,
    /// All that is known of a task, from a line on.
    Task(Box<TaskRecord>, u16),
    /// A question that `y` affirms.
    Ask(Question),
}

/// A change that is made once it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// A dead letter is tried again.
    Retry(TaskId),
    /// A running task is cancelled.
    Cancel(TaskId),
}
