//! Attempts of tasks: how they are claimed and how they end.
//!
//! A [`claim`] sweeps, asks [`candidates`] for the next task until it has enough, and writes one
//! row of [`leases`] for each run of neighbouring tasks. An end looks its task up with
//! [`running_under`](crate::sqlite::commit::transaction::Transaction::running_under), which is the
//! fence: it refuses a lease that is not the current one. [`complete`] collects completions, the
//! most frequent end, for one statement per transaction, and [`end`] has all other ends.

mod candidates;
mod claim;
pub(in crate::sqlite) mod complete;
mod end;
mod external_completion;
mod io;
mod leases;
mod output;
