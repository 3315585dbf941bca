//! The small state: everything in a store that is not a task, as named rows.
//!
//! It is small enough for a writer to keep all of it, and to compare one version number instead of
//! reading it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::queue::QueueMode;
use crate::api::store::Hint;
use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::model::{Batches, DailyCounts, DependencyIndex, Documents, FairShares, State, TaskTable, UniqueKeys};
use crate::rules::aggregate::PendingBatchState;
use crate::rules::limit::Bucket;
use crate::rules::share::VirtualTime;

/// A row of the small state: its sort, its name within the sort, and a body in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmallStateRow {
    /// The sort, such as `queue` or `limit`; [`take`] has all of them.
    pub(crate) sort: String,
    /// The name, unique within the sort: plain text, or an encoded value.
    pub(crate) name: String,
    /// The value in JSON.
    pub(crate) body: String,
}

/// The settings of which a store has one each.
#[derive(Debug, Default, PartialEq, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoreSettings {
    /// The order in which queues are served.
    pub(crate) mode: QueueMode,
    /// The number of changes to the configuration.
    pub(crate) configuration: u64,
    /// The number of changes to schedules.
    pub(crate) schedule_revision: u64,
}

/// The fair-share tags of a queue.
#[derive(Serialize, Deserialize)]
pub(crate) struct SharesBody {
    /// The virtual time of the queue, as guaranteed and shared time.
    pub(crate) now: (i64, i64),
    /// The tags of the groups.
    pub(crate) tags: Vec<(Option<Name>, (i64, i64))>,
}

/// A pending batch.
#[derive(Serialize, Deserialize)]
pub(crate) struct PendingBatchBody {
    /// The first item.
    pub(crate) began_with: TaskId,
    /// The number of items.
    pub(crate) items: u32,
    /// The size of their payloads.
    pub(crate) bytes: u64,
    /// The time of the first item.
    pub(crate) began_at: Timestamp,
    /// The number of items that makes the batch ready.
    pub(crate) size: u32,
    /// The time at which the batch becomes ready at the latest.
    pub(crate) deadline: Timestamp,
    /// The time at which the batch becomes ready if nothing more is added.
    pub(crate) ready_at: Timestamp,
    /// The items.
    pub(crate) tasks: BTreeSet<TaskId>,
}

impl SmallStateRow {
    /// Creates a row whose name is an encoded value.
    pub(crate) fn new<K: Serialize, B: Serialize>(sort: &str, name: &K, body: &B) -> Result<Self> {
        Ok(Self { sort: sort.to_owned(), name: json(name)?, body: json(body)? })
    }

    /// Creates a row that consists of its name.
    pub(crate) fn named(sort: &str, name: &Name) -> Self {
        Self { sort: sort.to_owned(), name: name.to_string(), body: "null".to_owned() }
    }

    /// Creates the only row of a sort.
    pub(crate) fn sole<B: Serialize>(sort: &str, body: &B) -> Result<Self> {
        Ok(Self { sort: sort.to_owned(), name: String::new(), body: json(body)? })
    }

    /// Decodes the name of a row.
    pub(crate) fn key<K: DeserializeOwned>(&self) -> Result<K> {
        key(self)
    }

    /// Decodes the body of a row.
    pub(crate) fn body<B: DeserializeOwned>(&self) -> Result<B> {
        read(self, &self.body)
    }

    /// Replaces the body of a row.
    pub(crate) fn set_body<B: Serialize>(&mut self, body: &B) -> Result<()> {
        self.body = json(body)?;
        Ok(())
    }
}

impl StoreSettings {
    /// Extracts the settings from a state.
    fn of(state: &State) -> Self {
        Self { mode: state.mode, configuration: state.configuration, schedule_revision: state.schedules.revision }
    }
}

/// The difference between two small states.
#[derive(Debug, Default)]
pub(super) struct SmallStateChanges {
    /// New rows.
    pub(in crate::postgres) set: Vec<SmallStateRow>,
    /// Rows that already exist.
    pub(in crate::postgres) changed: Vec<SmallStateRow>,
    /// Rows to delete, by sort and name.
    pub(in crate::postgres) gone: Vec<(String, String)>,
}

impl SmallStateChanges {
    /// Compares the small states of two states, sort by sort.
    pub(in crate::postgres) fn between(before: &State, after: &State) -> Result<Self> {
        let mut changes = Self::default();
        changes.names("queue", &before.queues, &after.queues);
        changes.names("kind", &before.kinds, &after.kinds);
        changes.names("group", &before.groups, &after.groups);
        changes.map("settings", &before.settings, &after.settings, json)?;
        changes.map("limit", &before.limits, &after.limits, json)?;
        changes.map("pause", &before.pauses, &after.pauses, json)?;
        changes.map("session", &before.sessions, &after.sessions, json)?;
        changes.map("affinity", &before.affinities, &after.affinities, json)?;
        changes.map("bucket", &before.buckets, &after.buckets, |bucket| json(&bucket.full_at))?;
        changes.map("fair_share", &before.fair_shares, &after.fair_shares, |shares| json(&shares_body(shares)))?;
        changes.map("schedule", &before.schedules.by_name, &after.schedules.by_name, json)?;
        let (pending_batches, later) = (&before.batches.pending, &after.batches.pending);
        changes.map("pending_batch", pending_batches, later, |(pending_batch, tasks)| {
            json(&pending_batch_body(*pending_batch, tasks.clone()))
        })?;
        if before.dependencies.unpropagated_ends != after.dependencies.unpropagated_ends {
            changes.put("unpropagated_ends", String::new(), json(&after.dependencies.unpropagated_ends)?);
        }
        if StoreSettings::of(before) != StoreSettings::of(after) {
            changes.put("store", String::new(), json(&StoreSettings::of(after))?);
        }
        Ok(changes)
    }

    /// Adds a new row.
    fn put(&mut self, sort: &str, name: String, body: String) {
        self.set.push(SmallStateRow { sort: sort.to_owned(), name, body });
    }

    /// Compares two sets of names.
    fn names(&mut self, sort: &str, before: &BTreeSet<Name>, after: &BTreeSet<Name>) {
        for name in after.difference(before) {
            self.put(sort, name.to_string(), "null".to_owned());
        }
        self.gone.extend(before.difference(after).map(|name| (sort.to_owned(), name.to_string())));
    }

    /// Compares two maps. Both are sorted, so one pass over them is enough.
    fn map<K: Ord + Serialize, V: PartialEq>(
        &mut self,
        sort: &str,
        before: &BTreeMap<K, V>,
        after: &BTreeMap<K, V>,
        body: impl Fn(&V) -> Result<String>,
    ) -> Result<()> {
        let mut before = before.iter().peekable();
        for (key, value) in after {
            while let Some((gone, _)) = before.next_if(|(old, _)| *old < key) {
                self.gone.push((sort.to_owned(), json(gone)?));
            }
            match before.next_if(|(old, _)| *old == key) {
                Some((_, old)) if old == value => {}
                Some(_) => {
                    self.changed.push(SmallStateRow { sort: sort.to_owned(), name: json(key)?, body: body(value)? })
                }
                None => self.put(sort, json(key)?, body(value)?),
            }
        }
        for (gone, _) in before {
            self.gone.push((sort.to_owned(), json(gone)?));
        }
        Ok(())
    }
}

/// The small state at one moment, as a state without tasks.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct SmallState(State);

impl SmallState {
    /// Decodes the small state from its rows.
    pub(crate) fn of(rows: impl Iterator<Item = SmallStateRow>) -> Result<Self> {
        let mut state = State::default();
        for row in rows {
            take(&mut state, &row)?;
        }
        Ok(Self(state))
    }

    /// Takes the small state out of a state, whose other parts are dropped.
    pub(super) fn left_by(mut state: State) -> Self {
        let unpropagated_ends = std::mem::take(&mut state.dependencies.unpropagated_ends);
        let pending_batches = std::mem::take(&mut state.batches.pending);
        Self(State {
            tasks: TaskTable::default(),
            keys: UniqueKeys::default(),
            dependencies: DependencyIndex { unpropagated_ends, ..DependencyIndex::default() },
            batches: Batches { pending: pending_batches, ..Batches::default() },
            documents: Documents::default(),
            daily_counts: DailyCounts::default(),
            statistics: BTreeMap::new(),
            changes: Vec::new(),
            hint: Hint::default(),
            notifications: Vec::new(),
            ..state
        })
    }

    /// Returns true if a limit depends on the number of running tasks.
    pub(crate) fn counts_running(&self) -> bool {
        self.0.counts_running()
    }

    /// Returns true if claims need the first task of every sub-queue: with fair shares between
    /// groups, and with affinity keys that prefer a session.
    pub(in crate::postgres) fn read_every_sub_queue(&self) -> bool {
        self.0.are_shared() || !self.0.affinities.is_empty()
    }

    /// Returns the state, to which tasks can be added.
    pub(super) fn into_state(self) -> State {
        self.0
    }
}

/// Decodes a row into a state.
pub(in crate::postgres) fn take(state: &mut State, item: &SmallStateRow) -> Result<()> {
    let body = item.body.as_str();
    match item.sort.as_str() {
        "queue" => drop(state.queues.insert(Name::new(&item.name)?)),
        "kind" => drop(state.kinds.insert(Name::new(&item.name)?)),
        "group" => drop(state.groups.insert(Name::new(&item.name)?)),
        "settings" => drop(state.settings.insert(key(item)?, read(item, body)?)),
        "limit" => drop(state.limits.insert(key(item)?, read(item, body)?)),
        "pause" => drop(state.pauses.insert(key(item)?, read(item, body)?)),
        "session" => drop(state.sessions.insert(SessionId(key(item)?), read(item, body)?)),
        "affinity" => drop(state.affinities.insert(key(item)?, read(item, body)?)),
        "bucket" => {
            let full_at: Duration = read(item, body)?;
            state.buckets.insert(key(item)?, Bucket { full_at });
        }
        "fair_share" => drop(state.fair_shares.insert(key(item)?, shares(read(item, body)?))),
        "schedule" => drop(Arc::make_mut(&mut state.schedules.by_name).insert(key(item)?, read(item, body)?)),
        "pending_batch" => drop(state.batches.pending.insert(key(item)?, pending_batch(read(item, body)?))),
        "unpropagated_ends" => state.dependencies.unpropagated_ends = read(item, body)?,
        "store" => {
            let StoreSettings { mode, configuration, schedule_revision } = read(item, body)?;
            (state.mode, state.configuration, state.schedules.revision) = (mode, configuration, schedule_revision);
        }
        other => {
            return Err(Error::version(format!(
                "the store has a piece of the sort `{other}`, which this version does not know; use the version that wrote it"
            )));
        }
    }
    Ok(())
}

/// Encodes fair-share tags.
fn shares_body(shares: &FairShares) -> SharesBody {
    let pair = |time: VirtualTime| (time.guaranteed, time.shared);
    let tags = shares.tags.iter().map(|(group, time)| (group.clone(), pair(*time))).collect();
    SharesBody { now: pair(shares.now), tags }
}

/// Decodes fair-share tags.
fn shares(body: SharesBody) -> FairShares {
    let time = |(guaranteed, shared)| VirtualTime { guaranteed, shared };
    FairShares { now: time(body.now), tags: body.tags.into_iter().map(|(group, tag)| (group, time(tag))).collect() }
}

/// Encodes a pending batch.
fn pending_batch_body(pending_batch: PendingBatchState, tasks: BTreeSet<TaskId>) -> PendingBatchBody {
    let PendingBatchState { began_with, items, bytes, began_at, size, deadline, ready_at } = pending_batch;
    PendingBatchBody { began_with, items, bytes, began_at, size, deadline, ready_at, tasks }
}

/// Decodes a pending batch.
fn pending_batch(body: PendingBatchBody) -> (PendingBatchState, BTreeSet<TaskId>) {
    let PendingBatchBody { began_with, items, bytes, began_at, size, deadline, ready_at, tasks } = body;
    (PendingBatchState { began_with, items, bytes, began_at, size, deadline, ready_at }, tasks)
}

/// Encodes a value as JSON.
fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::io(format!("a piece of the store cannot be written: {error}")))
}

/// Decodes the name of a row.
fn key<T: DeserializeOwned>(item: &SmallStateRow) -> Result<T> {
    read(item, &item.name)
}

/// Decodes a text of a row; the error names the row.
fn read<T: DeserializeOwned>(item: &SmallStateRow, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let (sort, name) = (&item.sort, &item.name);
        Error::corrupt(format!("the {sort} {name} of the store cannot be read: {error}; restore a backup"))
    })
}
