//! The table of tasks, and the orders in which writes search it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::orchestration::Instance;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::coverage::check::Coverage;
use crate::model::coverage::load_request::LoadRequest;
use crate::model::coverage::loaded::{Loaded, LoadedUpTo};
use crate::model::limits::running::{RunningCounts, RunningKey};
use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::{End, Task};
use crate::rules::order::SortKey;

/// Every task, live and ended, with its entries in the orders. [`change`](Self::change) keeps the
/// entries up to date.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskTable {
    pub(crate) coverage: Coverage,
    all: BTreeMap<TaskId, Arc<Task>>,
    waiting: BTreeSet<SortKey>,
    /// The waiting tasks that have an affinity key, by sub-queue.
    waiting_with_affinity: BTreeMap<SubQueue, BTreeSet<SortKey>>,
    scheduled: BTreeSet<(Timestamp, TaskId)>,
    /// Live tasks that do not run and have an expiry.
    expiring: BTreeSet<(Timestamp, TaskId)>,
    /// Blocked tasks that must be completed externally within a time.
    overdue: BTreeSet<(Timestamp, TaskId)>,
    held: BTreeSet<(SessionId, TaskId)>,
    /// The ended tasks without their own retention, in the order of their ends.
    ended: BTreeSet<(End, TaskId)>,
    /// The ended tasks with their own retention, by its end.
    retained: BTreeSet<(Timestamp, TaskId)>,
    running: RunningCounts,
}

impl TaskTable {
    /// Returns a task. A task that is not loaded is requested and counts as absent until then.
    pub(crate) fn get(&self, id: TaskId) -> Option<&Task> {
        let task = self.all.get(&id).map(Arc::as_ref);
        if task.is_none() {
            self.coverage.request_task(id);
        }
        task
    }

    /// Returns the number of loaded tasks.
    #[cfg(feature = "postgres")]
    pub(crate) fn loaded_count(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of loaded tasks that wait.
    pub(in crate::model) fn loaded_waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Requests a task and its dependents unless they are loaded.
    pub(in crate::model) fn require(&self, id: TaskId) {
        if self.coverage.loaded().is_some() && !self.all.contains_key(&id) {
            self.coverage.request_task(id);
        }
    }

    /// Requests the messages that the next turn of an orchestration consumes.
    pub(in crate::model) fn require_messages(&self, id: TaskId) {
        let instance = self.all.get(&id).and_then(|task| task.instance.as_deref());
        if instance.is_some_and(Instance::lacks_messages) {
            self.coverage.request_unless(|loaded| loaded.messages.contains(&id), || LoadRequest::Messages(id));
        }
    }

    /// Inserts a task and its entries in the orders.
    pub(in crate::model) fn insert(&mut self, task: Task) {
        self.insert_shared(Arc::new(task));
    }

    /// Inserts a task that other states share.
    pub(crate) fn insert_shared(&mut self, task: Arc<Task>) {
        let after = IndexEntries::of(&task);
        self.update_indexes(task.id, &IndexEntries::default(), &after);
        self.move_with_affinity(None, after.with_affinity(&task));
        self.all.insert(task.id, task);
    }

    /// Changes a task and updates its entry in every order.
    pub(crate) fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(task) = self.all.get_mut(&id) else {
            self.coverage.request_task(id);
            return;
        };
        let before = IndexEntries::of(task);
        let affinity_before = before.with_affinity(task);
        change(Arc::make_mut(task));
        let after = IndexEntries::of(task);
        let affinity_after = after.with_affinity(task);
        // Most changes leave most entries as they are.
        self.update_indexes(id, &before, &after);
        self.move_with_affinity(affinity_before, affinity_after);
    }

    /// Removes a task and its entries in the orders.
    pub(in crate::model) fn remove(&mut self, id: TaskId) -> Option<Arc<Task>> {
        let Some(task) = self.all.remove(&id) else {
            self.coverage.request_task(id);
            return None;
        };
        let before = IndexEntries::of(&task);
        self.update_indexes(id, &before, &IndexEntries::default());
        self.move_with_affinity(before.with_affinity(&task), None);
        Some(task)
    }

    /// Moves the entry of a waiting task that has an affinity key. It is kept by sub-queue, because
    /// each claim needs the first task of each sub-queue, and one key may have thousands of tasks.
    fn move_with_affinity(&mut self, before: Option<(SubQueue, SortKey)>, after: Option<(SubQueue, SortKey)>) {
        if before == after {
            return;
        }
        if let Some((sub_queue, sort_key)) = before
            && let Some(waiting) = self.waiting_with_affinity.get_mut(&sub_queue)
        {
            waiting.remove(&sort_key);
            if waiting.is_empty() {
                self.waiting_with_affinity.remove(&sub_queue);
            }
        }
        if let Some((sub_queue, sort_key)) = after {
            self.waiting_with_affinity.entry(sub_queue).or_default().insert(sort_key);
        }
    }

    /// Moves the changed entries of a task.
    fn update_indexes(&mut self, id: TaskId, before: &IndexEntries, after: &IndexEntries) {
        move_entry(&mut self.waiting, before.waiting, after.waiting);
        let with_id = |at: Option<Timestamp>| at.map(|at| (at, id));
        move_entry(&mut self.scheduled, with_id(before.scheduled), with_id(after.scheduled));
        move_entry(&mut self.expiring, with_id(before.expiring), with_id(after.expiring));
        move_entry(&mut self.overdue, with_id(before.overdue), with_id(after.overdue));
        let held = |orders: &IndexEntries| orders.held.map(|session| (session, id));
        move_entry(&mut self.held, held(before), held(after));
        let ended = |orders: &IndexEntries| orders.ended.map(|end| (end, id));
        move_entry(&mut self.ended, ended(before), ended(after));
        move_entry(&mut self.retained, with_id(before.retained), with_id(after.retained));
        if before.running != after.running {
            before.running.iter().for_each(|entry| self.running.remove(entry.key()));
            after.running.iter().for_each(|entry| self.running.add(entry.key(), 1));
        }
    }

    /// Returns a shared reference to a task.
    #[cfg(feature = "postgres")]
    pub(crate) fn share(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.all.get(&id)
    }

    /// Returns shared references to every task, by number.
    #[cfg(feature = "postgres")]
    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.all.values()
    }

    /// Returns every task, by number.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.all.values().map(Arc::as_ref)
    }

    /// Returns the tasks with numbers from `from` up to, but not including, `before`, by number.
    pub(in crate::model) fn between(&self, from: TaskId, before: TaskId) -> impl DoubleEndedIterator<Item = &Task> {
        self.coverage
            .request_unless(|loaded| loaded.between.contains(&(from, before)), || LoadRequest::IdRange(from, before));
        self.all.range(from..before.max(from)).map(|(_, task)| task.as_ref())
    }

    /// Returns the first task of each sub-queue of an affinity key.
    pub(in crate::model) fn firsts_with_affinity(&self) -> impl Iterator<Item = (&SubQueue, &Task)> {
        let first = |(sub_queue, waiting)| Some((sub_queue, self.first_of(waiting)?));
        self.waiting_with_affinity.iter().filter_map(first)
    }

    /// Returns the first task of a sub-queue of an affinity key.
    pub(in crate::model) fn first_with_affinity(&self, sub_queue: &SubQueue) -> Option<&Task> {
        self.first_of(self.waiting_with_affinity.get(sub_queue)?)
    }

    /// Returns the task with the smallest sort key of a set.
    fn first_of(&self, waiting: &BTreeSet<SortKey>) -> Option<&Task> {
        self.all.get(&waiting.first()?.task).map(Arc::as_ref)
    }

    /// Returns the first waiting task after `sort_key`; without one, the first of all.
    pub(in crate::model) fn waiting_behind(&self, sort_key: Option<SortKey>) -> Option<(SortKey, &Task)> {
        let start = sort_key.map_or(Bound::Unbounded, Bound::Excluded);
        let sort_key = *self.waiting.range((start, Bound::Unbounded)).next()?;
        Some((sort_key, self.get(sort_key.task)?))
    }

    /// Returns the scheduled tasks by due time.
    pub(in crate::model) fn scheduled(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.coverage.walk(&self.scheduled, |loaded| loaded.scheduled, || LoadRequest::Scheduled)
    }

    /// Returns the live tasks that are not running, by expiry.
    pub(in crate::model) fn expiring(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.coverage.walk(&self.expiring, |loaded| loaded.expiring, || LoadRequest::Expiring)
    }

    /// Returns the tasks that must be completed externally within a time, by the end of that time.
    pub(in crate::model) fn overdue(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.coverage.walk(&self.overdue, |loaded| loaded.overdue, || LoadRequest::Overdue)
    }

    /// Returns the tasks that a session holds, by number.
    pub(in crate::model) fn held_by(&self, session: SessionId) -> impl Iterator<Item = &Task> {
        self.coverage.request_unless(|loaded| loaded.held.contains(&session), || LoadRequest::HeldBy(session));
        self.loaded_held_by(session)
    }

    /// Returns the tasks that a session holds and whose cancellation was requested, by number.
    pub(in crate::model) fn to_cancel(&self, session: SessionId) -> impl Iterator<Item = &Task> {
        self.coverage
            .request_unless(|loaded| loaded.to_cancel.contains(&session), || LoadRequest::CancelRequested(session));
        self.loaded_held_by(session).filter(|task| task.cancel_requested)
    }

    /// Returns the number of tasks that a session holds.
    pub(in crate::model) fn held_count(&self, session: SessionId) -> u64 {
        self.loaded_held_by(session).count() as u64 + self.coverage.held_unloaded(session)
    }

    /// Returns whether a session holds any task.
    pub(in crate::model) fn holds_any(&self, session: SessionId) -> bool {
        self.loaded_held_by(session).next().is_some() || self.coverage.holds_unloaded(session)
    }

    /// Returns the loaded tasks that a session runs.
    fn loaded_held_by(&self, session: SessionId) -> impl Iterator<Item = &Task> {
        let (first, last) = ((session, TaskId(i64::MIN)), (session, TaskId(i64::MAX)));
        self.held.range(first..=last).filter_map(|(_, id)| self.get(*id))
    }

    /// Returns the ended tasks without their own retention, the oldest end first.
    pub(in crate::model) fn ended(&self) -> impl Iterator<Item = (End, TaskId)> {
        self.coverage.walk(&self.ended, |loaded| loaded.ended, || LoadRequest::Ended)
    }

    /// Returns the ended tasks with their own retention, by its end.
    pub(in crate::model) fn retained(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.coverage.walk(&self.retained, |loaded| loaded.retained, || LoadRequest::Retained)
    }

    /// Returns the number of ended tasks without their own retention.
    pub(super) fn ended_count(&self) -> u64 {
        self.coverage.request_unless(|loaded| loaded.ended_unloaded.is_some(), || LoadRequest::EndedCount);
        self.ended.len() as u64 + self.coverage.loaded().and_then(|loaded| loaded.ended_unloaded).unwrap_or_default()
    }

    /// Returns the children of a task, by number.
    pub(in crate::model) fn children_of(&self, parent: TaskId) -> impl Iterator<Item = &Task> {
        self.coverage.request_unless(
            |loaded| parent.0 > loaded.last_task || loaded.children.contains(&parent),
            || LoadRequest::Children(parent),
        );
        self.iter().filter(move |task| task.new.parent == Some(parent))
    }

    /// Returns the live children of a task, by number.
    pub(in crate::model) fn live_children_of(&self, parent: TaskId) -> impl Iterator<Item = &Task> {
        let has_all = |loaded: &Loaded| {
            parent.0 > loaded.last_task || loaded.children.contains(&parent) || loaded.live_children.contains(&parent)
        };
        self.coverage.request_unless(has_all, || LoadRequest::LiveChildren(parent));
        self.iter().filter(move |task| task.new.parent == Some(parent) && !task.state.is_ended())
    }

    /// Returns the number of running tasks of a scope.
    pub(in crate::model) fn running(&self, scope: &LimitScope) -> u64 {
        self.running.of(scope) + self.coverage.running_unloaded(scope)
    }

    /// Returns the number of running tasks of a scope; `None` if the counts are not loaded.
    pub(super) fn running_if_counted(&self, scope: &LimitScope) -> Option<u64> {
        Some(self.running.of(scope) + self.coverage.counted_unloaded_running(scope)?)
    }

    /// Returns the counts of the loaded tasks that run.
    #[cfg(feature = "postgres")]
    pub(crate) fn loaded_running(&self) -> &RunningCounts {
        &self.running
    }

    /// Returns the tasks of a queue in some states, by number.
    pub(in crate::model) fn queue_tasks<'a>(
        &'a self,
        queue: &'a Name,
        states: &'a [TaskState],
    ) -> impl Iterator<Item = TaskId> + 'a {
        let is_meant = move |task: &&Task| task.new.queue == *queue && states.contains(&task.state);
        let up_to = self.coverage.loaded().map_or(LoadedUpTo::Everything, |loaded| {
            loaded.queue_tasks.get(&(queue.clone(), states.to_vec())).copied().unwrap_or_default()
        });
        let numbers = self.iter().filter(is_meant).map(|task| task.id);
        self.coverage.walk_up_to(numbers, up_to, || LoadRequest::QueueTasks(queue.clone(), states.to_vec()))
    }

    /// Returns the number of live tasks of a queue.
    pub(in crate::model) fn live_in(&self, queue: &Name) -> u64 {
        self.coverage.request_unless(
            |loaded| loaded.live_unloaded.contains_key(queue),
            || LoadRequest::LiveCount(queue.clone()),
        );
        let unloaded = self.coverage.loaded().and_then(|loaded| loaded.live_unloaded.get(queue));
        let loaded_count = self.iter().filter(|task| task.new.queue == *queue && !task.state.is_ended()).count() as u64;
        loaded_count + unloaded.copied().unwrap_or_default()
    }

    /// Returns the sub-queues that are not fully loaded: the sort key up to which each is loaded,
    /// and a sample task.
    pub(in crate::model) fn partial_sub_queues(&self) -> impl Iterator<Item = (SortKey, &Task)> {
        self.coverage.partial_sub_queues().map(|(_, sort_key, task)| (sort_key, task))
    }

    /// Returns the sub-queues that are not fully loaded and may have a task before `end`.
    pub(in crate::model) fn partial_sub_queues_before(
        &self,
        end: Option<SortKey>,
    ) -> impl Iterator<Item = (SortKey, &Task)> {
        self.coverage.partial_sub_queues_before(end)
    }

    /// Returns at least one waiting task of each queue, kind and group that has any.
    pub(in crate::model) fn waiting_of_each_scope(&self) -> impl Iterator<Item = &Task> {
        let more = self.partial_sub_queues().map(|(_, task)| task);
        self.waiting.iter().filter_map(|sort_key| self.all.get(&sort_key.task)).map(Arc::as_ref).chain(more)
    }

    /// Requests more of the sub-queue of a task.
    pub(in crate::model) fn request_sub_queue_of(&self, task: &Task) {
        self.coverage.request(LoadRequest::SubQueue(SubQueue::of(task)));
    }

    /// Requests the tasks that wait before a waiting task in its sub-queue.
    pub(in crate::model) fn require_ahead_of(&self, task: &Task) {
        let sub_queue = SubQueue::of(task);
        if self.coverage.partial_sub_queues().any(|(one, sort_key, _)| *one == sub_queue && sort_key < task.sort_key())
        {
            self.request_sub_queue_of(task);
        }
    }

    /// Returns whether a loaded waiting task matches.
    pub(in crate::model) fn any_waiting(&self, is_of_sort: impl Fn(SortKey, &Task) -> bool) -> bool {
        self.waiting.iter().any(|sort_key| self.all.get(&sort_key.task).is_some_and(|task| is_of_sort(*sort_key, task)))
    }

    /// Requests at least one waiting task of each sub-queue.
    pub(in crate::model) fn require_every_sub_queue(&self) {
        let mut more: BTreeMap<_, _> = self
            .coverage
            .partial_sub_queues()
            .map(|(sub_queue, sort_key, task)| (sub_queue, (sort_key, task)))
            .collect();
        for task in self.waiting.iter().filter_map(|sort_key| self.all.get(&sort_key.task)) {
            // The first tasks of all sub-queues are mostly among the first of all tasks.
            if more.is_empty() {
                return;
            }
            if let Some((loaded_up_to, sample)) = more.remove(&SubQueue::of(task))
                && task.sort_key() > loaded_up_to
            {
                self.request_sub_queue_of(sample);
            }
        }
        more.values().for_each(|(_, sample)| self.request_sub_queue_of(sample));
    }
}

/// The entries of a task in the orders, except those by affinity key.
#[derive(Debug, Default)]
struct IndexEntries {
    waiting: Option<SortKey>,
    scheduled: Option<Timestamp>,
    expiring: Option<Timestamp>,
    overdue: Option<Timestamp>,
    held: Option<SessionId>,
    ended: Option<End>,
    retained: Option<Timestamp>,
    running: Option<Running>,
}

impl IndexEntries {
    /// Returns the entries that a task has in its present state.
    fn of(task: &Task) -> Self {
        let waiting = (task.state == TaskState::Waiting).then(|| task.sort_key());
        let may_expire = matches!(task.state, TaskState::Waiting | TaskState::Scheduled | TaskState::Blocked);
        Self {
            waiting,
            scheduled: (task.state == TaskState::Scheduled).then_some(task.run_at),
            expiring: task.expires_at.filter(|_| may_expire),
            overdue: task.completion_deadline(),
            held: task.session,
            ended: task.end.filter(|_| task.new.retention.is_none()),
            retained: task.retained_until(),
            running: (task.state == TaskState::Running).then(|| Running::of(task)),
        }
    }
}

impl IndexEntries {
    /// Returns the sub-queue and the sort key of a waiting task that has an affinity key.
    fn with_affinity(&self, task: &Task) -> Option<(SubQueue, SortKey)> {
        let sort_key = self.waiting.filter(|_| task.new.affinity.is_some())?;
        Some((SubQueue::of(task), sort_key))
    }
}

/// The scopes in which a running task is counted.
#[derive(Debug, PartialEq)]
struct Running {
    session: Option<SessionId>,
    queue: Name,
    kind: Name,
    group: Option<Name>,
}

impl Running {
    /// Returns the scopes of a running task.
    fn of(task: &Task) -> Self {
        let new = &task.new;
        let (queue, kind, group) = (new.queue.clone(), new.kind.clone(), new.group.clone());
        Self { session: task.session, queue, kind, group }
    }

    /// Returns the scopes as the counts know them.
    fn key(&self) -> RunningKey<'_> {
        RunningKey { session: self.session, queue: &self.queue, kind: &self.kind, group: self.group.as_ref() }
    }
}

/// Replaces an entry of one order.
fn move_entry<K: Ord + Copy>(order: &mut BTreeSet<K>, before: Option<K>, after: Option<K>) {
    if before == after {
        return;
    }
    if let Some(sort_key) = before {
        order.remove(&sort_key);
    }
    if let Some(sort_key) = after {
        order.insert(sort_key);
    }
}
