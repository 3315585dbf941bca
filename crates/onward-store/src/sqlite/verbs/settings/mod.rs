//! Settings: queues, limits, schedules.

mod limits;
mod queues;
mod schedules;
