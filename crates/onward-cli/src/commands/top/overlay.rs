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
    /// Whether a task is really meant to be tried again.
    Retry(TaskId),
}
