//! Fair shares after starts on trial, which change no state.

use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::limit::Limit;
use crate::rules::share::{FairShareTag, VirtualTime, charge, fair_share_tag, is_below_minimum};
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::Names;

/// The virtual times and the running tasks of groups after starts on trial.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct TrialShares {
    /// The virtual times of queues in which a task started.
    queues: FxHashMap<i64, VirtualTime>,
    /// The virtual times of groups that started a task in a queue; `None` stands for the tasks
    /// without a group.
    tags: FxHashMap<(i64, Option<i64>), VirtualTime>,
    /// The number of started tasks of each group, in all queues.
    started: FxHashMap<i64, i64>,
}

impl TrialShares {
    /// Returns true if starts have changed the fair-share tag of a list. A start only makes tags
    /// larger.
    pub(in crate::sqlite) fn has_moved(&self, names: &Names, list: i64) -> bool {
        let Some(queue) = names.sub_queue(list).map(|sub_queue| sub_queue.queue) else { return false };
        let group = names.group_of(list);
        self.tags.contains_key(&(queue, group)) || group.is_some_and(|group| self.started.contains_key(&group))
    }

    /// Returns the fair-share tag of a list among those of its queue.
    pub(in crate::sqlite) fn tag_of(
        &self,
        connection: &Database<'_>,
        cache: &mut Cache,
        list: i64,
    ) -> Result<FairShareTag> {
        if !self.has_moved(&cache.names, list) {
            return cache.share_tag_of(connection, list);
        }
        let Some(queue) = cache.names.sub_queue(list).map(|sub_queue| sub_queue.queue) else {
            return Ok(FairShareTag::default());
        };
        let group = cache.names.group_of(list);
        let (_, is_below_minimum) = self.limit_of(connection, cache, group)?;
        Ok(fair_share_tag(self.tags_of(connection, cache, queue, group)?, is_below_minimum))
    }

    /// Charges the start of a task of a list to its group.
    pub(in crate::sqlite) fn start(&mut self, connection: &Database<'_>, cache: &mut Cache, list: i64) -> Result<()> {
        let Some(queue) = cache.names.sub_queue(list).map(|sub_queue| sub_queue.queue) else { return Ok(()) };
        let group = cache.names.group_of(list);
        let mut now = match self.queues.get(&queue) {
            Some(now) => *now,
            None => cache.limits.fair_shares.now(connection, queue)?,
        };
        let mut tags = self.tags_of(connection, cache, queue, group)?;
        let (limit, is_below_minimum) = self.limit_of(connection, cache, group)?;
        charge(&mut now, &mut tags, limit, is_below_minimum);
        self.queues.insert(queue, now);
        self.tags.insert((queue, group), tags);
        if let Some(group) = group {
            *self.started.entry(group).or_default() += 1;
        }
        Ok(())
    }

    /// Returns the virtual times of a group in a queue.
    fn tags_of(
        &self,
        connection: &Database<'_>,
        cache: &mut Cache,
        queue: i64,
        group: Option<i64>,
    ) -> Result<VirtualTime> {
        match self.tags.get(&(queue, group)) {
            Some(tags) => Ok(*tags),
            None => cache.limits.fair_shares.tags(connection, queue, group),
        }
    }

    /// Returns the limit of a group, and whether the group is below its minimum.
    fn limit_of(&self, connection: &Database<'_>, cache: &mut Cache, group: Option<i64>) -> Result<(Limit, bool)> {
        let Some(group) = group else { return Ok((Limit::default(), false)) };
        let (limit, running) = {
            let usage = &cache.limits.group(connection, group)?.usage;
            (usage.limit, usage.running)
        };
        let running = running + self.started.get(&group).copied().unwrap_or_default();
        Ok((limit, is_below_minimum(limit, u64::try_from(running).unwrap_or(0))))
    }
}
