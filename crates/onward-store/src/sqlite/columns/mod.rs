//! Values of columns that are more than a number or a name: JSON, sums of bits, durations.

pub(in crate::sqlite) mod awaited_events;
pub(in crate::sqlite) mod durations;
pub(in crate::sqlite) mod links;
pub(in crate::sqlite) mod meta;
pub(in crate::sqlite) mod schedules;
pub(in crate::sqlite) mod served;
pub(in crate::sqlite) mod task_options;
