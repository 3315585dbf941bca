//! Attempts of tasks: how they are claimed and how they end.

mod candidates;
mod claim;
pub(in crate::sqlite) mod complete;
mod end;
mod external_completion;
mod io;
mod leases;
mod output;
