//! A part of a store, and what writes do to it.

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

/// What is loaded of a store, as it is there.
#[derive(Debug)]
pub(in crate::postgres) struct WorkingSet {
    pub(in crate::postgres) state: State,
    /// How many tasks run in the store.
    running: Option<RunningCounts>,
    /// How many have ended in the store that did not say how long they are kept, if somebody asked.
    ended: Option<u64>,
    /// How many live tasks queues have in the store.
    live: BTreeMap<Name, u64>,
    /// What was taken since somebody asked for that to be noted.
    recorded: Option<LoadedMeanwhile>,
}

/// What was loaded while writes were being decided.
#[derive(Debug, Default)]
pub(in crate::postgres) struct LoadedMeanwhile {
    pub(in crate::postgres) tasks: Vec<Arc<Task>>,
    /// Their keys.
    pub(in crate::postgres) keys: Vec<((Name, String), TakenKey)>,
    /// Whether there is more to it than tasks that have to do with nothing else: what was decided
    /// before may have looked for that.
    pub(in crate::postgres) is_related: bool,
}

impl WorkingSet {
    /// Of a store with these numbers, one queue of the latest day on which a task ended, and
    /// everything that is not a task.
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

    /// Takes a task, unless it is here already.
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
        relations.bundle.into_iter().for_each(|bundle| self.state.batches.adopt(TaskId(bundle), id));
        relations.members.iter().for_each(|member| self.state.batches.adopt(id, TaskId(*member)));
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

    fn take_key(&mut self, key: (Name, String), taken: TakenKey) {
        let is_loaded = self.state.tasks.coverage.loaded().is_some_and(|loaded| loaded.keys.contains(&key));
        if let Some(recorded) =
            self.recorded.as_mut().filter(|_| !is_loaded && !self.state.keys.taken.contains_key(&key))
        {
            recorded.keys.push((key.clone(), taken));
        }
        self.state.keys.taken.insert(key, taken);
    }

    /// Takes a task that runs, and that has nothing to do with others, unless it is here already.
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

    /// Notes from now on what is loaded.
    pub(crate) fn record_loads(&mut self) {
        self.recorded = Some(LoadedMeanwhile::default());
    }

    /// What was loaded since then.
    pub(super) fn take_loaded_meanwhile(&mut self) -> LoadedMeanwhile {
        self.recorded.take().unwrap_or_default()
    }

    /// Notes that more was loaded than tasks.
    fn record_relations(&mut self) {
        self.recorded.iter_mut().for_each(|recorded| recorded.is_related = true);
    }

    /// What is loaded, as it was.
    pub(in crate::postgres) fn state(&self) -> &State {
        &self.state
    }

    /// How many tasks ran in the store, if somebody asked.
    pub(in crate::postgres) fn running_in_store(&self) -> Option<&RunningCounts> {
        self.running.as_ref()
    }

    /// Takes the first messages that wait for an orchestration; `are_all` if there are no more.
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

    /// Takes a document that was looked for, there or not, how many its collection has, and the
    /// number of collections.
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

    pub(in crate::postgres) fn change_loaded(&mut self, change: impl FnOnce(&mut Loaded)) {
        if let Some(loaded) = self.state.tasks.coverage.loaded_mut() {
            change(loaded);
        }
    }

    /// Notes that tasks were looked for by their numbers, with these links of those that are gone.
    pub(in crate::postgres) fn looked_for(&mut self, ids: &[i64], waits: &[(i64, i64)], members: &[(i64, i64)]) {
        self.record_relations();
        waits.iter().for_each(|(on, dependent)| self.state.dependencies.add(TaskId(*on), TaskId(*dependent)));
        members.iter().for_each(|(member, bundle)| self.state.batches.adopt(TaskId(*bundle), TaskId(*member)));
        self.change_loaded(|loaded| loaded.tasks.extend(ids.iter().copied().map(TaskId)));
    }

    /// Notes that everything that a want asks for is here.
    pub(crate) fn mark_loaded(&mut self, request: LoadRequest) {
        self.change_loaded(|loaded| match request {
            LoadRequest::Key(kind, key) => drop(loaded.keys.insert((kind, key))),
            LoadRequest::Children(parent) => drop(loaded.children.insert(parent)),
            LoadRequest::HeldBy(session) => drop(loaded.held.insert(session)),
            LoadRequest::CancelRequested(session) => drop(loaded.to_cancel.insert(session)),
            LoadRequest::IdRange(from, before) => drop(loaded.between.insert((from, before))),
            _ => {}
        });
    }

    pub(crate) fn key(&mut self, row: KeyRow) -> Result<()> {
        self.record_relations();
        let key =
            String::from_utf8(row.key).map_err(|_| crate::Error::corrupt("a key is not text; restore a backup"))?;
        let taken = TakenKey { by: TaskId(row.task), until: row.until.map(Timestamp::from_microseconds) };
        self.state.keys.taken.insert((Name::new(row.kind)?, key), taken);
        Ok(())
    }

    /// Takes how many tasks run by session, queue, kind and group.
    pub(crate) fn running(&mut self, running: &RunningCountRows) {
        self.running = Some(counted(running));
    }

    /// Takes how many tasks run, as it was counted before.
    pub(in crate::postgres) fn running_as_cached(&mut self, running: RunningCounts) {
        self.running = Some(running);
    }

    /// Takes which sessions run any.
    pub(crate) fn running_sessions(&mut self, running_sessions: RunningSessions) {
        self.change_loaded(|loaded| loaded.running_sessions = Some(running_sessions));
    }

    pub(crate) fn live(&mut self, queue: Name, count: u64) {
        self.live.insert(queue, count);
    }

    /// Takes the first `limit` tasks of an order.
    pub(crate) fn order(&mut self, request: &LoadRequest, tasks: Vec<LoadedTask>, limit: usize) {
        let is_all = tasks.len() < limit;
        let last = tasks.into_iter().map(|task| self.task(task)).last();
        let last = last.filter(|_| !is_all).and_then(|last| self.state.tasks.share(last)).cloned();
        self.change_loaded(|loaded| match request {
            LoadRequest::Scheduled => loaded.scheduled = up_to(last, |task| Some((task.run_at, task.id))),
            LoadRequest::Expiring => loaded.expiring = up_to(last, |task| Some((task.expires_at?, task.id))),
            LoadRequest::Overdue => loaded.overdue = up_to(last, |task| Some((task.must_be_finished_by()?, task.id))),
            LoadRequest::Ended => loaded.ended = up_to(last, |task| Some((task.end?, task.id))),
            LoadRequest::Retained => loaded.retained = up_to(last, |task| Some((task.retained_until()?, task.id))),
            LoadRequest::QueueTasks(queue, states) => {
                let up_to = up_to(last, |task| Some(task.id));
                loaded.queue_tasks.insert((queue.clone(), states.clone()), up_to);
            }
            _ => {}
        });
    }

    pub(crate) fn ended(&mut self, count: u64) {
        self.ended = Some(count);
    }

    /// Works out what of the counts is not loaded, after everything of a round was taken.
    pub(crate) fn settle(&mut self) {
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

fn counted(running: &RunningCountRows) -> RunningCounts {
    let mut counts = RunningCounts::default();
    for ((session, queue, kind, group), count) in running {
        counts.add(RunningKey { session: Some(*session), queue, kind, group: group.as_ref() }, *count);
    }
    counts
}

fn up_to<K>(last: Option<Arc<Task>>, sort_key: impl FnOnce(&Task) -> Option<K>) -> LoadedUpTo<K> {
    last.and_then(|last| sort_key(&last)).map_or(LoadedUpTo::Everything, LoadedUpTo::Key)
}
