//! Bits of `task.links`. They state which other tables have rows of a task, so that most tasks need
//! no lookup.

/// Set if other tasks depend on the task, or did.
pub(in crate::sqlite) const DEPENDENTS: u8 = 1;

/// It has children.
pub(in crate::sqlite) const CHILDREN: u8 = 2;

/// It waits for its children, or did, and has a checkpoint.
pub(in crate::sqlite) const CHECKPOINT: u8 = 4;

/// Set if the task waits for external completion.
pub(in crate::sqlite) const AWAITED: u8 = 8;

/// It goes to another queue when its attempt is over.
pub(in crate::sqlite) const MOVING: u8 = 16;

/// It is a batch, and has items.
pub(in crate::sqlite) const BATCH: u8 = 32;
