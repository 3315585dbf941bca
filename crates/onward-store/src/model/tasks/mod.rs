//! Tasks: the table of all of them, and operations on one or many.

pub(super) mod bulk;
pub(super) mod control;
pub(super) mod end;
pub(super) mod intervene;
pub(super) mod keys;
pub(super) mod move_task;
pub(super) mod removal;
pub(super) mod sub_queue;
pub(super) mod submit;
pub(super) mod table;
pub(super) mod task;
