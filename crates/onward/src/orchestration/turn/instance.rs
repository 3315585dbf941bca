//! One orchestration in memory: its code at its present point, and the tasks that it waits for.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use onward_store::{ChildTask, ClaimedTask, Name, Store, StoreReads, Tags, TaskId};
use rustc_hash::FxHashMap;

use super::fork_origin::{self, ForkOrigin, take_origin};
use super::parked_instances::Positioned;
use super::pending_turn::PendingTurn;
use crate::bounds;
use crate::error::{Error, Result};
use crate::orchestration::code_table::CodeTable;
use crate::orchestration::replay::{
    Code, CodeOutcome, HistoryEvent, Machine, Nondeterminism, ReplayContext, decode_history, has_open_operation, tags,
    version_of,
};

/// An orchestration that was brought to the end of its history.
#[derive(Debug)]
pub(in crate::orchestration) struct Instance {
    pub(in crate::orchestration) machine: Machine,
    /// The version of the code that began it.
    pub(super) version: u32,
    pub(super) generation: u32,
    /// The number of messages that it has received, if it is parked and has consumed all of them.
    pub(super) received: Option<u64>,
    /// The tasks of its operations, as far as they are known. The tasks from before a replay are
    /// not.
    tasks: FxHashMap<u64, TaskId>,
    /// The number of bytes of its history.
    pub(in crate::orchestration) bytes: u64,
}

/// The start of an orchestration.
#[derive(Debug, Clone)]
pub(in crate::orchestration) struct InstanceStart {
    pub(in crate::orchestration) task: TaskId,
    pub(in crate::orchestration) kind: Name,
    pub(in crate::orchestration) payload: Bytes,
    pub(in crate::orchestration) generation: u32,
    /// The generation in which its operations are numbered.
    pub(in crate::orchestration) numbered: u32,
    /// The tags at the end of its history.
    pub(in crate::orchestration) tags: Tags,
}

/// A history that was read.
#[derive(Debug, Default)]
pub(in crate::orchestration) struct History {
    pub(in crate::orchestration) events: Vec<HistoryEvent>,
    pub(in crate::orchestration) bytes: u64,
    /// The events for which the orchestration waits at its end, if that was read too.
    pub(in crate::orchestration) awaits: Vec<Name>,
}

/// Reads a history of at least `length` events.
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

/// The reason why there is no instance.
#[derive(Debug)]
pub(in crate::orchestration) enum ReplayError {
    /// The history could not be read.
    Unreadable(Error),
    /// The history that a fork should take over no longer exists.
    Gone(Error),
    /// There is no code for its kind, or none that continues what a version of it began.
    NoCode(Name, Option<u32>),
    /// The code does something else than its history has.
    Nondeterminism(Box<Nondeterminism>),
    /// The code panics at the end of the history, or waits there for something that no
    /// orchestration can wait for.
    Stuck(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) | Self::Gone(error) => error.fmt(f),
            Self::NoCode(kind, None) => write!(f, "this engine has no code for orchestrations of kind `{kind}`"),
            Self::NoCode(kind, Some(version)) => write!(
                f,
                "this engine has no code for orchestrations of kind `{kind}` that version {version} began; register that version, or set `since` on a later one"
            ),
            Self::Nondeterminism(difference) => difference.fmt(f),
            Self::Stuck(text) => f.write_str(text),
        }
    }
}

/// Returns true if the last turn of an orchestration ended it, so that a history with more events
/// contradicts nothing. A turn that leaves it waiting names an event, or leaves a task or a timer.
async fn has_ended(store: &dyn Store, task: TaskId, history: &History) -> Result<bool, ReplayError> {
    let record = store.instance(task).await.map_err(|error| ReplayError::Unreadable(error.into()))?;
    Ok(record.is_some_and(|record| record.awaits.is_empty()) && !has_open_operation(&history.events))
}

/// Returns the code that begins an orchestration, or continues a history, and the version that
/// began it.
fn choose<'a>(codes: &'a CodeTable, kind: &Name, history: &[HistoryEvent]) -> Result<(u32, &'a Code), ReplayError> {
    let missing = |version| ReplayError::NoCode(kind.clone(), version);
    let versions = codes.get(kind).ok_or_else(|| missing(None))?;
    match version_of(history) {
        None => versions.newest().ok_or_else(|| missing(None)),
        Some(version) => versions.code_for(version).map(|code| (version, code)).ok_or_else(|| missing(Some(version))),
    }
}

impl Positioned for Instance {
    fn is_at(&self, generation: u32, length: u64) -> bool {
        self.generation == generation && self.machine.length() == length
    }
}

impl Instance {
    /// Builds an instance from its history. For a fork it also returns the events that it takes
    /// over, which are to be written.
    pub(super) async fn replayed(
        store: &dyn Store,
        codes: &CodeTable,
        task: &ClaimedTask,
    ) -> Result<(Self, PendingTurn), ReplayError> {
        let (id, limit) = (task.lease.task, store.info().payload_limit);
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        if codes.get(&task.kind).is_none() {
            return Err(ReplayError::NoCode(task.kind.clone(), None));
        }
        let numbered = fork_origin::numbered(&task.tags, generation);
        let (kind, payload, tags) = (task.kind.clone(), task.payload.clone(), task.tags.clone());
        let start = InstanceStart { task: id, kind, payload, generation, numbered, tags };
        // A fork has no history of its own before its first turn.
        if let Some(origin) = ForkOrigin::of(&task.tags).filter(|_| length == 0 && generation == 0) {
            let events = origin.history(store).await?;
            return Self::new(limit, codes, start, &events)?.forked(origin, events);
        }
        let mut history = History::default();
        if length > 0 {
            // The first page decides which code continues the history. If that code is missing, the
            // rest is not read each time.
            history.read_page(store, id, length).await.map_err(ReplayError::Unreadable)?;
            choose(codes, &task.kind, &history.events)?;
            history.read_to(store, id, length).await.map_err(ReplayError::Unreadable)?;
        }
        let instance = match Self::at_end_of(limit, codes, start.clone(), &history) {
            Err(ReplayError::Nondeterminism(more))
                if more.is_behind_end() && has_ended(store, id, &history).await? =>
            {
                return Self::past_end_of(limit, codes, start, &history);
            }
            replayed => replayed?,
        };
        if instance.machine.outcome().is_some() {
            // The record is read only in this case, so that a replay that continues costs no
            // further read.
            let record = store.instance(id).await.map_err(|error| ReplayError::Unreadable(error.into()))?;
            instance.check_end(&record.map_or_else(Vec::new, |record| record.awaits))?;
        }
        Ok((instance, PendingTurn::default()))
    }

    /// Brings code to the end of a history. Engines, checks and queries use this to replay.
    ///
    /// # Errors
    /// The reason why the code cannot continue there.
    pub(in crate::orchestration) fn at_end_of(
        payload_limit: usize,
        codes: &CodeTable,
        start: InstanceStart,
        history: &History,
    ) -> Result<Self, ReplayError> {
        let mut instance = Self::new(payload_limit, codes, start, &history.events)?;
        if history.events.is_empty() {
            return Ok(instance);
        }
        instance.bytes = history.bytes;
        instance.machine.replay(&history.events).map_err(ReplayError::Nondeterminism)?;
        instance.machine.stop_if_stuck();
        match instance.machine.outcome().and_then(CodeOutcome::fault) {
            Some(fault) => Err(ReplayError::Stuck(fault)),
            None => Ok(instance),
        }
    }

    /// Brings code to the end of a history with which an orchestration had ended, and beyond it:
    /// the orchestration was retried, and its code now continues there.
    fn past_end_of(
        payload_limit: usize,
        codes: &CodeTable,
        start: InstanceStart,
        history: &History,
    ) -> Result<(Self, PendingTurn), ReplayError> {
        let mut instance = Self::new(payload_limit, codes, start, &history.events)?;
        instance.bytes = history.bytes;
        let commands = instance.machine.replay_past_end(&history.events).map_err(ReplayError::Nondeterminism)?;
        let mut pending = PendingTurn::default();
        pending.add_commands(commands);
        Ok((instance, pending))
    }

    /// Checks that the code waits at the end of its history, if its last turn left it waiting for
    /// events.
    pub(in crate::orchestration) fn check_end(&self, awaits: &[Name]) -> Result<(), ReplayError> {
        self.machine.check_end(awaits).map_err(ReplayError::Nondeterminism)
    }

    /// Begins with the history of another orchestration.
    fn forked(mut self, origin: ForkOrigin, events: Vec<HistoryEvent>) -> Result<(Self, PendingTurn), ReplayError> {
        let commands = self.machine.fork(origin.task, &events).map_err(ReplayError::Nondeterminism)?;
        let mut pending = PendingTurn::inherited(events);
        pending.add(HistoryEvent::Forked { from: origin.task.0 }, commands);
        Ok((self, pending))
    }

    /// Returns an instance before its first event, with the newest code, or with the code that
    /// continues a history.
    fn new(
        payload_limit: usize,
        codes: &CodeTable,
        start: InstanceStart,
        history: &[HistoryEvent],
    ) -> Result<Self, ReplayError> {
        let (version, code) = choose(codes, &start.kind, history)?;
        let InstanceStart { task, kind, payload, generation, numbered, mut tags } = start;
        let replay_context = Arc::new(ReplayContext::new(task, kind, payload, generation, payload_limit));
        replay_context.number_in(numbered);
        let is_fork = take_origin(&mut tags);
        // The events that a fork takes over were made without the tag of the fork.
        replay_context.begin_with_tags(tags::before(tags, history), usize::from(is_fork && generation > 0));
        let machine = Machine::new(code, replay_context);
        let tasks = FxHashMap::default();
        Ok(Self { machine, version, generation, received: None, tasks, bytes: 0 })
    }

    pub(super) fn remember_task(&mut self, operation: u64, task: TaskId) {
        self.tasks.insert(operation, task);
    }

    pub(super) fn forget_task(&mut self, operation: u64) {
        self.tasks.remove(&operation);
    }

    /// Returns the number of tasks for which the orchestration waits, as far as they are known.
    pub(super) fn open_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the task of an operation, to cancel it: by its number if that is known.
    pub(super) fn child_of(&self, operation: u64) -> ChildTask {
        self.tasks.get(&operation).map_or(ChildTask::Reference(operation), |task| ChildTask::Task(*task))
    }
}
