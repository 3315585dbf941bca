//! The order in which tasks start, and what delays a start.

pub mod affinity;
pub mod claim;
pub mod limits;
pub mod minimum_priority;
pub mod queues;
pub mod schedules;
pub mod sessions;
pub mod shares;
pub mod sweep;
