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
pub(super) struct UndoRecord {
    pub(super) state: UndoState,
    /// The number of steps directly behind it that are not settled.
    pub(super) waits: usize,
    /// True if it and all steps behind it are undone, or have nothing to undo.
    pub(super) is_settled: bool,
    pub(super) error: Option<Arc<str>>,
    /// The first item that was not looked at.
    pub(super) next: u32,
    /// The tasks that are open.
    pub(super) open: u32,
    /// The items whose undo completed in an earlier try.
    pub(super) undone: Arc<std::collections::BTreeSet<u32>>,
}
