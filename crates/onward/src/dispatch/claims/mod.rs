//! Decides how many tasks a dispatcher claims, of which kinds, and in which order they start.

pub(super) mod fair_queueing;
pub(super) mod last_claim;
pub(super) mod size;
pub(super) mod slot_time;
pub(super) mod throughput;

mod credit;
mod skipped_kinds;

pub(crate) use credit::Credit;
pub(crate) use skipped_kinds::SkippedKinds;
