//! The bits of `task.links`: which other tables have rows of a task. Most tasks have no bit, and
//! need no lookup there.

/// Set if other tasks depend on the task, or did.
pub(in crate::sqlite) const DEPENDENTS: u8 = 1;

/// Set if the task has children.
pub(in crate::sqlite) const CHILDREN: u8 = 2;

/// Set if the task has a checkpoint.
pub(in crate::sqlite) const CHECKPOINT: u8 = 4;

/// Set if the task awaits its external completion.
pub(in crate::sqlite) const AWAITED: u8 = 8;

/// Set if the task moves to another queue after its attempt.
pub(in crate::sqlite) const MOVING: u8 = 16;

/// Set if the task is a batch with items.
pub(in crate::sqlite) const BATCH: u8 = 32;
