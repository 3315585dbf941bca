//! The summary of a run.

use onward_store::TaskState;
use serde::Serialize;

/// The ends of the attempts of one run, counted when they were durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct DrainSummary {
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed permanently.
    pub failed: u64,
    /// Tasks that became dead letters.
    pub dead: u64,
    /// Tasks that were cancelled while this engine had them.
    pub cancelled: u64,
    /// Attempts that failed and were or will be followed by another.
    pub retried: u64,
    /// Attempts whose lease was lost, so that their result was dropped.
    pub lost: u64,
}

impl DrainSummary {
    /// Returns the number of tasks that ended in this run, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.completed + self.failed + self.dead + self.cancelled
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.dead += other.dead;
        self.cancelled += other.cancelled;
        self.retried += other.retried;
        self.lost += other.lost;
    }

    pub(crate) fn count(&mut self, state: TaskState) {
        match state {
            TaskState::Completed => self.completed += 1,
            TaskState::Failed => self.failed += 1,
            TaskState::Dead => self.dead += 1,
            TaskState::Cancelled => self.cancelled += 1,
            TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running => self.retried += 1,
            TaskState::Expired => {}
        }
    }
}
