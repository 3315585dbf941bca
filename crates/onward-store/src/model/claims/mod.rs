//! Claims: giving tasks to sessions.
//!
//! A [session](session) is a lease of a whole worker, which each claim renews. A [`claim`] first
//! applies what has come due, then takes tasks one by one: [`candidates`] has the queues that still
//! have a task to start, and the order in which they take turns. [`affinity`] leaves tasks to the
//! session that ran the last one with their key. [`contention`] explains tasks that wait although
//! every limit of theirs has room.

pub(super) mod affinity;
pub(super) mod candidates;
pub(super) mod claim;
mod contention;
pub(super) mod session;
