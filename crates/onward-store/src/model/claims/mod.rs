//! Claims: giving tasks to sessions.

pub(super) mod affinity;
pub(super) mod candidates;
pub(super) mod claim;
pub(super) mod session;
