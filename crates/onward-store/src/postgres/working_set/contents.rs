//! The contents of a working set, and how loaded rows are added.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::store::EndedCounts;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::model::{
    Coverage, Document, DocumentId, LoadRequest, Loaded, LoadedUpTo, RunningCountRows, RunningCounts, RunningKey,
    RunningSessions, State, TakenKey, Task,
};
use crate::postgres::working_set::change_set::KeyRow;
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::small_state::SmallState;
use crate::postgres::working_set::task_row::{LoadedTask, Relations, set_messages};

/// The loaded part of a store, as it was when it was loaded.
///
/// Writes do not change it: a [decision](crate::postgres::working_set::decision) works on a copy,
/// so that it can begin again after more was loaded.
#[derive(Debug)]
pub(in crate::postgres) struct WorkingSet {
    /// The loaded tasks, the small state, and the coverage.
    pub(in crate::postgres) state: State,
    /// The number of running tasks in the store, if it was requested.
    running: Option<RunningCounts>,
    /// The number of ended tasks without a retention of their own in the store, if it was
    /// requested.
    ended: Option<u64>,
    /// The number of live tasks in the store, by queue, as far as requested.
    live: BTreeMap<Name, u64>,
    /// The rows added since [`Self::record_loads`].
    recorded: Option<LoadedMeanwhile>,
}

/// The rows that were added while writes were being decided.
#[derive(Debug, Default)]
pub(in crate::postgres) struct LoadedMeanwhile {
    /// Tasks.
    pub(in crate::postgres) tasks: Vec<Arc<Task>>,
    /// Their unique keys.
    pub(in crate::postgres) keys: Vec<((Name, String), TakenKey)>,
    /// True if rows were added other than tasks without relations. An earlier write may have
    /// searched for these and not found them.
    pub(in crate::postgres) is_related: bool,
}

impl WorkingSet {
    /// Creates a working set of a store with these counters, the latest day with one of its queues,
    /// and the small state.
    pub(crate) fn new(
        counters: Counters,
        latest: Option<(i64, String)>,
        payload_limit: usize,
        items: SmallState,
    ) -> Result<Self> {
        let loaded = Loaded { last_task: counters.last_task, ..Loaded::default() };
        let mut state = State {
            payload_limit,
            last_task: counters.last_task,
            last_session: counters.last_session,
            ends: counters.ends.cast_unsigned(),
            entry: counters.last_entry + 1,
            ..items.into_state()
        };
        state.tasks.coverage = Coverage::of(loaded);
        if let Some((day, queue)) = latest {
            state.daily_counts.days.insert((day, Name::new(queue)?), EndedCounts::default());
        }
        Ok(Self { state, running: None, ended: None, live: BTreeMap::new(), recorded: None })
    }

    /// Sets the count of [`Hint::work`](crate::Hint::work) before the decision, for which claims
    /// account. Everything that was hinted by then must be visible to the decision.
    pub(in crate::postgres) fn with_work_before(mut self, work: u64) -> Self {
        self.state.hint.work = work;
        self
    }

    /// Adds a task with its relations, unless it is loaded.
    pub(crate) fn task(&mut self, LoadedTask { task, relations }: LoadedTask) -> TaskId {
        let id = task.id;
        if self.state.tasks.share(id).is_some() {
            return id;
        }
        let relations = relations.map_or_else(Relations::default, |relations| *relations);
        if let Some(recorded) = &mut self.recorded {
            recorded.tasks.push(Arc::clone(&task));
            recorded.is_related |= relations.is_related();
        }
        if let (Some(unique), Some((by, until))) = (&task.new.unique, relations.key) {
            let until = until.map(Timestamp::from_microseconds);
            self.take_key((task.new.kind.clone(), unique.key.clone()), TakenKey { by: TaskId(by), until });
        }
        let key = task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()));
        relations.waits_for.iter().for_each(|on| self.state.dependencies.add(TaskId(*on), id));
        relations.dependents.iter().for_each(|dependent| self.state.dependencies.add(id, TaskId(*dependent)));
        relations.batch.into_iter().for_each(|batch| self.state.batches.adopt(TaskId(batch), id));
        relations.batch_items.iter().for_each(|item| self.state.batches.adopt(id, TaskId(*item)));
        self.state.tasks.insert_shared(task);
        self.change_loaded(|loaded| {
            loaded.tasks.insert(id);
            loaded.keys.extend(key);
            if !relations.has_children {
                loaded.children.insert(id);
            }
        });
        id
    }

    /// Adds the holder of a unique key, and records it if the key was not known before.
    fn take_key(&mut self, key: (Name, String), taken: TakenKey) {
        let is_loaded = self.state.tasks.coverage.loaded().is_some_and(|loaded| loaded.keys.contains(&key));
        if let Some(recorded) =
            self.recorded.as_mut().filter(|_| !is_loaded && !self.state.keys.taken.contains_key(&key))
        {
            recorded.keys.push((key.clone(), taken));
        }
        self.state.keys.taken.insert(key, taken);
    }

    /// Adds a running task without relations from the row cache, unless it is loaded.
    pub(in crate::postgres) fn add_cached(&mut self, task: Arc<Task>) {
        let id = task.id;
        if self.state.tasks.share(id).is_some() {
            return;
        }
        let key = task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()));
        key.iter().for_each(|key| self.take_key(key.clone(), TakenKey { by: id, until: None }));
        if let Some(recorded) = &mut self.recorded {
            recorded.tasks.push(Arc::clone(&task));
        }
        self.state.tasks.insert_shared(task);
        self.change_loaded(|loaded| {
            loaded.tasks.insert(id);
            loaded.children.insert(id);
            loaded.keys.extend(key);
        });
    }

    /// Records from now on which rows are added.
    pub(crate) fn record_loads(&mut self) {
        self.recorded = Some(LoadedMeanwhile::default());
    }

    /// Returns the rows that were added since recording began, and stops recording.
    pub(super) fn take_loaded_meanwhile(&mut self) -> LoadedMeanwhile {
        self.recorded.take().unwrap_or_default()
    }

    /// Records that other rows than tasks were added.
    fn record_relations(&mut self) {
        self.recorded.iter_mut().for_each(|recorded| recorded.is_related = true);
    }

    /// Returns the loaded state, before any write.
    pub(in crate::postgres) fn state(&self) -> &State {
        &self.state
    }

    /// Returns the number of running tasks in the store, if it was requested.
    pub(in crate::postgres) fn running_in_store(&self) -> Option<&RunningCounts> {
        self.running.as_ref()
    }

    /// Adds the first unread messages of an orchestration; `are_all` is true if there are no more.
    pub(crate) fn messages(&mut self, id: TaskId, messages: &[Vec<u8>], are_all: bool) -> Result<()> {
        let mut outcome = Ok(());
        self.record_relations();
        self.state.tasks.change(id, |task| outcome = set_messages(task, messages));
        if are_all {
            self.change_loaded(|loaded| {
                loaded.messages.insert(id);
            });
        }
        outcome
    }

    /// Adds a document that was looked up, existing or not, with the number of documents in its
    /// collection and the number of collections.
    pub(crate) fn document(&mut self, (id, document): (DocumentId, Option<Document>), size: u64, collections: u64) {
        self.record_relations();
        let table = self.state.documents.table_mut();
        table.collections = collections;
        if size > 0 {
            table.sizes.insert(id.0.clone(), size);
        }
        table.by_id.extend(document.map(|document| (id.clone(), Arc::new(document))));
        self.change_loaded(|loaded| {
            loaded.documents.insert(id);
        });
    }

    /// Changes the record of what is loaded.
    pub(in crate::postgres) fn change_loaded(&mut self, change: impl FnOnce(&mut Loaded)) {
        if let Some(loaded) = self.state.tasks.coverage.loaded_mut() {
            change(loaded);
        }
    }

    /// Records that tasks were looked up by number, and adds the relations that name tasks that no
    /// longer exist.
    pub(in crate::postgres) fn looked_for(&mut self, ids: &[i64], waits: &[(i64, i64)], batch_items: &[(i64, i64)]) {
        self.record_relations();
        waits.iter().for_each(|(on, dependent)| self.state.dependencies.add(TaskId(*on), TaskId(*dependent)));
        batch_items.iter().for_each(|(item, batch)| self.state.batches.adopt(TaskId(*batch), TaskId(*item)));
        self.change_loaded(|loaded| loaded.tasks.extend(ids.iter().copied().map(TaskId)));
    }

    /// Records that all rows of a request are loaded.
    pub(crate) fn mark_loaded(&mut self, request: LoadRequest) {
        self.change_loaded(|loaded| match request {
            LoadRequest::Key(kind, key) => drop(loaded.keys.insert((kind, key))),
            LoadRequest::Children(parent) => drop(loaded.children.insert(parent)),
            LoadRequest::LiveChildren(parent) => drop(loaded.live_children.insert(parent)),
            LoadRequest::HeldBy(session) => drop(loaded.held.insert(session)),
            LoadRequest::CancelRequested(session) => drop(loaded.to_cancel.insert(session)),
            LoadRequest::IdRange(from, before) => drop(loaded.between.insert((from, before))),
            _ => {}
        });
    }

    /// Adds the holder of a unique key.
    pub(crate) fn key(&mut self, row: KeyRow) -> Result<()> {
        self.record_relations();
        let key =
            String::from_utf8(row.key).map_err(|_| crate::Error::corrupt("a key is not text; restore a backup"))?;
        let taken = TakenKey { by: TaskId(row.task), until: row.until.map(Timestamp::from_microseconds) };
        self.state.keys.taken.insert((Name::new(row.kind)?, key), taken);
        Ok(())
    }

    /// Adds the numbers of running tasks by session, queue, kind and group.
    pub(crate) fn running(&mut self, running: &RunningCountRows) {
        self.running = Some(counted(running));
    }

    /// Adds the numbers of running tasks from the row cache.
    pub(in crate::postgres) fn running_as_cached(&mut self, running: RunningCounts) {
        self.running = Some(running);
    }

    /// Adds the sessions that run tasks.
    pub(crate) fn running_sessions(&mut self, running_sessions: RunningSessions) {
        self.change_loaded(|loaded| loaded.running_sessions = Some(running_sessions));
    }

    /// Adds the number of live tasks of a queue.
    pub(crate) fn live(&mut self, queue: Name, count: u64) {
        self.live.insert(queue, count);
    }

    /// Adds the first `limit` tasks of an order. With fewer tasks than that, the order is loaded
    /// completely.
    pub(crate) fn order(&mut self, request: &LoadRequest, tasks: Vec<LoadedTask>, limit: usize) {
        let is_all = tasks.len() < limit;
        let last = tasks.into_iter().map(|task| self.task(task)).last();
        let last = last.filter(|_| !is_all).and_then(|last| self.state.tasks.share(last)).cloned();
        self.change_loaded(|loaded| match request {
            LoadRequest::Scheduled => loaded.scheduled = up_to(last, |task| Some((task.run_at, task.id))),
            LoadRequest::Expiring => loaded.expiring = up_to(last, |task| Some((task.expires_at?, task.id))),
            LoadRequest::Overdue => loaded.overdue = up_to(last, |task| Some((task.completion_deadline()?, task.id))),
            LoadRequest::Ended => loaded.ended = up_to(last, |task| Some((task.end?, task.id))),
            LoadRequest::Retained => loaded.retained = up_to(last, |task| Some((task.retained_until()?, task.id))),
            LoadRequest::QueueTasks(queue, states) => {
                let up_to = up_to(last, |task| Some(task.id));
                loaded.queue_tasks.insert((queue.clone(), states.clone()), up_to);
            }
            _ => {}
        });
    }

    /// Adds the number of ended tasks without a retention of their own.
    pub(crate) fn ended(&mut self, count: u64) {
        self.ended = Some(count);
    }

    /// Computes how much of each count is not loaded. Called after all rows of a round were added.
    pub(crate) fn count_unloaded(&mut self) {
        let running = self.running.clone().map(|mut running| {
            running.take_all(self.state.tasks.loaded_running());
            running
        });
        let count =
            |is_counted: &dyn Fn(&Task) -> bool| self.state.tasks.iter().filter(|task| is_counted(task)).count() as u64;
        let is_of_ended = |task: &Task| task.state.is_ended() && task.new.retention.is_none();
        let ended = self.ended.map(|ended| ended.saturating_sub(count(&is_of_ended)));
        let live = self.live.iter().map(|(queue, live)| {
            let loaded_count = count(&|task| task.new.queue == *queue && !task.state.is_ended());
            (queue.clone(), live.saturating_sub(loaded_count))
        });
        let live = live.collect();
        let sessions: Vec<_> = self.state.sessions.keys().copied().collect();
        self.change_loaded(|loaded| {
            if let Some(running) = &running {
                let is_here = |id: &crate::api::task::SessionId| running.by(*id) == 0;
                loaded.held.extend(sessions.into_iter().filter(is_here));
            }
            loaded.running = running;
            (loaded.ended_unloaded, loaded.live_unloaded) = (ended, live);
        });
    }
}

/// Sums up the rows of a count.
fn counted(running: &RunningCountRows) -> RunningCounts {
    let mut counts = RunningCounts::default();
    for ((session, queue, kind, group), count) in running {
        counts.add(RunningKey { session: Some(*session), queue, kind, group: group.as_ref() }, *count);
    }
    counts
}

/// Returns the end of the loaded part of an order: everything, or the sort key of the last task.
fn up_to<K>(last: Option<Arc<Task>>, sort_key: impl FnOnce(&Task) -> Option<K>) -> LoadedUpTo<K> {
    last.and_then(|last| sort_key(&last)).map_or(LoadedUpTo::Everything, LoadedUpTo::Key)
}
