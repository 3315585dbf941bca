//! The path of a write to the file: [`writer`] gathers the writes of callers, [`committer`] commits
//! them as one [`transaction`], and [`cache`] is what stays in memory between transactions.

pub(super) mod cache;
pub(super) mod commit_counts;
pub(super) mod committer;
pub(super) mod connection;
mod day_counts;
pub(super) mod deferred_tags;
mod hand_over;
pub(super) mod names;
pub(super) mod prepared_statements;
mod sync;
pub(super) mod transaction;
pub(super) mod transition_log;
pub(super) mod writer;
