//! Settings: queues, limits, schedules.

pub(in crate::sqlite) mod limits;
pub(in crate::sqlite) mod queues;
pub(in crate::sqlite) mod schedules;
