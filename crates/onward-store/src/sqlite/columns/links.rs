//! Bits of `task.links`, which tell what other tables have of a task, so that most tasks look into
//! none.

/// Among the links of a task: others depend on it, or did.
pub(in crate::sqlite) const DEPENDENTS: u8 = 1;

/// It has children.
pub(in crate::sqlite) const CHILDREN: u8 = 2;

/// It waits for its children, or did, and has a checkpoint.
pub(in crate::sqlite) const CHECKPOINT: u8 = 4;

/// It waits to be finished from elsewhere.
pub(in crate::sqlite) const AWAITED: u8 = 8;

/// It goes to another queue when its attempt is over.
pub(in crate::sqlite) const MOVING: u8 = 16;

/// It is a batch, and has items.
pub(in crate::sqlite) const BATCH: u8 = 32;
