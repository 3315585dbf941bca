//! The store's counters.

/// The numbers that the store assigned last. Each only ever rises, and a rollback leaves gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The number of the last submitted task.
    pub(crate) last_task: i64,
    /// The number of the last opened session.
    pub(crate) last_session: i64,
    /// The number of the last end of a task.
    pub(crate) ends: i64,
    /// The number of the last entry of the log.
    pub(crate) last_entry: i64,
}
