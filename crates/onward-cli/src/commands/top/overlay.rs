//! Content that covers the panes or waits for the user.

use onward_store::{TaskId, TaskRecord};

/// The content that covers the panes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Overlay {
    /// No overlay.
    #[default]
    None,
    /// The list of keys.
    Help,
    /// The filter, while the user types it.
    Filter,
    /// All facts of a task, scrolled to a line.
    Task(Box<TaskRecord>, u16),
    /// A question that `y` confirms.
    Ask(Question),
}

/// A change that needs confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Retries a dead letter.
    Retry(TaskId),
    /// Cancels a running task.
    Cancel(TaskId),
}
