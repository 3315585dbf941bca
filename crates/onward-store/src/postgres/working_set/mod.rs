//! The working set: the loaded part of a store, over which the [model](crate::model) decides, with
//! its rows and its changes.
//!
//! If the model needs a row that is not loaded, it records a load request (`model/coverage`). A
//! decision with open requests is void. The store then loads the rows and decides again, so a
//! partly loaded store returns the same outcome as a fully loaded one.

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
