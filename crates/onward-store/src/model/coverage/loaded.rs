//! Which part of a store is loaded.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::coverage::partial_sub_queues::PartialSubQueues;
use crate::model::documents::DocumentId;
use crate::model::limits::running::RunningCounts;
use crate::model::tasks::task::End;

/// Up to where an order is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LoadedUpTo<K> {
    /// Nothing of it is.
    #[default]
    Nothing,
    /// All up to here.
    Key(K),
    /// All of it.
    Everything,
}

/// How many tasks run, by session, queue, kind and group.
pub(crate) type RunningCountRows = BTreeMap<(SessionId, Name, Name, Option<Name>), u64>;

/// Which sessions run tasks: one of each that runs any. That is less work than to count them, and
/// mostly enough.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningSessions {
    /// A task of each.
    pub(crate) one_of: BTreeMap<SessionId, TaskId>,
    /// But for these tasks, which were not looked at.
    pub(crate) but: Vec<TaskId>,
}

/// What is loaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loaded {
    /// The highest number of a task in the store.
    pub(crate) last_task: i64,
    /// Tasks that were looked for, there or not.
    pub(crate) tasks: BTreeSet<TaskId>,
    /// Keys that were looked for, taken or not.
    pub(crate) keys: BTreeSet<(Name, String)>,
    pub(crate) children: BTreeSet<TaskId>,
    /// Orchestrations all of whose messages are here.
    pub(crate) messages: BTreeSet<TaskId>,
    pub(crate) held: BTreeSet<SessionId>,
    pub(crate) to_cancel: BTreeSet<SessionId>,
    /// How many run that are not loaded.
    pub(crate) running: Option<RunningCounts>,
    /// Which sessions run any, loaded or not.
    pub(crate) running_sessions: Option<RunningSessions>,
    /// Sub-queues of which there is more. `None` if it is not known which there are.
    pub(crate) sub_queues: Option<PartialSubQueues>,
    pub(crate) scheduled: LoadedUpTo<(Timestamp, TaskId)>,
    pub(crate) expiring: LoadedUpTo<(Timestamp, TaskId)>,
    pub(crate) overdue: LoadedUpTo<(Timestamp, TaskId)>,
    pub(crate) ended: LoadedUpTo<(End, TaskId)>,
    pub(crate) retained: LoadedUpTo<(Timestamp, TaskId)>,
    /// How many ended tasks that did not say how long they are kept are not loaded; `None` if that
    /// is not known.
    pub(crate) ended_unloaded: Option<u64>,
    pub(crate) queue_tasks: BTreeMap<(Name, Vec<TaskState>), LoadedUpTo<TaskId>>,
    /// How many live tasks of a queue are not loaded.
    pub(crate) live_unloaded: BTreeMap<Name, u64>,
    /// Documents that were looked for, there or not.
    pub(crate) documents: BTreeSet<DocumentId>,
    pub(crate) between: BTreeSet<(TaskId, TaskId)>,
}

impl Loaded {
    /// Whether a session runs any task that is not loaded, if that can be told. Where the one that
    /// is known of is loaded, there may be others beside it.
    pub(super) fn holds_unloaded_by(&self, running_sessions: &RunningSessions, session: SessionId) -> Option<bool> {
        match running_sessions.one_of.get(&session) {
            Some(task) => (!self.tasks.contains(task)).then_some(true),
            None => running_sessions.but.iter().all(|task| self.tasks.contains(task)).then_some(false),
        }
    }
}
