//! The state of a step's undo.

use std::sync::Arc;

/// The state of a step's undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum UndoState {
    /// There is nothing to undo.
    #[default]
    None,
    /// It starts when all steps behind it are undone.
    Needed,
    /// It has a task, or tasks for its items.
    Open,
    /// It completed.
    Completed,
    /// It failed for good.
    Failed,
}

impl UndoState {
    /// Returns the name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Needed => "needed",
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The undo of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::workflow::run) struct UndoRecord {
    pub(in crate::workflow::run) state: UndoState,
    /// The number of steps directly behind it that are not settled.
    pub(in crate::workflow::run) waits: usize,
    /// True if it and all steps behind it are undone, or have nothing to undo.
    pub(in crate::workflow::run) is_settled: bool,
    pub(in crate::workflow::run) error: Option<Arc<str>>,
    /// The first item that was not looked at.
    pub(in crate::workflow::run) next: u32,
    /// The tasks that are open.
    pub(in crate::workflow::run) open: u32,
    /// The items whose undo completed in an earlier try.
    pub(in crate::workflow::run) undone: Arc<std::collections::BTreeSet<u32>>,
}
