//! Runs tasks: one dispatcher for each run of an engine.
//!
//! The [`Dispatcher`] is a loop around calls of the store. It takes every attempt that has ended,
//! adds a claim for as many tasks as slots will soon have room for, and applies both together.
//! During that commit, workers continue with buffered tasks, and further calls may begin.
//! [`RunState`] is the state that dispatcher and workers share; `hand_over` wakes the dispatcher.
//! The decisions are pure functions in `claims`, `deadlines` and `attempts`.

mod attempts;
mod buffer;
mod claims;
mod deadlines;
mod dispatcher;
mod drained;
mod hand_over;
mod outbox;
mod outcomes;
mod preemption;
mod pressure_sampling;
mod run_state;
mod shutdown;
mod store_calls;
mod sync;
mod write_batch;

pub(crate) use claims::{Credit, SkippedKinds};
pub(crate) use dispatcher::{Dispatcher, Goal};
pub(crate) use outbox::{Outbox, OutboxReply};
pub(crate) use run_state::{AttemptEnd, RunState};
