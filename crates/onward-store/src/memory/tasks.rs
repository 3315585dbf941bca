//! The tasks, and the orders in which writes look for them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::task::{End, Task};
use crate::rules::order::Place;
use crate::task::{SessionId, TaskId, TaskState};
use crate::timestamp::Timestamp;

/// Every task, live and ended. The orders follow from the tasks alone; [`change`](Self::change) keeps them so.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    all: BTreeMap<TaskId, Arc<Task>>,
    waiting: BTreeSet<Place>,
    scheduled: BTreeSet<(Timestamp, TaskId)>,
    /// Live tasks that are not running and have a time to live.
    expiring: BTreeSet<(Timestamp, TaskId)>,
    /// Blocked tasks that must be finished from elsewhere within a time.
    overdue: BTreeSet<(Timestamp, TaskId)>,
    held: BTreeSet<(SessionId, TaskId)>,
    /// By the order in which they ended.
    ended: BTreeSet<(End, TaskId)>,
}

impl Tasks {
    pub(super) fn get(&self, id: TaskId) -> Option<&Task> {
        self.all.get(&id).map(Arc::as_ref)
    }

    pub(super) fn insert(&mut self, task: Task) {
        self.index(&task);
        self.all.insert(task.id, Arc::new(task));
    }

    /// Changes a task, and finds it a new place in every order.
    pub(super) fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(mut task) = self.remove(id) else { return };
        change(Arc::make_mut(&mut task));
        self.index(&task);
        self.all.insert(id, task);
    }

    pub(super) fn remove(&mut self, id: TaskId) -> Option<Arc<Task>> {
        let task = self.all.remove(&id)?;
        self.waiting.remove(&task.place());
        self.scheduled.remove(&(task.run_at, id));
        task.expires_at.map(|at| self.expiring.remove(&(at, id)));
        task.must_be_finished_by().map(|at| self.overdue.remove(&(at, id)));
        task.session.map(|session| self.held.remove(&(session, id)));
        task.end.map(|end| self.ended.remove(&(end, id)));
        Some(task)
    }

    fn index(&mut self, task: &Task) {
        let id = task.id;
        match task.state {
            TaskState::Waiting => self.waiting.insert(task.place()),
            TaskState::Scheduled => self.scheduled.insert((task.run_at, id)),
            _ => false,
        };
        if matches!(task.state, TaskState::Waiting | TaskState::Scheduled | TaskState::Blocked) {
            task.expires_at.map(|at| self.expiring.insert((at, id)));
        }
        task.must_be_finished_by().map(|at| self.overdue.insert((at, id)));
        task.session.map(|session| self.held.insert((session, id)));
        task.end.map(|end| self.ended.insert((end, id)));
    }

    /// Every task, by number.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.all.values().map(Arc::as_ref)
    }

    /// Tasks with numbers from `from` up to, but not including, `before`, by number.
    pub(super) fn between(&self, from: TaskId, before: TaskId) -> impl DoubleEndedIterator<Item = &Task> {
        self.all.range(from..before.max(from)).map(|(_, task)| task.as_ref())
    }

    /// The first waiting task behind `place`, or the very first.
    pub(super) fn waiting_behind(&self, place: Option<Place>) -> Option<(Place, &Task)> {
        let start = place.map_or(Bound::Unbounded, Bound::Excluded);
        let place = *self.waiting.range((start, Bound::Unbounded)).next()?;
        Some((place, self.get(place.task)?))
    }

    /// Scheduled tasks by when they are due.
    pub(super) fn scheduled(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.scheduled.iter().copied()
    }

    /// Live tasks that are not running, by when they expire.
    pub(super) fn expiring(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.expiring.iter().copied()
    }

    /// Tasks that must be finished from elsewhere within a time, by when that is over.
    pub(super) fn overdue(&self) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.overdue.iter().copied()
    }

    /// What a session holds, by number.
    pub(super) fn held_by(&self, session: SessionId) -> impl Iterator<Item = &Task> {
        let (first, last) = ((session, TaskId(i64::MIN)), (session, TaskId(i64::MAX)));
        self.held.range(first..=last).filter_map(|(_, id)| self.get(*id))
    }

    /// Ended tasks, the oldest end first.
    pub(super) fn ended(&self) -> impl ExactSizeIterator<Item = (End, TaskId)> {
        self.ended.iter().copied()
    }
}
