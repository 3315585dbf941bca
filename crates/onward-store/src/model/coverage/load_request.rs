//! Load requests: the rows that a decision needs and a partly loaded state lacks.

use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::model::tasks::sub_queue::SubQueue;

/// A part of the store that is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoadRequest {
    /// A task and its dependents.
    Task(TaskId),
    /// The owner of a key of a kind.
    Key(Name, String),
    /// The keys whose retention is over.
    ExpiredKeys,
    /// Every child of a task.
    Children(TaskId),
    /// Every live child of a task.
    LiveChildren(TaskId),
    /// More of the messages that wait for an orchestration whose task is loaded.
    Messages(TaskId),
    /// The running tasks of a session.
    HeldBy(SessionId),
    /// The running tasks of a session for which a cancellation was requested.
    CancelRequested(SessionId),
    /// The numbers of running tasks by session, queue, kind and group.
    RunningCounts,
    /// The sessions that run any task.
    RunningSessions,
    /// The list of sub-queues and the first tasks of each.
    SubQueues,
    /// More of a sub-queue.
    SubQueue(SubQueue),
    /// More of the tasks that are not due.
    Scheduled,
    /// More of the tasks that expire.
    Expiring,
    /// More of the tasks that wait for external completion within a time.
    Overdue,
    /// More of the ended tasks without their own retention, the oldest end first.
    Ended,
    /// The number of ended tasks without their own retention.
    EndedCount,
    /// More of the ended tasks with their own retention, by its end.
    Retained,
    /// More of the tasks of a queue in some states, by number.
    QueueTasks(Name, Vec<TaskState>),
    /// The number of live tasks of a queue.
    LiveCount(Name),
    /// A document, and how many its collection has.
    Document(Name, String),
    /// Every task from a number up to, but not including, another.
    IdRange(TaskId, TaskId),
}
