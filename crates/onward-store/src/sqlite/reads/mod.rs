//! The reads, one a file.

pub(super) mod collections;
pub(super) mod events;
pub(super) mod history;
pub(super) mod instance;
mod lane_names;
pub(super) mod limits;
pub(super) mod list;
pub(super) mod peek;
pub(super) mod queues;
pub(super) mod record;
pub(super) mod schedules;
pub(super) mod sessions;
pub(super) mod statistics;
pub(super) mod tags;
pub(super) mod task;
pub(super) mod why;

#[cfg(feature = "postgres")]
pub(super) use history::history;
#[cfg(feature = "postgres")]
pub(super) use instance::instance;
#[cfg(feature = "postgres")]
pub(super) use lane_names::{LaneNames, NamesOfLane};
#[cfg(feature = "postgres")]
pub(super) use record::{errors, progress};
#[cfg(feature = "postgres")]
pub(super) use statistics::statistics;
