//! Runs tasks: one dispatcher for each run of an engine.
//!
//! The [`Dispatcher`] is a loop around calls of the store. It takes every attempt that has ended,
//! adds a claim for as many tasks as slots will soon have room for, and applies both together.
//! During that commit, workers continue with buffered tasks, and further calls may begin.
//! [`RunState`] is the state that dispatcher and workers share; `hand_over` wakes the dispatcher. The decisions are pure functions in
//! `claim_size`, `deadlines`, `throughput` and `attempts`.

mod attempts;
mod buffer;
mod claim_size;
mod credit;
mod deadlines;
mod dispatcher;
mod drained;
mod fair_queueing;
mod hand_over;
mod last_claim;
mod outbox;
mod outcomes;
mod preemption;
mod pressure_sampling;
mod run_state;
mod shutdown;
mod skipped_kinds;
mod slot_time;
mod store_calls;
mod sync;
mod throughput;
mod write_batch;

pub(crate) use credit::Credit;
pub(crate) use dispatcher::{Dispatcher, Goal};
pub(crate) use outbox::{Outbox, OutboxReply};
pub(crate) use run_state::{AttemptEnd, RunState};
pub(crate) use skipped_kinds::SkippedKinds;
