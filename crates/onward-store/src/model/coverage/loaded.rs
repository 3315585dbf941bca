//! The loaded part of a store.
//!
//! For each order by which writes search (a sub-queue, the tasks that are not due, the ended tasks)
//! it records the position up to which all rows are loaded. A row that is absent before that
//! position does not exist in the store; a row behind it may.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::coverage::partial_sub_queues::PartialSubQueues;
use crate::model::documents::DocumentId;
use crate::model::limits::running::RunningCounts;
use crate::model::tasks::task::End;

/// The end of the loaded part of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LoadedUpTo<K> {
    /// No entry is loaded.
    #[default]
    Nothing,
    /// Every entry up to and including this one is loaded.
    Key(K),
    /// Every entry is loaded.
    Everything,
}

/// The numbers of running tasks by session, queue, kind and group.
pub(crate) type RunningCountRows = BTreeMap<(SessionId, Name, Name, Option<Name>), u64>;

/// The sessions that run tasks, with one task of each. It costs less to load than the counts, and
/// usually shows whether a session runs a task.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningSessions {
    /// One running task of each session.
    pub(crate) one_of: BTreeMap<SessionId, TaskId>,
    /// Tasks that were left out when this list was loaded.
    pub(crate) but: Vec<TaskId>,
}

/// The loaded part of a store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loaded {
    /// The highest task number in the store.
    pub(crate) last_task: i64,
    /// Tasks that were looked up, existing or not.
    pub(crate) tasks: BTreeSet<TaskId>,
    /// Keys that were looked up, taken or not.
    pub(crate) keys: BTreeSet<(Name, String)>,
    /// Tasks whose children are all loaded, live and ended.
    pub(crate) children: BTreeSet<TaskId>,
    /// Tasks whose live children are all loaded.
    pub(crate) live_children: BTreeSet<TaskId>,
    /// Orchestrations whose messages are all loaded.
    pub(crate) messages: BTreeSet<TaskId>,
    /// Sessions whose running tasks are all loaded.
    pub(crate) held: BTreeSet<SessionId>,
    /// Sessions whose running tasks with a request to cancel are all loaded.
    pub(crate) to_cancel: BTreeSet<SessionId>,
    /// The counts of running tasks that are not loaded.
    pub(crate) running: Option<RunningCounts>,
    /// The sessions that run any task, loaded or not.
    pub(crate) running_sessions: Option<RunningSessions>,
    /// Sub-queues that are not fully loaded. `None` if the list of sub-queues is not loaded.
    pub(crate) sub_queues: Option<PartialSubQueues>,
    /// The tasks that are not due, by due time.
    pub(crate) scheduled: LoadedUpTo<(Timestamp, TaskId)>,
    /// The tasks that expire, by the time of that.
    pub(crate) expiring: LoadedUpTo<(Timestamp, TaskId)>,
    /// The tasks that wait for external completion, by the end of their wait.
    pub(crate) overdue: LoadedUpTo<(Timestamp, TaskId)>,
    /// The ended tasks without their own retention, the oldest end first.
    pub(crate) ended: LoadedUpTo<(End, TaskId)>,
    /// The ended tasks with their own retention, by its end.
    pub(crate) retained: LoadedUpTo<(Timestamp, TaskId)>,
    /// The number of ended tasks without their own retention that are not loaded; `None` if they
    /// were not counted.
    pub(crate) ended_unloaded: Option<u64>,
    pub(crate) queue_tasks: BTreeMap<(Name, Vec<TaskState>), LoadedUpTo<TaskId>>,
    /// The numbers of live tasks of each queue that are not loaded.
    pub(crate) live_unloaded: BTreeMap<Name, u64>,
    /// Documents that were looked up, existing or not.
    pub(crate) documents: BTreeSet<DocumentId>,
    pub(crate) between: BTreeSet<(TaskId, TaskId)>,
}

impl Loaded {
    /// Returns whether a session runs a task that is not loaded; `None` if the list cannot show it.
    /// If the listed task is loaded, the session may run others.
    pub(super) fn holds_unloaded_by(&self, running_sessions: &RunningSessions, session: SessionId) -> Option<bool> {
        match running_sessions.one_of.get(&session) {
            Some(task) => (!self.tasks.contains(task)).then_some(true),
            None => running_sessions.but.iter().all(|task| self.tasks.contains(task)).then_some(false),
        }
    }
}
