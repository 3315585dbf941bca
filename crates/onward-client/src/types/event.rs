//! Events of tasks.

use serde::Deserialize;

use super::is_ended;

/// One transition of one task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Event {
    /// The position behind the event, from which a watch continues.
    pub cursor: String,
    /// The transition, such as `submitted`, `started` or `completed`; `gap` if the server removed
    /// events before they were read. The other fields of a gap are empty.
    pub change: String,
    /// The id of the task.
    pub task: String,
    /// The kind of the task.
    pub kind: String,
    /// The queue of the task.
    pub queue: String,
    /// The time of the transition.
    pub at: String,
    /// The number of the attempt that started or failed.
    pub attempt: Option<u32>,
}

impl Event {
    /// Returns whether the task has ended by this transition.
    #[must_use]
    pub fn is_end(&self) -> bool {
        is_ended(&self.change)
    }
}
