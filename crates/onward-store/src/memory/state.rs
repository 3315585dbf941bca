//! All that the store keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::affinity::Preferred;
use super::aggregate::Bundles;
use super::dependencies::Waits;
use super::events::Logged;
use super::history::History;
use super::keys::Keys;
use super::schedules::Schedules;
use super::sessions::Session;
use super::shares::QueueShares;
use super::tasks::Tasks;
use crate::api::event::Change;
use crate::api::limit::{Limit, LimitScope};
use crate::api::name::Name;
use crate::api::news::TaskNews;
use crate::api::queue::{QueueMode, QueueSettings};
use crate::api::store::{Hint, KindStatistics};
use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::rules::limit::Bucket;

/// The state between two writes. A clone shares the tasks with it, so that an undo costs little.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// When the writes under way act.
    pub(super) now: Moment,
    pub(super) payload_limit: usize,
    pub(super) tasks: Tasks,
    pub(super) keys: Keys,
    pub(super) waits: Waits,
    pub(super) bundles: Bundles,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) queues: BTreeSet<Name>,
    /// How queues are worked off that are not worked off by default.
    pub(super) settings: BTreeMap<Name, QueueSettings>,
    pub(super) mode: QueueMode,
    /// How often pauses, settings of queues, limits and the mode have changed.
    pub(super) configuration: u64,
    pub(super) limits: BTreeMap<LimitScope, Limit>,
    /// The token buckets of scopes from which something was taken.
    pub(super) buckets: BTreeMap<LimitScope, Bucket>,
    /// What has been started from queues while groups have shares.
    pub(super) shares: BTreeMap<Name, QueueShares>,
    pub(super) kinds: BTreeSet<Name>,
    pub(super) groups: BTreeSet<Name>,
    pub(super) pauses: BTreeMap<Scope, Option<Timestamp>>,
    /// The sessions that series prefer; all of them are open.
    pub(super) affinities: BTreeMap<Name, Preferred>,
    pub(super) schedules: Schedules,
    pub(super) statistics: BTreeMap<Name, KindStatistics>,
    pub(super) history: History,
    /// The highest number of a task so far.
    pub(super) last_task: i64,
    /// The highest number of a session so far.
    pub(super) last_session: i64,
    /// How many tasks have ended so far.
    pub(super) ends: u64,
    /// The number that the log entry of the writes under way will have.
    pub(super) entry: i64,
    /// Log entries with lower numbers are to be forgotten.
    pub(super) forget_before: i64,
    /// What the writes under way did to tasks, submissions apart.
    pub(super) changes: Vec<Logged>,
    pub(super) hint: Hint,
    /// What the writes under way have to tell.
    pub(super) news: Vec<TaskNews>,
}

/// Wall time and steady time, read together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) wall: Timestamp,
    pub(super) steady: Duration,
}

impl Default for Moment {
    fn default() -> Self {
        Self { wall: Timestamp::MIN, steady: Duration::ZERO }
    }
}

impl State {
    /// Notes what happened to a task, for those who follow the events.
    pub(super) fn log(&mut self, id: TaskId, change: Change) {
        let Some(task) = self.tasks.get(id) else { return };
        let (kind, queue) = (task.new.kind.clone(), task.new.queue.clone());
        self.changes.push(Logged { at: self.now.wall, task: id, kind, queue, change });
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
