//! The working set: the part of a store that is loaded, over which the [model](crate::model)
//! decides, with its rows and its changes.

pub(super) mod applied;
pub(super) mod change_set;
pub(super) mod contents;
pub(super) mod counters;
pub(super) mod decision;
pub(super) mod expected_requests;
pub(super) mod log_entry;
pub(super) mod reads;
pub(super) mod small_state;
pub(super) mod sub_queues;
pub(super) mod task_row;
#[cfg(test)]
mod tests;
