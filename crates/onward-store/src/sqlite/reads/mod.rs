//! The reads, one per file.

mod contention;
pub(super) mod documents;
pub(super) mod events;
pub(super) mod filter;
pub(super) mod history;
pub(super) mod instance;
pub(super) mod limits;
pub(super) mod list;
pub(super) mod output;
pub(super) mod peek;
pub(super) mod pending_batches;
pub(super) mod queues;
mod record;
pub(super) mod schedules;
pub(super) mod sessions;
pub(super) mod statistics;
mod sub_queue_names;
pub(super) mod tags;
pub(super) mod task;
pub(super) mod why;

#[cfg(feature = "postgres")]
pub(super) use history::history;
#[cfg(feature = "postgres")]
pub(super) use instance::instance;
#[cfg(feature = "postgres")]
pub(super) use record::{errors, progress};
#[cfg(feature = "postgres")]
pub(super) use statistics::statistics;
#[cfg(feature = "postgres")]
pub(super) use sub_queue_names::{NamesOfSubQueue, SubQueueNames};
