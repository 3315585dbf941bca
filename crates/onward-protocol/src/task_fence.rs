//! The name of an attempt.

use serde::{Deserialize, Serialize};

use crate::decimal::{Fence, Id};

/// The name of one attempt: a task, and the number of its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskFence {
    /// The task.
    pub task: Id,
    /// The fence.
    pub fence: Fence,
}
