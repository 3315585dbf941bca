//! Tasks that recur.
//!
//! What a recurrence means ([`calendar`], [`jitter`]) and what is to be done at a moment ([`plan`],
//! [`reconcile`]) are plain functions of values. The [`scheduler`] carries it out while an engine
//! runs; [`control`] is what people do, [`provider`] where schedules may come from.

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
