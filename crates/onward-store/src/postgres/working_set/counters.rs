//! The numbers given last.

/// The numbers given last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) last_task: i64,
    pub(crate) last_session: i64,
    pub(crate) ends: i64,
    pub(crate) last_entry: i64,
}
