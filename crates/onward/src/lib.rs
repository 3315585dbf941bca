//! Runs work that must not get lost.
//!
//! A task is submitted, kept in a store, and run by a handler until it has ended: whatever happens to the process meanwhile.

mod attempt;
mod builder;
mod context;
mod dispatch;
mod engine;
mod error;
mod events;
mod failure;
mod handle;
mod handler;
pub mod limits;
mod output;
mod place;
mod progress;
mod run;
mod snapshot;
mod state;
mod submission;
mod summary;
pub mod telemetry;
pub mod testing;
mod timer;
mod typed;
mod wait;

pub use builder::EngineBuilder;
pub use context::Context;
pub use engine::{Cancellation, Engine};
pub use error::{Error, Result};
pub use events::EventStream;
pub use failure::Failure;
pub use handle::{Handle, TaskError};
pub use handler::HandlerOptions;
pub use output::Output;
pub use snapshot::{RunningTask, Snapshot};
pub use submission::Submission;
pub use summary::DrainSummary;
pub use typed::Task;

pub use onward_store::rules::retry::{Backoff, FailureClass, RetryPolicy};
pub use onward_store::{
    AttemptError, Change, Clock, Durability, Event, EventCursor, Name, NewTask, OnDuplicate, Priority, Progress,
    Refusal, Scope, Store, Submitted, TaskId, TaskRecord, TaskState, Timestamp, Ttl, TtlFrom, UniqueKey, When,
};

/// The five names that most programs need.
pub mod prelude {
    pub use crate::{Context, Engine, Failure, NewTask, Task};
}
