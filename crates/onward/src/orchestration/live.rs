//! One orchestration in memory: its code where it stands, and which tasks it waits for.

use std::sync::Arc;

use bytes::Bytes;
use onward_store::{ClaimedTask, Name, Page, Store, TaskFilter, TaskId};
use rustc_hash::FxHashMap;

use super::history::{HistoryEvent, decode_history};
use super::journal::Journal;
use super::machine::{Code, Machine, Nondeterminism};
use crate::error::Result;
use crate::limits;

/// An orchestration that has been brought to where its history ends.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) machine: Machine,
    generation: u32,
    /// The tasks of its operations, so far as they are known: of those from before a replay they are not.
    tasks: FxHashMap<u64, TaskId>,
    is_replayed: bool,
    /// How many bytes its history has.
    pub(super) bytes: u64,
}

/// What an orchestration begins with.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) task: TaskId,
    pub(super) kind: Name,
    pub(super) payload: Bytes,
    pub(super) generation: u32,
}

/// A history that was read.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) events: Vec<HistoryEvent>,
    pub(super) bytes: u64,
}

/// Reads a history of at least so many events.
pub(super) async fn read_history(store: &dyn Store, task: TaskId, length: u64) -> Result<History> {
    let mut history = History::default();
    while (history.events.len() as u64) < length {
        let from = history.events.len() as u64;
        let chunks = store.instance_history(task, from, limits::HISTORY_CHUNKS).await?;
        if chunks.is_empty() {
            let text = format!("the history of orchestration {task} ends at event {from} of {length}");
            return Err(onward_store::Error::corrupt(text).into());
        }
        for chunk in &chunks {
            history.bytes += chunk.chunk.len() as u64;
            history.events.extend(decode_history(chunk)?);
        }
    }
    Ok(history)
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum Unplayable {
    /// The history could not be read.
    Unread(crate::error::Error),
    /// The code does something else.
    Nondeterminism(Box<Nondeterminism>),
}

impl Live {
    /// Whether it is as far as a history.
    pub(super) fn is_at(&self, generation: u32, length: u64) -> bool {
        self.generation == generation && self.machine.length() == length
    }

    /// Makes one from its history.
    pub(super) async fn replayed(store: &dyn Store, code: &Code, task: &ClaimedTask) -> Result<Self, Unplayable> {
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        let begun = Begun { task: task.lease.task, kind: task.kind.clone(), payload: task.payload.clone(), generation };
        let mut live = Self::new(store.info().payload_limit, code, begun);
        if length > 0 {
            let history = read_history(store, task.lease.task, length).await.map_err(Unplayable::Unread)?;
            live.replay(&history).map_err(Unplayable::Nondeterminism)?;
        }
        Ok(live)
    }

    /// One before its first event.
    pub(super) fn new(payload_limit: usize, code: &Code, begun: Begun) -> Self {
        let Begun { task, kind, payload, generation } = begun;
        let journal = Arc::new(Journal::new(task, kind, payload, generation, payload_limit));
        let machine = Machine::new(code, journal);
        Self { machine, generation, tasks: FxHashMap::default(), is_replayed: false, bytes: 0 }
    }

    /// Brings it to where a history ends.
    pub(super) fn replay(&mut self, history: &History) -> Result<(), Box<Nondeterminism>> {
        self.is_replayed = true;
        self.bytes = history.bytes;
        self.machine.replay(&history.events)
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
        if std::mem::take(&mut self.is_replayed) && !self.tasks.contains_key(&operation) {
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
