//! What is to be loaded.

use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::model::tasks::sub_queue::SubQueue;

/// Something that is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoadRequest {
    /// A task, and who waits for it.
    Task(TaskId),
    /// Who has a key of a kind.
    Key(Name, String),
    /// The keys whose time is over.
    ExpiredKeys,
    /// Every child of a task.
    Children(TaskId),
    /// More of the messages that wait for an orchestration that is here.
    Messages(TaskId),
    /// What a session runs.
    HeldBy(SessionId),
    /// What a session runs and somebody wants stopped.
    CancelRequested(SessionId),
    /// How many tasks run, by session, queue, kind and group.
    RunningCounts,
    /// Which sessions run any.
    RunningSessions,
    /// Which sub-queues there are, and the first tasks of each.
    SubQueues,
    /// More of a sub-queue.
    SubQueue(SubQueue),
    /// More of those that are not due.
    Scheduled,
    /// More of those that expire.
    Expiring,
    /// More of those that are to be finished from elsewhere.
    Overdue,
    /// More of those that have ended and did not say how long they are kept, the oldest end first.
    Ended,
    /// How many of these there are.
    EndedCount,
    /// More of those that have ended and said how long they are kept, by until when that is.
    Retained,
    /// More of the tasks of a queue in some states, by number.
    QueueTasks(Name, Vec<TaskState>),
    /// How many live tasks a queue has.
    LiveCount(Name),
    /// A document, and how many its collection has.
    Document(Name, String),
    /// Every task from a number up to, but not including, another.
    IdRange(TaskId, TaskId),
}
