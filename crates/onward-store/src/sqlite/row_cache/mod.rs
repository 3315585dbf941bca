//! Copies of rows of live tasks in memory, never the truth, so that a claim, an end or a message
//! needs no read.

pub(in crate::sqlite) mod idle_orchestrations;
pub(in crate::sqlite) mod running_tasks;
pub(in crate::sqlite) mod waiting_tasks;
