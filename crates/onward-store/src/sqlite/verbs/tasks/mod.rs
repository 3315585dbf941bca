//! Submission of tasks, and operations on single tasks.

mod bulk;
pub(super) mod control;
mod intervene;
mod move_task;
pub(in crate::sqlite) mod removal;
mod retention;
mod submit;
pub(in crate::sqlite) mod tags;
