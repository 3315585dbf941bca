//! Groups at their limits: they decide which ready lists claims examine.
//!
//! A group is **blocked** while its limit lets no further task start, or while it is paused. Its
//! lists then have no [claimable heads](crate::sqlite::ready::claimable_heads), so claims do not
//! examine them. Every event that may change this calls
//! [`refresh_group`](Transaction::refresh_group): a start, an end, a new token, a new limit, a
//! pause.

use crate::api::error::Result;
use crate::bounds;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::ready::claimable_heads::ClaimableHead;

impl Transaction<'_> {
    /// Updates the group of a list, if the list has one.
    pub(in crate::sqlite) fn refresh_group_of(&mut self, list: i64) -> Result<()> {
        self.cache.names.group_of(list).map_or(Ok(()), |group| self.refresh_group(group))
    }

    /// Blocks or unblocks a group by its limit and its pause. If it waits for a token, stores the
    /// time of that token.
    pub(in crate::sqlite) fn refresh_group(&mut self, group: i64) -> Result<()> {
        let now = self.steady_time();
        self.refresh_minimum(group)?;
        let state = self.cache.limits.group(self.connection, group)?;
        if state.usage.limit.is_none() && !state.blocked && state.token_at.is_none() && self.cache.pauses.is_empty() {
            return Ok(());
        }
        let (usage, was_blocked, was_token_at) = (state.usage, state.blocked, state.token_at);
        let is_paused = self.cache.pauses.group_is_paused(&state.name);
        let blocked = is_paused || usage.room(now) == 0;
        if blocked != was_blocked {
            self.move_heads(group, blocked)?;
        }
        let wait = usage.until_token(now).filter(|_| blocked);
        let token_at =
            if wait.is_some() && self.has_due_tasks(group)? { wait.map(|wait| microseconds(now + wait)) } else { None };
        if token_at != was_token_at {
            self.note_token_due(group, was_token_at, token_at)?;
        }
        Ok(())
    }

    /// Removes the claimable heads of a group's lists, or restores them.
    fn move_heads(&mut self, group: i64, blocked: bool) -> Result<()> {
        for at in 0..self.cache.names.sub_queues_of_group(group).len() {
            let Some(list) = self.cache.names.sub_queues_of_group(group).get(at).copied() else { break };
            let Some(sort_key) = self.cache.index.first_ready(self.connection, list)? else { continue };
            let (head_list, share_tag) = (self.cache.names.ungrouped_of(list), self.share_tag_of(list)?);
            let head = ClaimableHead { share_tag, sort_key, list };
            if blocked {
                self.cache.heads.remove(self.connection, head_list, head)?;
            } else {
                self.cache.heads.insert(self.connection, head_list, head)?;
                self.hint.work += 1;
            }
        }
        self.move_affinity_heads(group, blocked)?;
        self.cache.limits.group(self.connection, group)?.blocked = blocked;
        self.cache.limits.mark_group_changed(group);
        Ok(())
    }

    /// Returns true if a task of a group is due.
    pub(in crate::sqlite) fn has_due_tasks(&mut self, group: i64) -> Result<bool> {
        for at in 0..self.cache.names.sub_queues_of_group(group).len() {
            let Some(list) = self.cache.names.sub_queues_of_group(group).get(at).copied() else { break };
            if self.cache.index.first_ready(self.connection, list)?.is_some() {
                return Ok(true);
            }
        }
        Ok(!self.affinity_lists_of_group(group)?.is_empty())
    }

    /// Records the time at which a group gets its next token. A changed time wakes sleeping
    /// workers.
    fn note_token_due(&mut self, group: i64, before: Option<i64>, token_at: Option<i64>) -> Result<()> {
        if let Some(at) = before {
            self.cache.heads.remove_token_due(self.connection, at, group)?;
        }
        if let Some(at) = token_at {
            self.cache.heads.add_token_due(self.connection, at, group)?;
            // A sleeping worker must compute its wake-up again.
            self.hint.work += 1;
        }
        self.cache.limits.group(self.connection, group)?.token_at = token_at;
        self.cache.limits.mark_group_changed(group);
        Ok(())
    }

    /// Unblocks groups that have received a token.
    pub(in crate::sqlite) fn release_groups(&mut self) -> Result<()> {
        if !self.cache.names.has_groups() {
            return Ok(());
        }
        // Steady time may have begun again since the times in the file were stored. They are then
        // of no use, so all groups are checked.
        let all = std::mem::take(&mut self.cache.refresh_groups);
        let (up_to, limit) = if all { (i64::MAX, bounds::GROUPS) } else { (self.steady, bounds::SWEEP) };
        for (_, group) in self.cache.heads.tokens_due(self.connection, up_to, limit)? {
            self.refresh_group(group)?;
        }
        Ok(())
    }
}
