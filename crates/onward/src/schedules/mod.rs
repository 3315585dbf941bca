//! Recurring tasks.
//!
//! The meaning of a recurrence ([`calendar`], [`jitter`]) and the action at a moment ([`plan`],
//! [`reconcile`]) are pure functions. The [`scheduler`] carries the actions out while an engine
//! runs. [`control`] has the operations of people and programs, and [`provider`] the external
//! sources of schedules.

mod builder;
mod calendar;
mod control;
mod jitter;
mod plan;
mod provider;
mod reconcile;
mod scheduler;

pub use builder::ScheduleBuilder;
pub(crate) use provider::Providers;
pub use provider::ScheduleProvider;
pub(crate) use scheduler::Scheduler;
