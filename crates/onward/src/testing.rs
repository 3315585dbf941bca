//! For tests of programs that embed an engine: time that moves when told to.
//!
//! Give the engine a [`ManualClock`] and everything that it waits for by time (delays, back-off, timeouts, grace, leases) comes
//! when the clock is moved, and not before. A month passes in no time:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use onward::testing::ManualClock;
//! use onward::{Engine, Failure, NewTask, TaskState, When};
//!
//! const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
//!
//! let clock = Arc::new(ManualClock::default());
//! let engine = Engine::builder().memory().clock(clock.clone()).open().await?;
//! engine.handle("remind", |_| async { Ok::<_, Failure>("sent") });
//!
//! let mut reminder = NewTask::new("remind")?;
//! reminder.when = When::After(MONTH);
//! let id = engine.submit_task(reminder).await?.id();
//!
//! engine.run_until_idle().await?;
//! assert_eq!(engine.store().task(id).await?.unwrap().state, TaskState::Scheduled);
//!
//! clock.advance(MONTH);
//! engine.run_until_idle().await?;
//! assert_eq!(engine.store().task(id).await?.unwrap().state, TaskState::Completed);
//! # Ok(()) }
//! ```

pub use onward_store::ManualClock;
