//! Copies of rows of live tasks in memory, never the truth, so that a claim, an end or a message
//! needs no read.

pub(super) mod idle_orchestrations;
pub(super) mod running_tasks;
pub(super) mod waiting_tasks;
