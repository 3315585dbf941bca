//! Support for tests of programs that embed an engine: a clock that the test moves.
//!
//! Give the engine a [`ManualClock`], and everything that it waits for by time (delays, back-off,
//! timeouts, grace, leases) happens when the clock is moved, and not before. A month passes in no
//! time:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use onward::testing::ManualClock;
//! use onward::task::When;
//! use onward::{Engine, Failure, NewTask, StoreReads, TaskState};
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
//!
//! If much happens in between, [`run_for`] moves from one due moment to the next: a week with a
//! timer a day takes seven steps instead of one for each minute.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use onward::testing::{ManualClock, run_for};
//! use onward::{Engine, Failure, NewTask};
//!
//! const DAY: Duration = Duration::from_secs(24 * 3600);
//!
//! let clock = Arc::new(ManualClock::default());
//! let engine = Engine::builder().memory().clock(clock.clone()).open().await?;
//! engine.handle("report", |_| async { Ok::<(), Failure>(()) });
//! engine.schedule("daily").every(DAY).task(NewTask::new("report")?).await?;
//!
//! let summary = run_for(&engine, &clock, 7 * DAY).await?;
//! assert_eq!(summary.completed, 7);
//! # Ok(()) }
//! ```

use std::time::Duration;

use onward_store::{Clock as _, Outcome, ScheduleRecord, ScheduleSelection, StoreReads, Write};

pub use onward_store::ManualClock;

pub use crate::workflow::{CaseReport, WorkflowTest, WorkflowTestReport};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::observe::DrainSummary;

/// The shortest step of the clock, for something that is due and that this engine does not do.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

/// Runs an engine for a time of its clock. It runs what is due, moves the clock to the next due
/// moment, and repeats that until the time has passed and what is due then is done. The clock then
/// stands at the end of the time.
///
/// Due moments are those of delayed tasks, retries, timers of orchestrations, schedules, expiries,
/// pauses, rates and lapsed leases, including those for other engines on the store. A handler must
/// not wait for the clock itself: the clock stands while it runs.
///
/// # Errors
/// The errors of [`Engine::run_until_idle`].
pub async fn run_for(engine: &Engine, clock: &ManualClock, time: Duration) -> Result<DrainSummary> {
    let end = clock.now().plus(time);
    let mut summary = DrainSummary::default();
    loop {
        summary.add(engine.run_until_settled().await?);
        let left = end - clock.now();
        if left.is_zero() {
            return Ok(summary);
        }
        clock.advance(next_step(engine).await?.map_or(left, |step| step.min(left)));
    }
}

/// Moves the clock of an engine to the next due moment, and returns the step. If nothing is to come
/// it returns `None`, and the clock stands. Run the engine [until it is
/// idle](Engine::run_until_idle) before and afterwards; [`run_for`] does all of that.
///
/// # Errors
/// The store's error if it cannot be read or written.
pub async fn advance_to_next(engine: &Engine, clock: &ManualClock) -> Result<Option<Duration>> {
    let step = next_step(engine).await?;
    step.iter().for_each(|step| clock.advance(*step));
    Ok(step)
}

/// Returns the time until time alone changes something in an engine's store.
pub(crate) async fn next_step(engine: &Engine) -> Result<Option<Duration>> {
    // A sweep returns the next due moment of tasks, but schedules are not part of it.
    let Outcome::Swept(swept) = engine.apply(Write::Sweep).await? else { return Err(Error::unexpected("a sweep")) };
    let now = engine.store().clock().now();
    let fires = |schedule: &ScheduleRecord| schedule.next.filter(|next| !schedule.paused && next.due > now);
    let schedules = engine.store().schedules(ScheduleSelection::All).await?;
    let firing = schedules.iter().filter_map(fires).map(|next| next.due - now).min();
    let step = [swept.next_due, firing].into_iter().flatten().min();
    Ok(step.map(|step| if step.is_zero() { SHORTEST_STEP } else { step }))
}
