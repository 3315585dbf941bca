//! The row cache: running tasks that a writer remembers, so that their ends need not load them
//! again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId};
use crate::bounds;
use crate::model::{LoadRequest, RunningCounts, State, Task};
use crate::number_map::NumberMap;
use crate::postgres::working_set::applied::Applied;
use crate::postgres::working_set::contents::WorkingSet;

/// Running tasks without relations, and the number of running tasks in the store.
///
/// A task without relations has no dependencies, dependents, batch, children or unread messages.
/// Each batch updates the cache with its changes. After another writer has committed, the cache is
/// unverified: the counts are dropped, and a task is used only if [no transaction has invalidated
/// it](Self::validity_of) or if [its row is unchanged](Self::written_by).
#[derive(Debug, Default)]
pub(crate) struct RowCache {
    tasks: NumberMap<TaskId, CachedTask>,
    /// The tasks with a unique key, by that key.
    keys: HashMap<(Name, String), TaskId>,
    /// The number of verified tasks by session.
    held: BTreeMap<SessionId, u64>,
    /// The number of running tasks in the store; `None` until a batch has needed it.
    running: Option<RunningCounts>,
    /// The number of times that other writers have committed between two batches.
    foreign_commits: u64,
}

/// A task in the cache.
#[derive(Debug)]
struct CachedTask {
    task: Arc<Task>,
    /// The writer's own transaction that wrote the row last; `None` if unknown.
    written_by: Option<i64>,
    /// The last invalidation that the writer knew of when the task was verified.
    invalidation: i64,
    /// The cache's `foreign_commits` when the task was verified. The task is verified while they
    /// are equal.
    foreign_commits: u64,
}

impl RowCache {
    /// Returns true if a request need not be loaded, provided that no other writer has committed
    /// since the last batch.
    pub(crate) fn covers(&self, request: &LoadRequest) -> bool {
        match request {
            LoadRequest::Task(id) => self.tasks.get(id).is_some_and(|cached| self.is_verified(cached)),
            LoadRequest::RunningCounts | LoadRequest::RunningSessions => self.running.is_some(),
            LoadRequest::CancelRequested(session) => self.has_all_tasks_of(*session),
            _ => false,
        }
    }

    /// Returns the own transaction that wrote a task's row last. If the row is still from that
    /// transaction, and the task still has no relations, the cached task is valid.
    pub(super) fn written_by(&self, id: TaskId) -> Option<i64> {
        self.tasks.get(&id)?.written_by
    }

    /// Returns the session in which a task runs, and the invalidation at which it was verified. The
    /// task is valid if the session is the writer's own and there was no invalidation since.
    pub(super) fn validity_of(&self, id: TaskId) -> Option<(SessionId, i64)> {
        let cached = self.tasks.get(&id)?;
        Some((cached.task.session?, cached.invalidation))
    }

    /// Returns true if no other writer has committed since the task was loaded or written.
    fn is_verified(&self, cached: &CachedTask) -> bool {
        cached.foreign_commits == self.foreign_commits
    }

    /// Records that another writer has committed since the last batch. No task is verified from
    /// then on.
    pub(in crate::postgres) fn others_committed(&mut self) {
        self.foreign_commits += 1;
        self.held.clear();
        self.running = None;
    }

    /// Returns true if the cache has every task that a session runs.
    fn has_all_tasks_of(&self, session: SessionId) -> bool {
        let Some(running) = &self.running else { return false };
        self.held.get(&session).copied().unwrap_or_default() == running.by(session)
    }

    /// Copies requested entries to a working set. The caller has checked that they are valid.
    pub(crate) fn copy_to(&self, requests: &BTreeSet<LoadRequest>, working_set: &mut WorkingSet) {
        for request in requests {
            match request {
                LoadRequest::Task(id) => {
                    self.tasks.get(id).into_iter().for_each(|cached| working_set.add_cached(Arc::clone(&cached.task)))
                }
                LoadRequest::RunningCounts | LoadRequest::RunningSessions => {
                    self.running.iter().for_each(|running| working_set.running_as_cached(running.clone()));
                }
                // A task with a requested cancellation is never cached, so the cached tasks of a
                // session show that there is none.
                LoadRequest::CancelRequested(_) => working_set.mark_loaded(request.clone()),
                _ => {}
            }
        }
        working_set.count_unloaded();
    }

    /// Applies the changes of a batch, which was written by `transaction`, if its number is known.
    /// `invalidation` is the last invalidation as of that transaction.
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
        // All tasks of the batch leave the cache. Those that still run and have no relations return
        // below.
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

    /// Drops unverified tasks if the cache is full. Their rows may never be requested again,
    /// because another node may have ended them.
    fn make_room(&mut self, tasks: usize) {
        let verified = self.held.values().sum::<u64>();
        if self.tasks.len().saturating_add(tasks) > bounds::KEPT_TASKS && verified < self.tasks.len() as u64 {
            let unverified = self.tasks.iter().filter(|(_, cached)| !self.is_verified(cached)).map(|(id, _)| *id);
            let unverified: Vec<TaskId> = unverified.collect();
            unverified.into_iter().for_each(|id| drop(self.forget(id)));
        }
    }

    /// Updates the counts by the difference that the batch made.
    fn count(&mut self, working_set: &WorkingSet, before: &State, after: &State) {
        let coverage = working_set.running_in_store().cloned().or_else(|| self.running.take());
        self.running = coverage.map(|mut running| {
            running.take_all(before.tasks.loaded_running());
            running.add_all(after.tasks.loaded_running());
            running
        });
    }

    /// Drops the tasks whose relations may have changed without a change of the task itself:
    /// dependents, batch items, key holders and parents.
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

    /// Removes a task and returns it.
    fn forget(&mut self, id: TaskId) -> Option<CachedTask> {
        let cached = self.tasks.remove(&id)?;
        // Another task may hold the key by now.
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

    /// Adds a running task, unless the cache is full.
    fn insert(&mut self, task: &Arc<Task>, written_by: Option<i64>, invalidation: i64) {
        let Some(session) = task.session else { return };
        if self.tasks.len() >= bounds::KEPT_TASKS {
            return;
        }
        self.keys.extend(key_of(task).map(|key| (key, task.id)));
        *self.held.entry(session).or_default() += 1;
        let mut task = Arc::clone(task);
        if task.instance.as_ref().is_some_and(|instance| !instance.chunks.is_empty()) {
            // The store has the appended chunks, as if the task had just been loaded.
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

/// Returns a task's unique key.
fn key_of(task: &Task) -> Option<(Name, String)> {
    task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()))
}

/// Returns true if a running task may be cached. It must have no relations, hold its own key, have
/// consumed all messages, not be asked to stop, and be small.
fn has_no_relations(state: &State, task: &Task) -> bool {
    let id = task.id;
    let (first, last) = ((id, TaskId(i64::MIN)), (id, TaskId(i64::MAX)));
    let is_related = state.dependencies.dependents.range(first..=last).next().is_some()
        || state.dependencies.open.range(first..=last).next().is_some()
        || state.batches.items.range(first..=last).next().is_some()
        || state.batches.batch_of.contains_key(&id);
    let has_own_key = key_of(task)
        .is_none_or(|key| state.keys.taken.get(&key).is_some_and(|taken| taken.by == id && taken.until.is_none()));
    // No child is certain only for a task that is new in this batch, or whose children were looked
    // up.
    let is_childless =
        state.tasks.coverage.loaded().is_some_and(|loaded| id.0 > loaded.last_task || loaded.children.contains(&id));
    !is_related
        && has_own_key
        && is_childless
        && !task.cancel_requested
        && task.instance.as_ref().is_none_or(|instance| instance.waiting() == 0)
        && bytes_of(task) <= bounds::KEPT_TASK_BYTES
}

/// Returns the size of the parts of a task that may be large.
fn bytes_of(task: &Task) -> usize {
    let bytes = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
    let shown = task.instance.as_ref().map_or(0, |instance| {
        let values = instance.values.iter().map(|(key, value)| key.len() + value.len());
        bytes(&instance.status) + values.sum::<usize>()
    });
    task.new.payload.len() + bytes(&task.checkpoint) + shown
}
