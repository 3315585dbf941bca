//! Everything that is not a task, as named pieces of text.

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
use crate::rules::aggregate::Collection;
use crate::rules::limit::Bucket;
use crate::rules::share::VirtualTime;

/// A piece: of a sort, under a name, with a body in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmallStateRow {
    pub(crate) sort: String,
    pub(crate) name: String,
    pub(crate) body: String,
}

/// What there is one of.
#[derive(Debug, Default, PartialEq, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoreSettings {
    pub(crate) mode: QueueMode,
    pub(crate) configuration: u64,
    pub(crate) schedule_revision: u64,
}

/// What has been started from a queue while groups have shares.
#[derive(Serialize, Deserialize)]
pub(crate) struct SharesBody {
    pub(crate) now: (i64, i64),
    pub(crate) tags: Vec<(Option<Name>, (i64, i64))>,
}

/// What is being collected.
#[derive(Serialize, Deserialize)]
pub(crate) struct CollectionBody {
    pub(crate) began_with: TaskId,
    pub(crate) members: u32,
    pub(crate) bytes: u64,
    pub(crate) began_at: Timestamp,
    pub(crate) size: u32,
    pub(crate) deadline: Timestamp,
    pub(crate) ripe_at: Timestamp,
    pub(crate) tasks: BTreeSet<TaskId>,
}

impl SmallStateRow {
    /// A piece under a name that is a value itself.
    pub(crate) fn new<K: Serialize, B: Serialize>(sort: &str, name: &K, body: &B) -> Result<Self> {
        Ok(Self { sort: sort.to_owned(), name: json(name)?, body: json(body)? })
    }

    /// A piece that is only a name.
    pub(crate) fn named(sort: &str, name: &Name) -> Self {
        Self { sort: sort.to_owned(), name: name.to_string(), body: "null".to_owned() }
    }

    /// A piece of which there is one.
    pub(crate) fn sole<B: Serialize>(sort: &str, body: &B) -> Result<Self> {
        Ok(Self { sort: sort.to_owned(), name: String::new(), body: json(body)? })
    }

    /// The value that its name is.
    pub(crate) fn key<K: DeserializeOwned>(&self) -> Result<K> {
        key(self)
    }

    pub(crate) fn body<B: DeserializeOwned>(&self) -> Result<B> {
        read(self, &self.body)
    }

    pub(crate) fn set_body<B: Serialize>(&mut self, body: &B) -> Result<()> {
        self.body = json(body)?;
        Ok(())
    }
}

impl StoreSettings {
    fn of(state: &State) -> Self {
        Self { mode: state.mode, configuration: state.configuration, schedule_revision: state.schedules.revision }
    }
}

/// What changed of all that is not a task.
#[derive(Debug, Default)]
pub(super) struct SmallStateChanges {
    pub(in crate::postgres) set: Vec<SmallStateRow>,
    /// Those that are there under their names already.
    pub(in crate::postgres) changed: Vec<SmallStateRow>,
    pub(in crate::postgres) gone: Vec<(String, String)>,
}

impl SmallStateChanges {
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
        changes.map("shares", &before.fair_shares, &after.fair_shares, |shares| json(&shares_body(shares)))?;
        changes.map("schedule", &before.schedules.by_name, &after.schedules.by_name, json)?;
        let (collections, later) = (&before.batches.pending, &after.batches.pending);
        changes.map("collection", collections, later, |(collection, tasks)| {
            json(&collection_body(*collection, tasks.clone()))
        })?;
        if before.dependencies.unsettled != after.dependencies.unsettled {
            changes.put("unsettled", String::new(), json(&after.dependencies.unsettled)?);
        }
        if StoreSettings::of(before) != StoreSettings::of(after) {
            changes.put("store", String::new(), json(&StoreSettings::of(after))?);
        }
        Ok(changes)
    }

    fn put(&mut self, sort: &str, name: String, body: String) {
        self.set.push(SmallStateRow { sort: sort.to_owned(), name, body });
    }

    fn names(&mut self, sort: &str, before: &BTreeSet<Name>, after: &BTreeSet<Name>) {
        for name in after.difference(before) {
            self.put(sort, name.to_string(), "null".to_owned());
        }
        self.gone.extend(before.difference(after).map(|name| (sort.to_owned(), name.to_string())));
    }

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

/// Everything that is not a task, at one moment.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct SmallState(State);

impl SmallState {
    pub(crate) fn of(rows: impl Iterator<Item = SmallStateRow>) -> Result<Self> {
        let mut state = State::default();
        for row in rows {
            take(&mut state, &row)?;
        }
        Ok(Self(state))
    }

    /// Those of a state that is needed no more.
    pub(super) fn left_by(mut state: State) -> Self {
        let unsettled = std::mem::take(&mut state.dependencies.unsettled);
        let collections = std::mem::take(&mut state.batches.pending);
        Self(State {
            tasks: TaskTable::default(),
            keys: UniqueKeys::default(),
            dependencies: DependencyIndex { unsettled, ..DependencyIndex::default() },
            batches: Batches { pending: collections, ..Batches::default() },
            documents: Documents::default(),
            daily_counts: DailyCounts::default(),
            statistics: BTreeMap::new(),
            changes: Vec::new(),
            hint: Hint::default(),
            news: Vec::new(),
            ..state
        })
    }

    /// Whether it matters to any limit how many tasks run.
    pub(crate) fn counts_running(&self) -> bool {
        self.0.counts_running()
    }

    /// Whether claims look at a task of every sub-queue: where groups share queues, and where
    /// series prefer sessions.
    pub(in crate::postgres) fn read_every_sub_queue(&self) -> bool {
        self.0.are_shared() || !self.0.affinities.is_empty()
    }

    pub(super) fn into_state(self) -> State {
        self.0
    }
}

/// Takes a piece into the state.
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
        "shares" => drop(state.fair_shares.insert(key(item)?, shares(read(item, body)?))),
        "schedule" => drop(Arc::make_mut(&mut state.schedules.by_name).insert(key(item)?, read(item, body)?)),
        "collection" => drop(state.batches.pending.insert(key(item)?, collection(read(item, body)?))),
        "unsettled" => state.dependencies.unsettled = read(item, body)?,
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

fn shares_body(shares: &FairShares) -> SharesBody {
    let pair = |time: VirtualTime| (time.guaranteed, time.shared);
    let tags = shares.tags.iter().map(|(group, time)| (group.clone(), pair(*time))).collect();
    SharesBody { now: pair(shares.now), tags }
}

fn shares(body: SharesBody) -> FairShares {
    let time = |(guaranteed, shared)| VirtualTime { guaranteed, shared };
    FairShares { now: time(body.now), tags: body.tags.into_iter().map(|(group, tag)| (group, time(tag))).collect() }
}

fn collection_body(collection: Collection, tasks: BTreeSet<TaskId>) -> CollectionBody {
    let Collection { began_with, members, bytes, began_at, size, deadline, ripe_at } = collection;
    CollectionBody { began_with, members, bytes, began_at, size, deadline, ripe_at, tasks }
}

fn collection(body: CollectionBody) -> (Collection, BTreeSet<TaskId>) {
    let CollectionBody { began_with, members, bytes, began_at, size, deadline, ripe_at, tasks } = body;
    (Collection { began_with, members, bytes, began_at, size, deadline, ripe_at }, tasks)
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::io(format!("a piece of the store cannot be written: {error}")))
}

fn key<T: DeserializeOwned>(item: &SmallStateRow) -> Result<T> {
    read(item, &item.name)
}

fn read<T: DeserializeOwned>(item: &SmallStateRow, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let (sort, name) = (&item.sort, &item.name);
        Error::corrupt(format!("the {sort} {name} of the store cannot be read: {error}; restore a backup"))
    })
}
