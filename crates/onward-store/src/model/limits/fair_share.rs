//! Fair shares: groups divide a queue by weights and minimums.

use std::collections::BTreeMap;

use crate::api::limit::{Limit, LimitScope};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::share::{FairShareTag, VirtualTime, are_shared, charge, fair_share_tag, is_below_minimum};

/// The virtual times of a queue and of the groups in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FairShares {
    /// The virtual time of the queue.
    pub(crate) now: VirtualTime,
    /// The virtual time of each group; `None` stands for the tasks without a group.
    pub(crate) tags: BTreeMap<Option<Name>, VirtualTime>,
}

impl State {
    /// Returns whether any limit divides queues among groups by weight or minimum.
    pub(crate) fn are_shared(&self) -> bool {
        are_shared(&self.limits)
    }

    /// Returns the fair-share tag of a waiting task's group within its queue.
    pub(in crate::model) fn fair_share_tag(&self, task: &Task) -> FairShareTag {
        tag_in(self.fair_shares.get(&task.new.queue), task, self.is_below_minimum(task, 0))
    }

    /// Charges the group of a task that is about to start.
    pub(in crate::model) fn charge(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id) else { return };
        let (limit, is_below_minimum) = (self.group_limit(task), self.is_below_minimum(task, 0));
        let queue = self.fair_shares.entry(task.new.queue.clone()).or_default();
        let tags = queue.tags.entry(task.new.group.clone()).or_default();
        charge(&mut queue.now, tags, limit, is_below_minimum);
    }

    /// Returns whether a task's group runs fewer tasks than its guaranteed minimum, counting
    /// `started` more than run.
    fn is_below_minimum(&self, task: &Task, started: u64) -> bool {
        let group = task.new.group.clone().map(LimitScope::Group);
        group.is_some_and(|group| {
            let limit = self.limit_for(&group);
            limit.minimum.is_some() && is_below_minimum(limit, self.running_in(&group) + started)
        })
    }

    /// Returns the limit of a task's group; the default for a task without a group.
    fn group_limit(&self, task: &Task) -> Limit {
        let group = task.new.group.clone().map(LimitScope::Group);
        group.map(|group| self.limit_for(&group)).unwrap_or_default()
    }
}

/// The fair shares after starts on trial, which change no state.
#[derive(Debug, Clone, Default)]
pub(in crate::model) struct TrialShares {
    /// The virtual times of the queues in which a task started.
    queues: BTreeMap<Name, FairShares>,
    /// The number of started tasks of each group, in all queues.
    started: BTreeMap<Name, u64>,
}

impl TrialShares {
    /// Returns the fair-share tag of a waiting task's group within its queue.
    pub(in crate::model) fn fair_share_tag(&self, state: &State, task: &Task) -> FairShareTag {
        let queue = self.queues.get(&task.new.queue).or_else(|| state.fair_shares.get(&task.new.queue));
        tag_in(queue, task, state.is_below_minimum(task, self.started_of(task)))
    }

    /// Charges the group of a task that starts on trial.
    pub(in crate::model) fn start(&mut self, state: &State, task: &Task) {
        let (limit, is_below) = (state.group_limit(task), state.is_below_minimum(task, self.started_of(task)));
        let before = || state.fair_shares.get(&task.new.queue).cloned().unwrap_or_default();
        let queue = self.queues.entry(task.new.queue.clone()).or_insert_with(before);
        let tags = queue.tags.entry(task.new.group.clone()).or_default();
        charge(&mut queue.now, tags, limit, is_below);
        if let Some(group) = &task.new.group {
            *self.started.entry(group.clone()).or_default() += 1;
        }
    }

    /// Returns the number of tasks of a task's group that started on trial.
    fn started_of(&self, task: &Task) -> u64 {
        task.new.group.as_ref().and_then(|group| self.started.get(group)).copied().unwrap_or_default()
    }
}

/// Returns the fair-share tag of a task's group by the virtual times of its queue.
fn tag_in(queue: Option<&FairShares>, task: &Task, is_below_minimum: bool) -> FairShareTag {
    let tags = queue.and_then(|queue| queue.tags.get(&task.new.group));
    fair_share_tag(tags.copied().unwrap_or_default(), is_below_minimum)
}
