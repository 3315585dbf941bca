//! Claims: giving tasks to sessions.

pub(super) mod affinity;
pub(super) mod candidates;
pub(super) mod claim;
mod contention;
pub(super) mod session;
