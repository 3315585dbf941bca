//! Recurring tasks.
//!
//! [`Engine::schedule`](crate::Engine::schedule) sets a schedule. A [`ScheduleProvider`] supplies
//! schedules from elsewhere, such as a file or a database.

// `calendar` and `jitter` compute the moments of a recurrence, and `plan` and `reconcile` what
// happens at a moment. All four are pure functions. `scheduler` carries their decisions out while
// the engine runs.
mod builder;
mod calendar;
mod control;
mod jitter;
mod plan;
mod provider;
mod reconcile;
mod scheduler;

pub use builder::ScheduleBuilder;
pub use onward_store::{
    CatchUp, Firing, LastFiring, NewSchedule, NextFiring, Overlap, Recurrence, ScheduleError, ScheduleRecord,
    ScheduleSet,
};
pub(crate) use provider::Providers;
pub use provider::ScheduleProvider;
pub(crate) use scheduler::Scheduler;
