//! The state of a run for readers.

use onward_store::{TaskId, TaskRecord, Timestamp};
use serde::Serialize;

use crate::workflow::run::{RunPhase, StepState};

/// A run and its steps, as its history has them.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunView {
    /// The task of the run.
    pub id: TaskId,
    /// The name of the template.
    pub workflow: String,
    /// The label of the template's content.
    pub phase: RunPhase,
    /// The steps, each after those that it depends on.
    pub steps: Vec<StepView>,
}

/// A step of a run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepView {
    /// The name.
    pub name: String,
    /// The steps that it depends on.
    pub depends_on: Vec<String>,
    /// The state.
    pub state: StepState,
    /// The reason of a bad end, or of being skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The time at which the step was submitted, or began to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    /// The time of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The counts of a step with `each`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemCounts>,
}

/// The items of a step with `each`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ItemCounts {
    /// All items.
    pub all: u32,
    /// The items that are open.
    pub open: u32,
    /// The items that completed.
    pub completed: u32,
    /// The items that ended badly.
    pub bad: u32,
}

impl RunView {
    /// Returns true if the run has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.phase.is_ended()
    }
}
