//! What is asked of the store.

pub(super) mod events;
mod filter;
pub(super) mod instance;
pub(super) mod list;
pub(super) mod look;
pub(super) mod queues;
pub(super) mod statistics;
pub(super) mod tags;

#[cfg(feature = "sqlite")]
pub(super) use statistics::{STATISTICS, ended, kind};
