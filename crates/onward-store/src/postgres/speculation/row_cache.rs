//! What a writer keeps of the tasks that run, so that what finishes them need not be loaded again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId};
use crate::bounds;
use crate::model::{LoadRequest, RunningCounts, State, Task};
use crate::number_map::NumberMap;
use crate::postgres::working_set::applied::Applied;
use crate::postgres::working_set::contents::WorkingSet;

/// Tasks that run and have nothing to do with others: nobody waits for them, they wait for nobody,
/// are in no bundle, have no children, and no message waits for them; and how many run in all. It
/// is brought up to date with what each batch changes. Once somebody else has written, nothing of
/// it is sure: how many run is forgotten, and tasks are what they were if [nobody has
/// interfered](Self::validity_of), or if [their rows are](Self::written_by).
#[derive(Debug, Default)]
pub(crate) struct RowCache {
    tasks: NumberMap<TaskId, CachedTask>,
    /// Those of them that have a key, by that.
    keys: HashMap<(Name, String), TaskId>,
    /// How many each session runs of those that are sure.
    held: BTreeMap<SessionId, u64>,
    /// How many tasks run in the store, as far as anybody has asked.
    running: Option<RunningCounts>,
    /// How often others have written between two batches.
    foreign_commits: u64,
}

#[derive(Debug)]
struct CachedTask {
    task: Arc<Task>,
    /// The transaction of this writer that has written its row last; `None` if that is not known.
    written_by: Option<i64>,
    /// The last interference that the writer had heard of when it was sure.
    invalidation: i64,
    /// It is sure as long as there are no more interruptions than these.
    foreign_commits: u64,
}

impl RowCache {
    /// Whether what is wanted need not be loaded, if nobody else has written since the last batch.
    pub(crate) fn covers(&self, request: &LoadRequest) -> bool {
        match request {
            LoadRequest::Task(id) => self.tasks.get(id).is_some_and(|cached| self.is_verified(cached)),
            LoadRequest::RunningCounts | LoadRequest::RunningSessions => self.running.is_some(),
            LoadRequest::CancelRequested(session) => self.has_all_tasks_of(*session),
            _ => false,
        }
    }

    /// Which transaction has written the row of a task last, if that is all that need be known of
    /// the row: where it is so still, and the task has nothing to do with others still, nothing of
    /// it need be loaded.
    pub(super) fn written_by(&self, id: TaskId) -> Option<i64> {
        self.tasks.get(&id)?.written_by
    }

    /// In which session a task runs, and with which interference it was sure: it is so still if the
    /// session is the writer's and there has been none since.
    pub(super) fn validity_of(&self, id: TaskId) -> Option<(SessionId, i64)> {
        let cached = self.tasks.get(&id)?;
        Some((cached.task.session?, cached.invalidation))
    }

    fn is_verified(&self, cached: &CachedTask) -> bool {
        cached.foreign_commits == self.foreign_commits
    }

    /// Somebody else has written since the last batch.
    pub(in crate::postgres) fn others_committed(&mut self) {
        self.foreign_commits += 1;
        self.held.clear();
        self.running = None;
    }

    /// Whether everything that a session runs is here.
    fn has_all_tasks_of(&self, session: SessionId) -> bool {
        let Some(running) = &self.running else { return false };
        self.held.get(&session).copied().unwrap_or_default() == running.by(session)
    }

    /// Gives what is wanted and here, and is known to be so still, to a part of the store.
    pub(crate) fn copy_to(&self, requests: &BTreeSet<LoadRequest>, working_set: &mut WorkingSet) {
        for request in requests {
            match request {
                LoadRequest::Task(id) => {
                    self.tasks.get(id).into_iter().for_each(|cached| working_set.add_cached(Arc::clone(&cached.task)))
                }
                LoadRequest::RunningCounts | LoadRequest::RunningSessions => {
                    self.running.iter().for_each(|running| working_set.running_as_cached(running.clone()));
                }
                // Who is to stop is not kept.
                LoadRequest::CancelRequested(_) => working_set.mark_loaded(request.clone()),
                _ => {}
            }
        }
        working_set.settle();
    }

    /// Follows what a batch has changed in a transaction, if its number is known, with this last
    /// interference.
    pub(crate) fn update(
        &mut self,
        working_set: &WorkingSet,
        applied: &Applied,
        transaction: Option<i64>,
        invalidation: i64,
    ) {
        let (before, after) = (working_set.state(), applied.after());
        self.count(working_set, before, after);
        let mut written_before: NumberMap<TaskId, i64> = NumberMap::default();
        for task in before.tasks.shared().chain(after.tasks.shared()) {
            written_before.extend(self.forget(task.id).and_then(|cached| Some((task.id, cached.written_by?))));
        }
        self.forget_related(before, after);
        self.make_room(after.tasks.loaded_count());
        let parents: BTreeSet<TaskId> = after.tasks.iter().filter_map(|task| task.new.parent).collect();
        for task in after.tasks.shared().filter(|task| task.session.is_some()) {
            let is_as_before = before.tasks.share(task.id).is_some_and(|old| Arc::ptr_eq(old, task));
            let written_by = if is_as_before { written_before.get(&task.id).copied() } else { transaction };
            if !parents.contains(&task.id) && has_no_relations(after, task) {
                self.insert(task, written_by, invalidation);
            }
        }
    }

    /// What is not sure makes room: nobody may ever ask for it, for others may have ended it.
    fn make_room(&mut self, tasks: usize) {
        let verified = self.held.values().sum::<u64>();
        if self.tasks.len().saturating_add(tasks) > bounds::KEPT_TASKS && verified < self.tasks.len() as u64 {
            let unverified = self.tasks.iter().filter(|(_, cached)| !self.is_verified(cached)).map(|(id, _)| *id);
            let unverified: Vec<TaskId> = unverified.collect();
            unverified.into_iter().for_each(|id| drop(self.forget(id)));
        }
    }

    fn count(&mut self, working_set: &WorkingSet, before: &State, after: &State) {
        let coverage = working_set.running_in_store().cloned().or_else(|| self.running.take());
        self.running = coverage.map(|mut running| {
            running.take_all(before.tasks.loaded_running());
            running.add_all(after.tasks.loaded_running());
            running
        });
    }

    /// Who waits for a task, or is a member of one, may change where the task itself is not looked
    /// at.
    fn forget_related(&mut self, before: &State, after: &State) {
        for state in [before, after] {
            for (one, other) in state.dependencies.dependents.iter().chain(&state.batches.items) {
                self.forget(*one);
                self.forget(*other);
            }
            for key in state.keys.taken.keys() {
                self.keys.get(key).copied().into_iter().for_each(|id| drop(self.forget(id)));
            }
        }
        for parent in after.tasks.iter().filter_map(|task| task.new.parent) {
            self.forget(parent);
        }
    }

    fn forget(&mut self, id: TaskId) -> Option<CachedTask> {
        let cached = self.tasks.remove(&id)?;
        // Another may have got the key since.
        if let Some(key) = key_of(&cached.task).filter(|key| self.keys.get(key) == Some(&id)) {
            self.keys.remove(&key);
        }
        let is_verified = self.is_verified(&cached);
        if let Some(count) = cached.task.session.filter(|_| is_verified).and_then(|session| self.held.get_mut(&session))
        {
            *count = count.saturating_sub(1);
        }
        Some(cached)
    }

    fn insert(&mut self, task: &Arc<Task>, written_by: Option<i64>, invalidation: i64) {
        let Some(session) = task.session else { return };
        if self.tasks.len() >= bounds::KEPT_TASKS {
            return;
        }
        self.keys.extend(key_of(task).map(|key| (key, task.id)));
        *self.held.entry(session).or_default() += 1;
        let mut task = Arc::clone(task);
        if task.instance.as_ref().is_some_and(|instance| !instance.chunks.is_empty()) {
            // What was appended is in the store, as if this had been loaded.
            let instance = Arc::make_mut(&mut task).instance.as_mut();
            instance.into_iter().for_each(|instance| Arc::make_mut(instance).chunks.clear());
        }
        if task.output.as_ref().is_some_and(|output| !output.pieces.is_empty()) {
            let output = Arc::make_mut(&mut task).output.as_mut();
            output.into_iter().for_each(|output| Arc::make_mut(output).pieces.clear());
        }
        self.tasks
            .insert(task.id, CachedTask { task, written_by, invalidation, foreign_commits: self.foreign_commits });
    }
}

fn key_of(task: &Task) -> Option<(Name, String)> {
    task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()))
}

/// Whether a task that runs has nothing to do with others, has its key itself, has taken in all
/// that came for it, is not to stop, and is small.
fn has_no_relations(state: &State, task: &Task) -> bool {
    let id = task.id;
    let (first, last) = ((id, TaskId(i64::MIN)), (id, TaskId(i64::MAX)));
    let is_related = state.dependencies.dependents.range(first..=last).next().is_some()
        || state.dependencies.open.range(first..=last).next().is_some()
        || state.batches.items.range(first..=last).next().is_some()
        || state.batches.batch_of.contains_key(&id);
    let has_own_key = key_of(task)
        .is_none_or(|key| state.keys.taken.get(&key).is_some_and(|taken| taken.by == id && taken.until.is_none()));
    let is_childless =
        state.tasks.coverage.loaded().is_some_and(|loaded| id.0 > loaded.last_task || loaded.children.contains(&id));
    !is_related
        && has_own_key
        && is_childless
        && !task.cancel_requested
        && task.instance.as_ref().is_none_or(|instance| instance.waiting() == 0)
        && bytes_of(task) <= bounds::KEPT_TASK_BYTES
}

/// What of a task may be large.
fn bytes_of(task: &Task) -> usize {
    let bytes = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
    let shown = task.instance.as_ref().map_or(0, |instance| {
        let values = instance.values.iter().map(|(key, value)| key.len() + value.len());
        bytes(&instance.status) + values.sum::<usize>()
    });
    task.new.payload.len() + bytes(&task.memo) + shown
}
