//! Queues, limits and schedules.

use serde::{Deserialize, Serialize};

use super::DurationText;

/// A thing with the entity tag that it had when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tagged<T> {
    /// The thing.
    pub value: T,
    /// The entity tag, for a change that fails if the thing was changed since.
    pub etag: Option<String>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Queue {
    /// The name.
    pub name: String,
    /// The number of blocked tasks.
    pub blocked: u64,
    /// The number of tasks that are not due yet.
    pub scheduled: u64,
    /// The number of waiting tasks.
    pub waiting: u64,
    /// The number of running tasks.
    pub running: u64,
    /// The due time of the first waiting task.
    pub oldest_waiting: Option<String>,
    /// True if the queue is paused.
    pub paused: bool,
    /// The weight among queues.
    pub weight: u32,
    /// The largest number of tasks that run at once; `None` for no limit.
    pub concurrency: Option<u32>,
}

/// A rate of starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The number of starts in each period.
    pub tasks: u32,
    /// The period.
    pub per: DurationText,
    /// The largest number of starts at once after a pause. Default: the starts in a second, at
    /// least one.
    pub burst: Option<u32>,
}

/// A limit and its usage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limit {
    /// The scope: `all`, `queue:NAME`, `kind:NAME`, `group:NAME` or `groups:PREFIX`.
    pub scope: String,
    /// The largest number of tasks that run at once.
    pub concurrency: Option<u32>,
    /// The rate at which tasks start.
    pub rate: Option<Rate>,
    /// The weight of a group.
    pub weight: Option<u32>,
    /// The minimum of a group.
    pub minimum: Option<u32>,
    /// The number of running tasks.
    pub running: Option<u64>,
    /// The number of tasks that may start at once by the rate.
    pub tokens: Option<u32>,
}

/// A limit to set. Parts that are `None` are not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LimitChange {
    /// The largest number of tasks that run at once, 1 to 1000000.
    pub concurrency: Option<u32>,
    /// The rate at which tasks start.
    pub rate: Option<Rate>,
    /// Groups only: the share of the starts of a queue, 1 to 1000.
    pub weight: Option<u32>,
    /// Groups only: the number of running tasks below which the group goes first.
    pub minimum: Option<u32>,
}

/// A schedule. Times are in RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Schedule {
    /// The name.
    pub name: String,
    /// The interval, if the schedule has one.
    pub every: Option<DurationText>,
    /// The cron expression, if the schedule has one.
    pub cron: Option<String>,
    /// The time zone of the cron expression.
    pub zone: Option<String>,
    /// The kind of the tasks that it submits.
    pub kind: String,
    /// The queue of the tasks that it submits.
    pub queue: String,
    /// True if the schedule is paused.
    pub paused: bool,
    /// The next firing; `None` if the schedule is over.
    pub next_at: Option<String>,
    /// The id of the task of the last firing.
    pub last_task: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// The number of firings.
    pub fired: u64,
}
