//! The client of Onward's HTTP API, which `onward serve` offers.
//!
//! A [`Client`] submits tasks, starts runs of workflows, waits for their ends, sends signals, and
//! watches events. It is cheap to clone, and its clones share their connections.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use onward_client::{Backoff, Client, NewTask, RetryPolicy};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), onward_client::Error> {
//! // The address is ONWARD_URL or http://127.0.0.1:7070, and the key is ONWARD_KEY.
//! let client = Client::from_environment()?;
//!
//! // Durable when the call returns. A repeat after a lost connection has no second effect.
//! let backoff = Backoff::Constant { delay: Duration::from_secs(5).into() };
//! let resize = NewTask::new("resize").json(&json!({"width": 640}))?.queue("images");
//! let submitted = client.submit(&resize.retry(RetryPolicy { attempts: 3, backoff })).await?;
//!
//! // Waits without polling. The end may be a failure, which `json` turns into an error.
//! let outcome = client.wait(&submitted.id, Some(Duration::from_secs(60))).await?;
//! let size: u64 = outcome.json()?;
//! println!("{size} bytes");
//!
//! // A refusal has a stable code for programs, and a remedy for people.
//! match client.cancel(&submitted.id).await {
//!     Err(error) if error.is_conflict() => println!("{:?}: {error}", error.code()),
//!     other => println!("{other:?}"),
//! }
//!
//! // Pages are read as they are needed.
//! let mut dead = client.tasks("state=dead");
//! while let Some(task) = dead.next().await? {
//!     println!("{} {}", task.id, task.error.unwrap_or_default());
//! }
//!
//! // Continues behind the last event after an interruption, at any server of the store.
//! let mut watch = client.watch("kinds=resize&ends=true", None);
//! let event = watch.next().await?;
//! println!("task {} {} (continue at {})", event.task, event.change, event.cursor);
//! # Ok(())
//! # }
//! ```
//!
//! # Repeats
//!
//! A request that gets no response, or one of the statuses 429, 502, 503 and 504, is sent again
//! until [`ClientBuilder::retry_for`] is over, with growing random pauses or that of
//! `Retry-After`. Submits and starts carry an idempotency key, which the server stores in the
//! commit of the task. A request that might count twice is not sent again after its connection was
//! lost: the error then [is uncertain](Error::is_uncertain).
//!
//! # Bounds
//!
//! Every wait, body and number of connections has a bound in [`bounds`].

pub mod bounds;
mod client;
mod error;
mod http;
mod types;

pub use client::{Client, ClientBuilder, Pages, Watch};
pub use error::{Error, Problem, Result};
pub use http::{EventMessage, MessageStream, Request, Response};
pub use types::{
    Attempt, Backoff, Cancellation, Content, CriticalPath, CriticalStep, DurationText, Event, Limit, LimitChange,
    NewTask, OnDuplicate, Orchestration, Progress, Queue, Rate, Reason, RetryPolicy, Run, Schedule, SlackStep,
    StartRun, Step, Submitted, Tagged, Task, TaskOutcome, Template, Why, is_ended,
};
