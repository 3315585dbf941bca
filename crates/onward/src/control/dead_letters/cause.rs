//! Causes of dead letters.

use onward_store::{Name, TaskId, TaskRecord, Timestamp};
use serde::Serialize;

use super::fingerprint::{fingerprint, general_text};

/// The dead letters of one cause: tasks of one kind whose last errors differ at most in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadCause {
    /// The name of the cause: 16 hexadecimal digits, the same in every process.
    pub fingerprint: String,
    /// The kind of the tasks.
    pub kind: Name,
    /// The error, with `#` for what differs from task to task.
    pub error: String,
    /// The number of tasks.
    pub tasks: u64,
    /// The queues in which they died, by name.
    pub queues: Vec<Name>,
    /// The time of the first death among those that were read.
    pub first_at: Timestamp,
    /// The time of the newest death.
    pub newest_at: Timestamp,
    /// The newest task.
    pub sample: TaskId,
    /// The last error of the newest task.
    pub sample_error: String,
}

/// The causes of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct DeadCauses {
    /// The causes, the one with most tasks first.
    pub causes: Vec<DeadCause>,
    /// The number of dead letters that were read.
    pub tasks: u64,
    /// True if the store has more than [`DEAD_LETTERS`](crate::bounds::DEAD_LETTERS): the oldest
    /// ones are in no cause.
    pub has_more: bool,
}

impl DeadCause {
    /// Returns the cause of one task.
    pub(super) fn of(task: &TaskRecord) -> Self {
        let error = task.errors.last();
        let text = error.map_or("", |error| error.message.as_str());
        let at = task.finished_at.or(error.map(|error| error.at)).unwrap_or(task.submitted_at);
        let general = general_text(text);
        Self {
            fingerprint: fingerprint(&task.kind, &general),
            kind: task.kind.clone(),
            error: general,
            tasks: 1,
            queues: vec![task.queue.clone()],
            first_at: at,
            newest_at: at,
            sample: task.id,
            sample_error: text.to_owned(),
        }
    }

    /// Adds the cause of another task.
    pub(super) fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.first_at = self.first_at.min(other.first_at);
        for queue in other.queues {
            if let Err(place) = self.queues.binary_search(&queue) {
                self.queues.insert(place, queue);
            }
        }
        if other.newest_at > self.newest_at {
            (self.newest_at, self.sample, self.sample_error) = (other.newest_at, other.sample, other.sample_error);
        }
    }
}
