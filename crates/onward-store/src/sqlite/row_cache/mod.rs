//! Cached rows of live tasks, so that a claim, an end or a message need not read them. The table
//! has the truth: each change of a row also changes or drops the cached one.

pub(super) mod idle_orchestrations;
pub(super) mod running_tasks;
pub(super) mod waiting_tasks;
