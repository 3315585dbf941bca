//! Submission, and what operators do to tasks.

pub(in crate::sqlite) mod bulk;
pub(in crate::sqlite) mod control;
pub(in crate::sqlite) mod intervene;
pub(in crate::sqlite) mod move_task;
pub(in crate::sqlite) mod removal;
pub(in crate::sqlite) mod retention;
pub(in crate::sqlite) mod submit;
pub(in crate::sqlite) mod tags;
