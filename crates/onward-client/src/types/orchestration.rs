//! Orchestrations.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Content, Task};

/// The state of an orchestration: the events that it awaits, and the values that its code
/// published.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Orchestration {
    /// The task.
    pub task: Task,
    /// True if it is paused.
    pub paused: bool,
    /// The names of the events that it awaits.
    pub awaits: Vec<String>,
    /// The number of events of its history.
    pub history_events: u64,
    /// The status that it published, for keys that may read payloads.
    pub status: Option<Content>,
    /// The values that it published, for keys that may read payloads.
    pub values: BTreeMap<String, Content>,
}
