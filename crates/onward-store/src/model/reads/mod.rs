//! Reads of the state.

pub(super) mod daily_counts;
pub(super) mod filter;
pub(super) mod records;
pub(super) mod tags;
pub(super) mod why;
