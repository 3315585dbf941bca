//! The way of a write to the file: [`writer`] gathers callers, [`committer`] commits them as one
//! [`transaction`], and [`cache`] is what it keeps in memory between transactions.

pub(in crate::sqlite) mod cache;
pub(in crate::sqlite) mod commit_counts;
pub(in crate::sqlite) mod committer;
pub(in crate::sqlite) mod connection;
pub(in crate::sqlite) mod day_counts;
pub(in crate::sqlite) mod deferred_tags;
pub(in crate::sqlite) mod names;
pub(in crate::sqlite) mod prepared_statements;
pub(in crate::sqlite) mod transaction;
pub(in crate::sqlite) mod transition_log;
pub(in crate::sqlite) mod writer;
