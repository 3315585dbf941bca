//! One orchestration in memory: its code where it stands, and which tasks it waits for.

use std::sync::Arc;

use onward_store::{ClaimedTask, Page, Store, TaskFilter, TaskId};
use rustc_hash::FxHashMap;

use super::history::decode_history;
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
        let payload_limit = store.info().payload_limit;
        let (id, kind, payload) = (task.lease.task, task.kind.clone(), task.payload.clone());
        let journal = Arc::new(Journal::new(id, kind, payload, generation, payload_limit));
        let machine = Machine::new(code, journal);
        let mut live = Self { machine, generation, tasks: FxHashMap::default(), is_replayed: length > 0 };
        if length > 0 {
            live.replay(store, id, length).await?;
        }
        Ok(live)
    }

    async fn replay(&mut self, store: &dyn Store, task: TaskId, length: u64) -> Result<(), Unplayable> {
        let mut events = Vec::new();
        while (events.len() as u64) < length {
            let from = events.len() as u64;
            let chunks = store.instance_history(task, from, limits::HISTORY_CHUNKS).await;
            let chunks = chunks.map_err(|error| Unplayable::Unread(error.into()))?;
            if chunks.is_empty() {
                let text = format!("the history of orchestration {task} ends at event {from} of {length}");
                return Err(Unplayable::Unread(onward_store::Error::corrupt(text).into()));
            }
            for chunk in &chunks {
                events.extend(decode_history(chunk).map_err(Unplayable::Unread)?);
            }
        }
        self.machine.replay(&events).map_err(Unplayable::Nondeterminism)
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
