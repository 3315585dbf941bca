//! Values of columns that need an encoding: JSON, bits, durations.

pub(super) mod awaited_events;
pub(super) mod documents;
pub(super) mod durations;
pub(super) mod links;
pub(super) mod meta;
pub(super) mod schedules;
pub(super) mod served;
pub(super) mod task_options;
