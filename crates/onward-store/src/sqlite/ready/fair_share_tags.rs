//! Fair-share tags: the order of groups that share a queue, among the
//! [heads](crate::sqlite::ready::claimable_heads).
//!
//! A group's tag in a queue follows from its virtual time there, and from whether it runs fewer
//! tasks than its minimum. Both change only here, and the heads of the group's lists move with
//! them. So the first head of a head list always belongs to the group that has the next turn.

use crate::api::error::Result;
use crate::rules;
use crate::rules::share::FairShareTag;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::ready::affinity_lists::head_list_of;
use crate::sqlite::ready::claimable_heads::ClaimableHead;

impl Transaction<'_> {
    /// Returns the fair-share tag of a list among those of its queue.
    pub(in crate::sqlite) fn share_tag_of(&mut self, list: i64) -> Result<FairShareTag> {
        self.cache.share_tag_of(self.connection, list)
    }

    /// Charges a start to the group of a list. All tasks without a group share one account.
    pub(in crate::sqlite) fn charge(&mut self, list: i64) -> Result<()> {
        let Some(queue) = self.cache.names.sub_queue(list).map(|list| list.queue) else { return Ok(()) };
        let (connection, group) = (self.connection, self.cache.names.group_of(list));
        let mut now = self.cache.limits.fair_shares.now(connection, queue)?;
        let mut tags = self.cache.limits.fair_shares.tags(connection, queue, group)?;
        let Some(group) = group else {
            rules::share::charge(&mut now, &mut tags, crate::api::limit::Limit::default(), false);
            let heads = self.heads_of_lists(self.affinity_lists_of_queue(queue)?)?;
            return self.move_while(heads, |transaction| {
                transaction.cache.limits.fair_shares.keep(queue, None, now, tags);
                Ok(())
            });
        };
        let state = self.cache.limits.group(connection, group)?;
        let (limit, is_below_minimum) = (state.usage.limit, state.is_below_minimum);
        rules::share::charge(&mut now, &mut tags, limit, is_below_minimum);
        let heads = self.heads_of(group, Some(queue))?;
        self.move_while(heads, |transaction| {
            transaction.cache.limits.fair_shares.keep(queue, Some(group), now, tags);
            Ok(())
        })
    }

    /// Updates whether a group is below its minimum, and moves its heads.
    pub(in crate::sqlite) fn refresh_minimum(&mut self, group: i64) -> Result<()> {
        let state = self.cache.limits.group(self.connection, group)?;
        let is_below_minimum = state.has_unmet_minimum();
        if state.is_below_minimum == is_below_minimum {
            return Ok(());
        }
        let heads = self.heads_of(group, None)?;
        self.move_while(heads, |transaction| {
            transaction.cache.limits.group(transaction.connection, group)?.is_below_minimum = is_below_minimum;
            transaction.cache.limits.mark_group_changed(group);
            Ok(())
        })
    }

    /// Removes heads from their head lists, makes a change, and inserts them with their new tags.
    /// They are found by their old tags, so they must leave before the change.
    fn move_while(
        &mut self,
        heads: Vec<(i64, ClaimableHead)>,
        change: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        for (head_list, head) in &heads {
            self.cache.heads.remove(self.connection, *head_list, *head)?;
        }
        change(self)?;
        for (head_list, head) in heads {
            let head = ClaimableHead { share_tag: self.share_tag_of(head.list)?, ..head };
            self.cache.heads.insert(self.connection, head_list, head)?;
        }
        Ok(())
    }

    /// Returns the heads of a group in one queue, or in all.
    fn heads_of(&mut self, group: i64, queue: Option<i64>) -> Result<Vec<(i64, ClaimableHead)>> {
        if self.cache.limits.group(self.connection, group)?.blocked {
            return Ok(Vec::new());
        }
        let affinity_lists = self.affinity_lists_of_group(group)?;
        let lists = self.cache.names.sub_queues_of_group(group).iter().copied().chain(affinity_lists);
        let queue_of = |list| self.cache.names.sub_queue(list).map(|list| list.queue);
        let lists = lists.filter(|list| queue.is_none() || queue == queue_of(*list)).collect();
        self.heads_of_lists(lists)
    }

    /// Returns the heads of lists with their present tags, to be moved when the tags change.
    fn heads_of_lists(&mut self, lists: Vec<i64>) -> Result<Vec<(i64, ClaimableHead)>> {
        let mut heads = Vec::new();
        for list in lists {
            if let Some(sort_key) = self.cache.index.first_ready(self.connection, list)? {
                let head_list = head_list_of(self.connection, &self.cache.names, list)?;
                heads.push((head_list, ClaimableHead { share_tag: self.share_tag_of(list)?, sort_key, list }));
            }
        }
        Ok(heads)
    }

    /// Sets all fair-share tags to the default, because no group has a weight or a minimum any
    /// more.
    pub(in crate::sqlite) fn reset_share_tags(&mut self) -> Result<()> {
        self.cache.heads.reset_share_tags(self.connection)
    }
}
