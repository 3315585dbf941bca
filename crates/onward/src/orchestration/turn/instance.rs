//! One orchestration in memory: its code where it stands, and which tasks it waits for.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use onward_store::{ClaimedTask, Name, Page, Store, Tags, TaskFilter, TaskId};
use rustc_hash::FxHashMap;

use super::fork_origin::{self, Origin, take_origin};
use super::pending_turn::Draft;
use crate::bounds;
use crate::error::{Error, Result};
use crate::orchestration::code_table::CodeTable;
use crate::orchestration::replay::{
    Code, Finish, HistoryEvent, Journal, Machine, Nondeterminism, decode_history, tags, version_of,
};

/// An orchestration that has been brought to where its history ends.
#[derive(Debug)]
pub(in crate::orchestration) struct Live {
    pub(in crate::orchestration) machine: Machine,
    /// The version of the code that began it.
    pub(super) version: u32,
    generation: u32,
    /// The tasks of its operations, so far as they are known: of those from before a replay they
    /// are not.
    tasks: FxHashMap<u64, TaskId>,
    is_replayed: bool,
    /// How many bytes its history has.
    pub(in crate::orchestration) bytes: u64,
}

/// What an orchestration begins with.
#[derive(Debug)]
pub(in crate::orchestration) struct Begun {
    pub(in crate::orchestration) task: TaskId,
    pub(in crate::orchestration) kind: Name,
    pub(in crate::orchestration) payload: Bytes,
    pub(in crate::orchestration) generation: u32,
    /// In which generation its operations are numbered.
    pub(in crate::orchestration) numbered: u32,
    /// Its tags where its history ends.
    pub(in crate::orchestration) tags: Tags,
}

/// A history that was read.
#[derive(Debug, Default)]
pub(in crate::orchestration) struct History {
    pub(in crate::orchestration) events: Vec<HistoryEvent>,
    pub(in crate::orchestration) bytes: u64,
    /// The events for which the orchestration waits at its end, where that was read too.
    pub(in crate::orchestration) awaits: Vec<Name>,
}

/// Reads a history of at least so many events.
pub(in crate::orchestration) async fn read_history(store: &dyn Store, task: TaskId, length: u64) -> Result<History> {
    let mut history = History::default();
    history.read_to(store, task, length).await?;
    Ok(history)
}

impl History {
    async fn read_to(&mut self, store: &dyn Store, task: TaskId, length: u64) -> Result<()> {
        while (self.events.len() as u64) < length {
            self.read_page(store, task, length).await?;
        }
        Ok(())
    }

    async fn read_page(&mut self, store: &dyn Store, task: TaskId, length: u64) -> Result<()> {
        let from = self.events.len() as u64;
        let chunks = store.instance_history(task, from, bounds::HISTORY_CHUNKS).await?;
        if chunks.is_empty() {
            let text = format!("the history of orchestration {task} ends at event {from} of {length}");
            return Err(onward_store::Error::corrupt(text).into());
        }
        for chunk in &chunks {
            self.bytes += chunk.chunk.len() as u64;
            self.events.extend(decode_history(chunk)?);
        }
        Ok(())
    }
}

/// Why there is none.
#[derive(Debug)]
pub(in crate::orchestration) enum Unplayable {
    /// The history could not be read.
    Unread(Error),
    /// What a fork is to take over is no longer there.
    Gone(Error),
    /// There is no code for its kind; or none that goes on with what a version of it began.
    NoCode(Name, Option<u32>),
    /// The code does something else.
    Nondeterminism(Box<Nondeterminism>),
    /// The code panics at the end of the history, or waits there for what no orchestration can wait
    /// for.
    Stuck(String),
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(error) | Self::Gone(error) => error.fmt(f),
            Self::NoCode(kind, None) => write!(f, "this engine has no code for orchestrations of kind `{kind}`"),
            Self::NoCode(kind, Some(version)) => write!(
                f,
                "this engine has no code for orchestrations of kind `{kind}` that version {version} began; register that, or say `since` of a later one"
            ),
            Self::Nondeterminism(difference) => difference.fmt(f),
            Self::Stuck(text) => f.write_str(text),
        }
    }
}

/// The code that begins an orchestration, or goes on with a history, and the version that began
/// that.
fn choose<'a>(codes: &'a CodeTable, kind: &Name, history: &[HistoryEvent]) -> Result<(u32, &'a Code), Unplayable> {
    let missing = |version| Unplayable::NoCode(kind.clone(), version);
    let versions = codes.get(kind).ok_or_else(|| missing(None))?;
    match version_of(history) {
        None => versions.newest().ok_or_else(|| missing(None)),
        Some(version) => {
            versions.going_on_with(version).map(|code| (version, code)).ok_or_else(|| missing(Some(version)))
        }
    }
}

impl Live {
    /// Whether it is as far as a history.
    pub(super) fn is_at(&self, generation: u32, length: u64) -> bool {
        self.generation == generation && self.machine.length() == length
    }

    /// Makes one from its history; of a fork, with what it takes over, which is to be written.
    pub(super) async fn replayed(
        store: &dyn Store,
        codes: &CodeTable,
        task: &ClaimedTask,
    ) -> Result<(Self, Draft), Unplayable> {
        let (id, limit) = (task.lease.task, store.info().payload_limit);
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        if codes.get(&task.kind).is_none() {
            return Err(Unplayable::NoCode(task.kind.clone(), None));
        }
        let numbered = fork_origin::numbered(&task.tags, generation);
        let (kind, payload, tags) = (task.kind.clone(), task.payload.clone(), task.tags.clone());
        let begun = Begun { task: id, kind, payload, generation, numbered, tags };
        if let Some(origin) = Origin::of(&task.tags).filter(|_| length == 0 && generation == 0) {
            let events = origin.history(store).await?;
            return Self::new(limit, codes, begun, &events)?.forked(origin, events);
        }
        let mut history = History::default();
        if length > 0 {
            // Its beginning says whose it is: where that is missing, the rest is not read again and
            // again.
            history.read_page(store, id, length).await.map_err(Unplayable::Unread)?;
            choose(codes, &task.kind, &history.events)?;
            history.read_to(store, id, length).await.map_err(Unplayable::Unread)?;
        }
        let live = Self::at_end_of(limit, codes, begun, &history)?;
        if live.machine.finish().is_some() {
            // Read only then: a replay that goes on costs no read more.
            let instance = store.instance(id).await.map_err(|error| Unplayable::Unread(error.into()))?;
            live.check_end(&instance.map_or_else(Vec::new, |instance| instance.awaits))?;
        }
        Ok((live, Draft::default()))
    }

    /// Brings code to where a history ends. Engines, checks and queries replay by this.
    ///
    /// # Errors
    /// Why it cannot go on there.
    pub(in crate::orchestration) fn at_end_of(
        payload_limit: usize,
        codes: &CodeTable,
        begun: Begun,
        history: &History,
    ) -> Result<Self, Unplayable> {
        let mut live = Self::new(payload_limit, codes, begun, &history.events)?;
        if history.events.is_empty() {
            return Ok(live);
        }
        (live.is_replayed, live.bytes) = (true, history.bytes);
        live.machine.replay(&history.events).map_err(Unplayable::Nondeterminism)?;
        live.machine.notice_if_stuck();
        match live.machine.finish().and_then(Finish::fault) {
            Some(fault) => Err(Unplayable::Stuck(fault)),
            None => Ok(live),
        }
    }

    /// Checks that the code waits where its history ends, if its last turn left it waiting for
    /// events.
    pub(in crate::orchestration) fn check_end(&self, awaits: &[Name]) -> Result<(), Unplayable> {
        self.machine.check_end(awaits).map_err(Unplayable::Nondeterminism)
    }

    /// Begins with what another orchestration has come to.
    fn forked(mut self, origin: Origin, events: Vec<HistoryEvent>) -> Result<(Self, Draft), Unplayable> {
        let commands = self.machine.fork(origin.task, &events).map_err(Unplayable::Nondeterminism)?;
        let mut draft = Draft::taken_over(events);
        draft.add(HistoryEvent::Forked { from: origin.task.0 }, commands);
        Ok((self, draft))
    }

    /// One before its first event: with the newest code, or with that which goes on with a history.
    fn new(
        payload_limit: usize,
        codes: &CodeTable,
        begun: Begun,
        history: &[HistoryEvent],
    ) -> Result<Self, Unplayable> {
        let (version, code) = choose(codes, &begun.kind, history)?;
        let Begun { task, kind, payload, generation, numbered, mut tags } = begun;
        let journal = Arc::new(Journal::new(task, kind, payload, generation, payload_limit));
        journal.number_in(numbered);
        let is_fork = take_origin(&mut tags);
        // What a fork takes over was done without the tag.
        journal.begin_with_tags(tags::before(tags, history), usize::from(is_fork && generation > 0));
        let machine = Machine::new(code, journal);
        let tasks = FxHashMap::default();
        Ok(Self { machine, version, generation, tasks, is_replayed: false, bytes: 0 })
    }

    pub(super) fn learn(&mut self, operation: u64, task: TaskId) {
        self.tasks.insert(operation, task);
    }

    pub(super) fn forget(&mut self, operation: u64) {
        self.tasks.remove(&operation);
    }

    /// The task that an operation submitted.
    pub(super) async fn task_of(
        &mut self,
        store: &dyn Store,
        parent: TaskId,
        operation: u64,
    ) -> Result<Option<TaskId>> {
        if !self.tasks.contains_key(&operation) && std::mem::take(&mut self.is_replayed) {
            self.read_tasks(store, parent).await?;
        }
        Ok(self.tasks.get(&operation).copied())
    }

    async fn read_tasks(&mut self, store: &dyn Store, parent: TaskId) -> Result<()> {
        let filter = TaskFilter { parent: Some(parent), ..TaskFilter::default() };
        let mut page = Page::default();
        loop {
            let found = store.tasks(filter.clone(), page).await?;
            for task in &found.tasks {
                if let Some(operation) = task.report {
                    self.tasks.entry(operation).or_insert(task.id);
                }
            }
            match found.next {
                Some(before) => page.before = Some(before),
                None => return Ok(()),
            }
        }
    }
}
