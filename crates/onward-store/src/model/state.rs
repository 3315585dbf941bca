//! The whole state of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::event::Change;
use crate::api::limit::{Limit, LimitScope};
use crate::api::name::Name;
use crate::api::notification::TaskNotification;
use crate::api::queue::{QueueMode, QueueSettings};
use crate::api::store::{Hint, KindStatistics};
use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::model::batches::index::Batches;
use crate::model::claims::affinity::PreferredSession;
use crate::model::claims::session::Session;
use crate::model::dependencies::dependents::DependencyIndex;
use crate::model::documents::Documents;
use crate::model::event_log::LoggedChange;
use crate::model::limits::fair_share::FairShares;
use crate::model::reads::daily_counts::DailyCounts;
use crate::model::schedules::Schedules;
use crate::model::tasks::keys::UniqueKeys;
use crate::model::tasks::table::TaskTable;
use crate::rules::limit::Bucket;

/// The state between two writes. A clone shares the tasks, so that an undo is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// The time of the current writes.
    pub(crate) now: Now,
    pub(crate) payload_limit: usize,
    pub(crate) tasks: TaskTable,
    pub(crate) keys: UniqueKeys,
    pub(crate) dependencies: DependencyIndex,
    pub(crate) batches: Batches,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) queues: BTreeSet<Name>,
    /// The settings of queues that differ from the default.
    pub(crate) settings: BTreeMap<Name, QueueSettings>,
    pub(crate) mode: QueueMode,
    /// A counter that goes up when a pause, a setting of a queue, a limit or the mode changes.
    pub(crate) configuration: u64,
    pub(crate) limits: BTreeMap<LimitScope, Limit>,
    /// The token buckets of scopes from which tokens were taken.
    pub(crate) buckets: BTreeMap<LimitScope, Bucket>,
    /// The starts from each queue while groups have shares.
    pub(crate) fair_shares: BTreeMap<Name, FairShares>,
    pub(crate) kinds: BTreeSet<Name>,
    pub(crate) groups: BTreeSet<Name>,
    pub(crate) pauses: BTreeMap<Scope, Option<Timestamp>>,
    /// The sessions that affinity keys prefer; all of them are open.
    pub(crate) affinities: BTreeMap<Name, PreferredSession>,
    pub(crate) schedules: Schedules,
    pub(crate) documents: Documents,
    pub(crate) statistics: BTreeMap<Name, KindStatistics>,
    pub(crate) daily_counts: DailyCounts,
    /// The highest task number so far.
    pub(crate) last_task: i64,
    /// The highest session number so far.
    pub(crate) last_session: i64,
    /// The number of tasks that have ended so far.
    pub(crate) ends: u64,
    /// The number that the log entry of the current writes will have.
    pub(crate) entry: i64,
    /// Log entries below this number are to be forgotten.
    pub(crate) forget_before: i64,
    /// The changes of tasks by the current writes, except submissions.
    pub(crate) changes: Vec<LoggedChange>,
    pub(crate) hint: Hint,
    /// The notifications of the current writes.
    pub(crate) notifications: Vec<TaskNotification>,
}

/// Wall time and steady time, read together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) steady: Duration,
}

impl Default for Now {
    fn default() -> Self {
        Self { wall: Timestamp::MIN, steady: Duration::ZERO }
    }
}

impl State {
    /// Records a change of a task for readers of the events.
    pub(super) fn log(&mut self, id: TaskId, change: Change) {
        let Some(task) = self.tasks.get(id) else { return };
        let (kind, queue) = (task.new.kind.clone(), task.new.queue.clone());
        self.changes.push(LoggedChange { at: self.now.wall, task: id, kind, queue, change });
    }

    /// Hints that a worker may find a new task to claim or a new time to wait for.
    pub(super) fn hint_work(&mut self) {
        self.hint.work += 1;
    }

    /// Hints that a task may have ended or was asked to stop.
    pub(super) fn hint_transition(&mut self) {
        self.hint.transitions += 1;
    }
}
