//! The conformance suite: one folder for each area, with one file for each family of cases. The
//! files in `lists` name the cases, and [`conformance!`](crate::conformance!) makes tests of them.

mod lists;
mod orchestrations;
mod reading;
pub mod running;
mod scheduling;
pub(crate) mod suite;
mod tasks;

pub use orchestrations::{
    child_reports, orchestration_ends, orchestration_pauses, orchestration_tags, orchestration_turns, turns_with_ends,
};
pub use reading::{events, history, notifications, reads, reopen};
pub use scheduling::{affinity, claim, limits, minimum_priority, queues, schedules, sessions, shares, sweep};
pub use tasks::{
    atomic_writes, attempts, batches, bounds, bulk, children, control, dependencies, documents, external_completion,
    io, keys, manual_operations, moving, output, removal, retention, submit, tags,
};
