//! Reads of the store.
//!
//! A read that depends on rules runs the model over loaded rows ([`model_reads`]); the others are
//! queries.

pub(in crate::postgres) mod documents;
pub(in crate::postgres) mod events;
mod filter;
pub(in crate::postgres) mod instance;
pub(in crate::postgres) mod list;
pub(in crate::postgres) mod model_reads;
pub(in crate::postgres) mod output;
pub(in crate::postgres) mod queues;
pub(in crate::postgres) mod statistics;
pub(in crate::postgres) mod tags;

#[cfg(feature = "sqlite")]
pub(in crate::postgres) use statistics::{STATISTICS, ended, kind};
