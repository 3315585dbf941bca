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
        let tags = self.fair_shares.get(&task.new.queue).and_then(|queue| queue.tags.get(&task.new.group));
        fair_share_tag(tags.copied().unwrap_or_default(), self.is_below_minimum(task))
    }

    /// Charges the group of a task that is about to start.
    pub(in crate::model) fn charge(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id) else { return };
        let (limit, is_below_minimum) = (self.group_limit(task), self.is_below_minimum(task));
        let queue = self.fair_shares.entry(task.new.queue.clone()).or_default();
        let tags = queue.tags.entry(task.new.group.clone()).or_default();
        charge(&mut queue.now, tags, limit, is_below_minimum);
    }

    /// Returns whether a task's group runs fewer tasks than its guaranteed minimum.
    fn is_below_minimum(&self, task: &Task) -> bool {
        let group = task.new.group.clone().map(LimitScope::Group);
        group.is_some_and(|group| {
            let limit = self.limit_for(&group);
            limit.minimum.is_some() && is_below_minimum(limit, self.running_in(&group))
        })
    }

    /// Returns the limit of a task's group; the default for a task without a group.
    fn group_limit(&self, task: &Task) -> Limit {
        let group = task.new.group.clone().map(LimitScope::Group);
        group.map(|group| self.limit_for(&group)).unwrap_or_default()
    }
}
