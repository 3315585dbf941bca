//! Runs work that must not get lost.
//!
//! A **task** is submitted to a store, which keeps it on disk, and is run by a **handler** until it
//! has ended, whatever happens to the process meanwhile. The engine lives inside your program:
//! there is no server to run.
//!
//! ```
//! use onward::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! /// What is to be done.
//! #[derive(Serialize, Deserialize)]
//! struct Greeting {
//!     name: String,
//! }
//!
//! impl Task for Greeting {
//!     const KIND: &'static str = "greeting";
//!     type Output = String;
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // `Engine::open("onward.db")` keeps the work in a file.
//!     let engine = Engine::builder().memory().open().await?;
//!
//!     // How it is done. An error is tried again, as the retry policy says.
//!     engine.register(|greeting: Greeting, context: Context| async move {
//!         context.progress(0.5);
//!         Ok(format!("Hello, {}!", greeting.name))
//!     });
//!
//!     // When the submit is acknowledged, the task is kept.
//!     let handle = engine.submit(Greeting { name: "Ada".into() }).await?;
//!
//!     // Until everything is done; a service calls `engine.run()` instead.
//!     engine.drain().await?;
//!     assert_eq!(handle.wait().await?, "Hello, Ada!");
//!     Ok(())
//! }
//! ```
//!
//! # The parts, in reading order
//!
//! * [`Engine`] opens a store, takes handlers, submits tasks and runs them; [`EngineBuilder`] has the settings.
//! * [`TaskQuery`] lists tasks.
//! * [`Task`] is a task as a type, [`NewTask`] one as bytes. [`Handle`] awaits a typed result; [`Engine::wait`] any task.
//! * [`Context`] is what a handler is given: payload, progress, the wish that it stop. [`Failure`] is what it answers when it did
//!   not succeed, and [`RetryPolicy`] what follows from that.
//! * [`HandlerOptions`] is what holds for kinds and patterns of them, [`Next`] what a middleware goes on with, [`Module`] what a library offers.
//! * [`EventStream`] tells everything that happens; [`Snapshot`] what happens now, [`Overview`] with the store's part.
//! * [`testing`] moves time; [`telemetry`] lists metrics and traces; [`limits`] has every limit.
//!
//! # What holds
//!
//! * A task that was acknowledged is kept, and its handler runs **at least once**. It runs more than once only after a failure
//!   that its policy tries again, a crash, or a lost lease, so a handler's effect should bear being repeated. It never runs twice
//!   *at once* under leases that hold, and it is *completed* at most once: a late result is refused.
//! * An attempt ends in one of these ways, each of which frees its slot:
//!
//! | what happens | what becomes of the task |
//! |---|---|
//! | the handler answers `Ok`, however late | completed; a result beyond the payload limit is a permanent failure instead |
//! | it [finishes](Context::finish) the task in a transaction of its own | completed with the commit, whatever it answers then |
//! | it answers that it is [finished elsewhere](Failure::await_completion) | blocked until somebody finishes it, or its time is over |
//! | it answers an error, or panics | tried again, dead or failed, as [`Failure`] and policy say |
//! | its timeout or deadline passes | its token fires; after the grace it is aborted; then as an error |
//! | it gives no sign of life within its [heartbeat timeout](Context::heartbeat) | the same |
//! | it is cancelled | its token fires; after the grace it is aborted; cancelled |
//! | the engine stops | it may end by itself until the shutdown limit; then its token fires; given back, not counted |
//! | more urgent work needs its slot ([`Preemption`]) | its token fires; after the grace it is aborted; given back, not counted |
//! | the session lapses (the process was held up beyond its lease) | its token fires; another attempt follows elsewhere, or here |
//!
//! * **Cleaning up.** What a handler gave to [`Context::clean_up_with`] runs when its attempt was asked to stop and did not complete, after the
//!   handler has stopped or was aborted. The attempt ends after it.
//! * **Handlers that block.** A handler is aborted by dropping its future where it awaits. One that computes or blocks without
//!   awaiting cannot be aborted. It holds its thread, and the other tasks go on on the runtime's other ones; it keeps its slot, its lease
//!   and its attempt until it returns, because to give the task away while the old code still runs would run it twice at once. What it
//!   returns counts, however late, an error like any other; its timeout takes effect only where it awaits again. A stop alone does not
//!   wait for it: when the shutdown limit and the grace are over, the task is given back, and what the old code still returns is
//!   dropped. Use `tokio::task::spawn_blocking` for such work and look at [`Context::is_cancelled`] in it. As many blocking handlers
//!   as the runtime has threads hold up the engine itself, and with it the renewal of its lease.
//!
//! # What it is not
//!
//! Not a message broker, not a cluster scheduler, and not a place for large data: payloads and results are at most 1 MiB unless the
//! store is opened otherwise. It needs a tokio runtime with time enabled.

mod after_commit;
mod aggregate;
mod attempt;
mod batch;
mod builder;
mod bulk;
mod checkpoint;
mod children;
mod cleanup;
mod completion;
mod context;
mod dispatch;
#[cfg(doctest)]
mod documentation;
mod engine;
mod error;
mod events;
mod failure;
mod failure_conversions;
mod failure_details;
mod failure_policy;
mod finish;
#[cfg(feature = "postgres")]
mod finish_on_server;
mod flow;
mod forecast;
mod handle;
mod handler;
mod heartbeat;
mod injection;
mod inspector;
mod json;
pub mod limits;
mod mail;
mod meter;
mod middleware;
mod module;
pub mod orchestration;
mod output;
mod overview;
mod pattern;
mod place;
mod preemption;
mod pressure;
mod progress;
mod queues;
mod recent_ends;
mod registrations;
mod result_writer;
mod retention;
mod run;
mod schedule;
mod snapshot;
mod state;
mod submission;
mod summary;
mod task_query;
pub mod telemetry;
pub mod testing;
mod timer;
mod typed;
mod wait;
mod weak;
pub mod workflow;

pub use after_commit::Transition;
pub use attempt::Interruption;
pub use builder::EngineBuilder;
pub use bulk::BulkSummary;
pub use completion::Moved;
pub use context::Context;
pub use engine::{Cancellation, Engine};
pub use error::{Error, Result};
pub use events::EventStream;
pub use failure::Failure;
pub use failure_conversions::FailureError;
pub use failure_policy::{FailedAttempt, Verdict};
pub use finish::{Finished, Finishing};
#[cfg(feature = "postgres")]
pub use finish_on_server::{FinishingByStatement, FinishingOnServer};
pub use forecast::Forecast;
pub use handle::{Handle, TaskError};
pub use handler::HandlerOptions;
pub use injection::FromState;
pub use middleware::Next;
pub use module::{Module, ModuleParts};
pub use output::Output;
pub use overview::Overview;
pub use preemption::Preemption;
#[cfg(target_os = "linux")]
pub use pressure::StallPressure;
pub use pressure::{Pressure, PressureFn, PressureReading, PressureSource, Throttle};
pub use result_writer::ResultWriter;
pub use schedule::{ScheduleBuilder, ScheduleProvider};
pub use snapshot::{RunningTask, Snapshot};
pub use submission::Submission;
pub use summary::DrainSummary;
pub use task_query::{TaskQuery, TaskStream};
pub use typed::Task;
pub use weak::WeakEngine;

pub use onward_store::rules::retry::{Backoff, FailureClass, RetryPolicy};
pub use onward_store::{
    Aggregate, AttemptError, ByteProgress, CatchUp, Change, Clock, CollectionRecord, CollectionSelection,
    CompletionToken, ConcurrencyLimit, Dependencies, Dependency, Durability, EndedCounts, Event, EventCursor, Firing,
    GroupShare, Io, IoKind, IoStatistics, KindStatistics, LastFiring, Limit, LimitRecord, LimitScope, MemoryStore,
    Name, NewSchedule, NewTask, NextFiring, OnDependencyFailure, OnDuplicate, Overlap, Page, PauseRecord, PayloadCodec,
    Priority, Progress, QueueDay, QueueMode, QueueRecord, QueueSettings, Rate, RateLimit, Recurrence, Refusal,
    ScheduleError, ScheduleRecord, ScheduleSet, Scope, Served, ServedCode, SessionId, SessionRecord, SetLimit,
    SetQueue, SqliteStore, StateCounts, Store, StoreInfo, Submitted, SystemClock, TagKeyPage, TagPage, TagValue,
    TagValuePage, Tags, TaskFilter, TaskId, TaskIdPage, TaskPage, TaskRecord, TaskResult, TaskState, Timestamp, Ttl,
    TtlFrom, UniqueKey, WaitReason, When,
};

#[cfg(feature = "postgres")]
pub use onward_store::{PostgresOptions, PostgresStore};

/// The five names that most programs need.
pub mod prelude {
    pub use crate::{Context, Engine, Failure, NewTask, Task};
}
