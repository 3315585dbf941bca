//! In which order groups that share a queue stand among the [heads](crate::sqlite::ready::claimable_heads).
//!
//! The rank of a group in a queue follows from where it stands in virtual time and in which line.
//! Both change only here, and the heads of its lines are moved along, so that an ordered index
//! always has the group first whose turn it is.

use crate::api::error::Result;
use crate::rules;
use crate::rules::share::Rank;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::ready::affinity_lists::base_of_head;
use crate::sqlite::ready::claimable_heads::GroupHead;

impl Transaction<'_> {
    /// Where the tasks of a lane stand among those of its queue.
    pub(in crate::sqlite) fn rank_of(&mut self, lane: i64) -> Result<Rank> {
        self.cache.rank_of(self.connection, lane)
    }

    /// Charges the group of a lane, or the tasks without one, for a task that is about to start.
    pub(in crate::sqlite) fn charge(&mut self, lane: i64) -> Result<()> {
        let Some(queue) = self.cache.names.lane(lane).map(|lane| lane.queue) else { return Ok(()) };
        let (connection, group) = (self.connection, self.cache.names.group_of(lane));
        let mut now = self.cache.flow.shares.now(connection, queue)?;
        let mut tags = self.cache.flow.shares.tags(connection, queue, group)?;
        let Some(group) = group else {
            rules::share::charge(&mut now, &mut tags, crate::api::limit::Limit::default(), false);
            let heads = self.heads_of_lines(self.series_lines_of_queue(queue)?)?;
            return self.move_while(heads, |transaction| {
                transaction.cache.flow.shares.keep(queue, None, now, tags);
                Ok(())
            });
        };
        let state = self.cache.flow.group(connection, group)?;
        let (limit, is_below_minimum) = (state.usage.limit, state.is_below_minimum);
        rules::share::charge(&mut now, &mut tags, limit, is_below_minimum);
        let heads = self.heads_of(group, Some(queue))?;
        self.move_while(heads, |transaction| {
            transaction.cache.flow.shares.keep(queue, Some(group), now, tags);
            Ok(())
        })
    }

    /// Has a group stand in the line of those below their minimum if it is.
    pub(in crate::sqlite) fn settle_minimum(&mut self, group: i64) -> Result<()> {
        let state = self.cache.flow.group(self.connection, group)?;
        let is_below_minimum = state.is_to_be_below_minimum();
        if state.is_below_minimum == is_below_minimum {
            return Ok(());
        }
        let heads = self.heads_of(group, None)?;
        self.move_while(heads, |transaction| {
            transaction.cache.flow.group(transaction.connection, group)?.is_below_minimum = is_below_minimum;
            transaction.cache.flow.change_group(group);
            Ok(())
        })
    }

    /// Takes heads out of their order, has something change that, and puts them where they belong
    /// then.
    fn move_while(&mut self, heads: Vec<(i64, GroupHead)>, change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        for (base, head) in &heads {
            self.cache.heads.remove(self.connection, *base, *head)?;
        }
        change(self)?;
        for (base, head) in heads {
            let head = GroupHead { rank: self.rank_of(head.lane)?, ..head };
            self.cache.heads.insert(self.connection, base, head)?;
        }
        Ok(())
    }

    /// The heads of a group, of one queue or of all.
    fn heads_of(&mut self, group: i64, queue: Option<i64>) -> Result<Vec<(i64, GroupHead)>> {
        if self.cache.flow.group(self.connection, group)?.held_back {
            return Ok(Vec::new());
        }
        let of_series = self.series_lines_of_group(group)?;
        let lanes = self.cache.names.lanes_of_group(group).iter().copied().chain(of_series);
        let queue_of = |lane| self.cache.names.lane(lane).map(|lane| lane.queue);
        let lanes = lanes.filter(|lane| queue.is_none() || queue == queue_of(*lane)).collect();
        self.heads_of_lines(lanes)
    }

    fn heads_of_lines(&mut self, lines: Vec<i64>) -> Result<Vec<(i64, GroupHead)>> {
        let mut heads = Vec::new();
        for lane in lines {
            if let Some(place) = self.cache.index.first_ready(self.connection, lane)? {
                let base = base_of_head(self.connection, &self.cache.names, lane)?;
                heads.push((base, GroupHead { rank: self.rank_of(lane)?, place, lane }));
            }
        }
        Ok(heads)
    }

    /// Has all heads stand in the order of their places alone, for no group has a weight or a
    /// minimum any more.
    pub(in crate::sqlite) fn forget_ranks(&mut self) -> Result<()> {
        self.cache.heads.forget_ranks(self.connection)
    }
}
