//! All that the store keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::event::Change;
use crate::api::limit::{Limit, LimitScope};
use crate::api::name::Name;
use crate::api::news::TaskNews;
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

/// The state between two writes. A clone shares the tasks with it, so that an undo costs little.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// When the writes under way act.
    pub(crate) now: Now,
    pub(crate) payload_limit: usize,
    pub(crate) tasks: TaskTable,
    pub(crate) keys: UniqueKeys,
    pub(crate) dependencies: DependencyIndex,
    pub(crate) batches: Batches,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) queues: BTreeSet<Name>,
    /// How queues are worked off that are not worked off by default.
    pub(crate) settings: BTreeMap<Name, QueueSettings>,
    pub(crate) mode: QueueMode,
    /// How often pauses, settings of queues, limits and the mode have changed.
    pub(crate) configuration: u64,
    pub(crate) limits: BTreeMap<LimitScope, Limit>,
    /// The token buckets of scopes from which something was taken.
    pub(crate) buckets: BTreeMap<LimitScope, Bucket>,
    /// What has been started from queues while groups have shares.
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
    /// The highest number of a task so far.
    pub(crate) last_task: i64,
    /// The highest number of a session so far.
    pub(crate) last_session: i64,
    /// How many tasks have ended so far.
    pub(crate) ends: u64,
    /// The number that the log entry of the writes under way will have.
    pub(crate) entry: i64,
    /// Log entries with lower numbers are to be forgotten.
    pub(crate) forget_before: i64,
    /// What the writes under way did to tasks, submissions apart.
    pub(crate) changes: Vec<LoggedChange>,
    pub(crate) hint: Hint,
    /// What the writes under way have to tell.
    pub(crate) news: Vec<TaskNews>,
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
    /// Notes what happened to a task, for those who follow the events.
    pub(super) fn log(&mut self, id: TaskId, change: Change) {
        let Some(task) = self.tasks.get(id) else { return };
        let (kind, queue) = (task.new.kind.clone(), task.new.queue.clone());
        self.changes.push(LoggedChange { at: self.now.wall, task: id, kind, queue, change });
    }

    /// Hints that there may be something new to claim, or something new to wait for.
    pub(super) fn hint_work(&mut self) {
        self.hint.work += 1;
    }

    /// Hints that a task may have ended, or was asked to stop.
    pub(super) fn hint_transition(&mut self) {
        self.hint.transitions += 1;
    }
}
