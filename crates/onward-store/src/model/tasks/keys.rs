//! Unique keys and the tasks that have them.

use std::collections::BTreeMap;

use crate::api::name::Name;
use crate::api::task::{NewTask, Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::tasks::task::Task;
use crate::rules;
use crate::rules::duplicate::KeyHolder;

/// The keys by kind. A key is taken by an active task, or retained after the end of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct UniqueKeys {
    pub(crate) taken: BTreeMap<(Name, String), TakenKey>,
}

/// The task that has a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TakenKey {
    pub(crate) by: TaskId,
    /// The time until which the key is retained after the end of its task.
    pub(crate) until: Option<Timestamp>,
}

impl UniqueKeys {
    /// Takes a task's key, if it has one, from the task that had it.
    pub(in crate::model) fn take(&mut self, by: TaskId, new: &NewTask) {
        if let Some(key) = key_of(new) {
            self.taken.insert(key, TakenKey { by, until: None });
        }
    }

    /// Frees the key of a task, unless another task has taken it.
    pub(in crate::model) fn free(&mut self, by: TaskId, new: &NewTask) {
        if let Some(key) = key_of(new)
            && self.taken.get(&key).is_some_and(|taken| taken.by == by)
        {
            self.taken.remove(&key);
        }
    }

    /// Retains or frees the key of an ended task, unless another task has taken it.
    pub(super) fn keep_or_free(&mut self, by: TaskId, new: &NewTask, finished_at: Timestamp) {
        let keep_for = new.unique.as_ref().map(|unique| unique.keep_for).unwrap_or_default();
        match rules::key::kept_until(keep_for, finished_at) {
            None => self.free(by, new),
            until => {
                let taken = key_of(new).and_then(|key| self.taken.get_mut(&key));
                taken.filter(|taken| taken.by == by).into_iter().for_each(|taken| taken.until = until);
            }
        }
    }

    /// Forgets keys whose retention is over.
    pub(in crate::model) fn forget_expired(&mut self, now: Timestamp) {
        self.taken.retain(|_, taken| taken.until.is_none_or(|until| rules::key::is_kept(until, now)));
    }

    /// Returns the active task of a kind that has a key.
    pub(in crate::model) fn active_of(&self, kind: &Name, key: &str) -> Option<TaskId> {
        let taken = self.taken.get(&(kind.clone(), key.to_owned()))?;
        taken.until.is_none().then_some(taken.by)
    }

    /// Returns the active task that has the key of `new`.
    pub(in crate::model) fn active(&self, new: &NewTask) -> Option<TaskId> {
        self.taken.get(&key_of(new)?).filter(|taken| taken.until.is_none()).map(|taken| taken.by)
    }

    /// Returns the holder of the key of `new`, as the rule for duplicates needs it. `task` looks
    /// the holder up, which may have been pruned.
    pub(in crate::model) fn holder<'a>(
        &self,
        new: &NewTask,
        now: Timestamp,
        task: impl FnOnce(TaskId) -> Option<&'a Task>,
    ) -> Option<KeyHolder> {
        let taken = self.taken.get(&key_of(new)?)?;
        if taken.until.is_some_and(|until| !rules::key::is_kept(until, now)) {
            return None;
        }
        let task = task(taken.by);
        Some(KeyHolder {
            id: taken.by,
            priority: task.map_or(Priority::NORMAL, |task| task.new.priority),
            running: task.is_some_and(|task| task.state == TaskState::Running),
            ended: taken.until.is_some(),
            unstarted: new.orchestration && task.is_some_and(Task::is_unstarted),
        })
    }
}

/// Returns the kind and the key of a task. Keys of different kinds are unrelated.
fn key_of(new: &NewTask) -> Option<(Name, String)> {
    new.unique.as_ref().map(|unique| (new.kind.clone(), unique.key.clone()))
}
