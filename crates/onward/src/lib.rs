//! Runs work that must not get lost.
//!
//! A **task** is submitted to a store, which keeps it on disk. A **handler** runs the task until it
//! has ended, even if the process crashes in between. The engine is embedded in your program: there
//! is no server to run.
//!
//! ```
//! use onward::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! /// Greets a person by name.
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
//!     // The handler. When it returns an error, the task is retried according to its retry policy.
//!     engine.register(|greeting: Greeting, context: Context| async move {
//!         context.progress(0.5);
//!         Ok(format!("Hello, {}!", greeting.name))
//!     });
//!
//!     // Once the submit is acknowledged, the task is durable.
//!     let handle = engine.submit(Greeting { name: "Ada".into() }).await?;
//!
//!     // Runs until every task has ended; a service calls `engine.run()` instead.
//!     engine.drain().await?;
//!     assert_eq!(handle.wait().await?, "Hello, Ada!");
//!     Ok(())
//! }
//! ```
//!
//! # The parts, in reading order
//!
//! * [`Engine`] opens a store, registers handlers, submits tasks and runs them. [`EngineBuilder`]
//!   has the settings.
//! * [`Task`] is a typed task, [`NewTask`] an untyped one with a payload of bytes. [`Handle`]
//!   awaits a typed result, [`Engine::wait`] any task.
//! * [`Context`] gives a handler its payload, its progress and the request to stop. [`Failure`] is
//!   what a handler returns if it did not succeed, and [`RetryPolicy`] decides what follows.
//! * [`HandlerOptions`] apply to kinds and patterns of kinds. [`handlers`] has the types of
//!   middleware and of decisions about failures. An [`engine::Module`] is a set of handlers that a
//!   library offers.
//! * [`task`] has the types of a task's fields. [`queues`], [`limits`], [`schedules`] and
//!   [`pressure`] decide when tasks run, and [`control`] has the results of bulk actions.
//! * [`observe`] lists tasks, follows their events, and shows what this engine and its store do
//!   now. [`telemetry`] lists metrics and traces.
//! * [`orchestration`] has durable functions, and [`workflow`] graphs of steps from templates.
//! * [`store`] has the stores, their clock, and the records that they return.
//! * [`testing`] moves the clock, and [`bounds`] has every limit.
//!
//! # Guarantees
//!
//! * An acknowledged task is kept, and its handler runs **at least once**. It runs again only after
//!   a failure that its policy retries, a crash or a lost lease, so its effect should be
//!   idempotent. A task never runs twice *at the same time* under valid leases, and it *completes*
//!   at most once: the store rejects a late result.
//! * An attempt ends in one of these ways, each of which frees its slot. *Stopped* means that the
//!   attempt's cancellation token fires, and that a handler which has not returned after the grace
//!   is aborted. *Released* means that the task returns to its queue and the attempt is not
//!   counted.
//!
//! | event | effect on the task |
//! |---|---|
//! | The handler returns `Ok`, even late. | Completed; a result above the limit fails the task. |
//! | It [finishes](Context::finish) the task itself. | Completed by that commit in any case. |
//! | It returns [`Failure::await_completion`]. | Blocked until completed externally or timed out. |
//! | It returns an error or panics. | Retried, dead or failed, as [`Failure`] and policy decide. |
//! | Its timeout or deadline passes. | Stopped; then as for an error. |
//! | It misses its [heartbeat timeout](Context::heartbeat). | Stopped; then as for an error. |
//! | The task is cancelled. | Stopped; cancelled. |
//! | The engine stops. | Stopped after the shutdown limit; released. |
//! | More urgent work needs its slot ([preemption](limits::Preemption)). | Stopped; released. |
//! | Its session lapses (a stall beyond the lease). | Stopped; runs again here or elsewhere. |
//!
//! * **Cleaning up.** The future passed to [`Context::clean_up_with`] runs if the attempt was asked
//!   to stop and did not complete. It runs after the handler has returned or was aborted, and the
//!   attempt ends after it.
//! * **Blocking handlers.** A handler is aborted by dropping its future at an await point. A
//!   handler that computes or blocks without awaiting cannot be aborted. It occupies a runtime
//!   thread, while other tasks run on the other threads. It keeps its slot, its lease and its
//!   attempt until it returns: another worker that ran the task in the meantime would run it twice
//!   at the same time. Its result counts, however late, and so does its error; its timeout takes
//!   effect only at its next await point. A stop does not wait for it: after the shutdown limit and
//!   the grace the task is released, and a later result is dropped. Use
//!   `tokio::task::spawn_blocking` for such work and check [`Context::is_cancelled`] in it. If
//!   every thread of the runtime runs a blocking handler, the engine itself cannot run and cannot
//!   renew its lease.
//!
//! # Limitations
//!
//! Onward is not a message broker, not a cluster scheduler and not a store for large data: payloads
//! and results are at most 1 MiB unless the store is opened with another limit. It needs a tokio
//! runtime with time enabled.

pub mod bounds;
pub mod control;
mod dispatch;
#[cfg(doctest)]
mod doctests;
pub mod engine;
mod error;
pub mod handlers;
mod json;
pub mod limits;
pub mod observe;
pub mod orchestration;
pub mod pressure;
pub mod queues;
pub mod schedules;
pub mod store;
mod store_backoff;
mod submit;
pub mod task;
pub mod testing;
mod timer;
pub mod workflow;

pub use engine::{Engine, EngineBuilder, WeakEngine};
pub use error::{Error, Result};
pub use handlers::{Context, Failure, HandlerOptions, Output};
pub use observe::telemetry;
pub use submit::{Handle, Submission, Task, TaskError};

pub use onward_store::rules::retry::{Backoff, RetryPolicy};
pub use onward_store::{
    Name, NewTask, Priority, Store, StoreReads, Submitted, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp,
};

/// The five names that most programs need.
pub mod prelude {
    // The methods of `Engine::store`; the trait's name stays out of the way.
    pub use crate::StoreReads as _;
    pub use crate::{Context, Engine, Failure, NewTask, Task};
}
