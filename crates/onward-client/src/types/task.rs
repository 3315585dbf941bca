//! Tasks, as they are read.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Content, DurationText, RetryPolicy};

/// Returns whether a state, or the change of an event, is the end of a task.
#[must_use]
pub fn is_ended(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "dead" | "cancelled" | "expired")
}

/// A task. Times are in RFC 3339.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Task {
    /// The number, as a decimal string.
    pub id: String,
    /// The name that selects a handler.
    pub kind: String,
    /// The queue.
    pub queue: String,
    /// The group.
    pub group: Option<String>,
    /// The state: `blocked`, `scheduled`, `waiting`, `running`, or one that [is ended](is_ended).
    pub state: String,
    /// The urgency, 0 to 255.
    pub priority: u8,
    /// The unique key.
    pub key: Option<String>,
    /// The time of the submission.
    pub submitted_at: String,
    /// The time at which the task is or was due.
    pub due_at: String,
    /// The time at which the task expires if no attempt starts before it.
    pub expires_at: Option<String>,
    /// The number of attempts used up, including a running one.
    pub attempts: u32,
    /// The time of the latest claim.
    pub started_at: Option<String>,
    /// The time of the end.
    pub finished_at: Option<String>,
    /// True if the worker was asked to stop.
    pub cancel_requested: bool,
    /// The last error.
    pub error: Option<String>,
    /// The last progress report.
    pub progress: Option<Progress>,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// The tasks for which the task waits.
    pub blocked_by: Vec<String>,
    /// The parent.
    pub parent: Option<String>,
    /// True if the task is an orchestration or a run.
    pub orchestration: bool,
    /// The longest time of one attempt.
    pub timeout: Option<DurationText>,
    /// The time after which no attempt runs.
    pub deadline: Option<String>,
    /// The task's own retry policy.
    pub retry: Option<RetryPolicy>,
    /// The payload, if it was asked for.
    pub payload: Option<Content>,
    /// The result, if it was asked for and the task has one.
    pub result: Option<Content>,
}

impl Task {
    /// Returns whether the task has ended, in any way.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        is_ended(&self.state)
    }
}

/// A report of progress.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Progress {
    /// The fraction done, 0.0 to 1.0.
    pub fraction: Option<f32>,
    /// The current step.
    pub message: Option<String>,
    /// The time of the report.
    pub at: String,
}

/// An error of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Attempt {
    /// The number of the attempt, counted from 1; 0 if none was running.
    pub attempt: u32,
    /// The time of the error.
    pub at: String,
    /// The message.
    pub message: String,
}

/// The reasons for which a task does not run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Why {
    /// The state of the task.
    pub state: String,
    /// Every reason that holds now.
    pub reasons: Vec<Reason>,
}

/// A reason for which a task does not run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reason {
    /// The name of the reason, for programs.
    pub reason: String,
    /// The reason, for people.
    pub text: String,
}
