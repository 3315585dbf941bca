//! Queues.

use onward_store::{ConcurrencyLimit, EndedCounts, Name, QueueRecord, SetQueue, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::duration::DurationText;

/// A queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueBody {
    /// The name.
    name: String,
    /// The number of blocked tasks.
    blocked: u64,
    /// The number of tasks that are not due yet.
    scheduled: u64,
    /// The number of waiting tasks.
    waiting: u64,
    /// The number of running tasks.
    running: u64,
    /// The number of ended tasks in history.
    ended: EndedBody,
    /// The due time of the first waiting task.
    #[schema(value_type = Option<String>, format = DateTime)]
    oldest_waiting: Option<Timestamp>,
    /// True if the queue is paused.
    paused: bool,
    /// The weight among queues.
    weight: u32,
    /// The largest number of tasks that run at once; null for no limit.
    concurrency: Option<u32>,
}

/// The number of ended tasks in each state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedBody {
    /// The number of completed tasks.
    completed: u64,
    /// The number of failed tasks.
    failed: u64,
    /// The number of dead letters.
    dead: u64,
    /// The number of cancelled tasks.
    cancelled: u64,
    /// The number of expired tasks.
    expired: u64,
}

impl From<EndedCounts> for EndedBody {
    fn from(counts: EndedCounts) -> Self {
        let EndedCounts { completed, failed, dead, cancelled, expired } = counts;
        Self { completed, failed, dead, cancelled, expired }
    }
}

impl From<QueueRecord> for QueueBody {
    fn from(queue: QueueRecord) -> Self {
        Self {
            name: queue.name.to_string(),
            blocked: queue.blocked,
            scheduled: queue.scheduled,
            waiting: queue.waiting,
            running: queue.running,
            ended: queue.ended.into(),
            oldest_waiting: queue.oldest_waiting,
            paused: queue.paused,
            weight: queue.weight,
            concurrency: queue.concurrency,
        }
    }
}

/// A change of a queue. Fields that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueChange {
    /// The weight among queues, 1 to 1000.
    weight: Option<u32>,
    /// The largest number of tasks that run at once; null for no limit.
    #[serde(default, deserialize_with = "super::limit::present")]
    #[schema(value_type = Option<u32>)]
    concurrency: Option<Option<u32>>,
    /// The time for which a task waits for the worker that its affinity key prefers.
    affinity_wait: Option<DurationText>,
}

impl QueueChange {
    pub(crate) fn of(self, queue: Name) -> SetQueue {
        SetQueue {
            queue,
            weight: self.weight,
            concurrency: self.concurrency.map(|limit| match limit {
                Some(tasks) => ConcurrencyLimit::AtMost(tasks),
                None => ConcurrencyLimit::Unlimited,
            }),
            affinity_wait: self.affinity_wait.map(|wait| wait.0),
        }
    }
}
