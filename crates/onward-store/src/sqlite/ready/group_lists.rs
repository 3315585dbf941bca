//! Ready lists of tasks that share a limit, and which of them claims look at.
//!
//! A group is **held back** while its limit lets no further task of it start, or while it is
//! paused. The first task of each of its lists is then not among the
//! [heads](crate::sqlite::ready::claimable_heads), so claims pass it without a look. Every change
//! that may end this (a start, an end, time, a new limit, a pause) settles the group again.

use std::time::Duration;

use crate::api::error::Result;
use crate::api::task::SessionId;
use crate::api::write::Claim;
use crate::bounds;
use crate::rules::order::Place;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::names::{AFFINITY_SHIFT, FIRST_GROUPED, FIRST_WITH_AFFINITY, HAS_AFFINITY};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::ScopeNumber;
use crate::sqlite::ready::claimable_heads::ClaimableHead;
use crate::sqlite::ready::index::Entry;

/// The number of groups waiting for a token that are looked at first.
const GROUPS_LOOKED_AT_FIRST: usize = 16;

impl Transaction<'_> {
    /// Adds a task that no session holds to its list; its key is taken separately.
    pub(in crate::sqlite) fn enter_list(&mut self, entry: &Entry<'_>) -> Result<()> {
        if let Some(affinity_key) = entry.affinity_key {
            return self.enter_affinity_list(entry, affinity_key);
        }
        if entry.list < FIRST_GROUPED || !entry.is_ready() {
            return self.cache.index.add(self.connection, entry);
        }
        let first = self.cache.index.first_ready(self.connection, entry.list)?;
        self.cache.index.add(self.connection, entry)?;
        self.note_entry(entry.list, entry.sort_key(), first)
    }

    /// Adds a task that has become due to its list; `list` is the value that it has in `scheduled`.
    pub(in crate::sqlite) fn enter_list_when_due(&mut self, list: i64, sort_key: Place) -> Result<()> {
        if list < FIRST_GROUPED {
            return self.cache.index.add_ready(self.connection, list, sort_key);
        }
        if list & HAS_AFFINITY != 0 {
            return self.enter_affinity_list_when_due(list & !HAS_AFFINITY, sort_key);
        }
        let first = self.cache.index.first_ready(self.connection, list)?;
        self.cache.index.add_ready(self.connection, list, sort_key)?;
        self.note_entry(list, sort_key, first)
    }

    /// Removes a task that no session holds from its list; its key is freed separately.
    pub(in crate::sqlite) fn leave_list(&mut self, entry: &Entry<'_>) -> Result<()> {
        if let Some(affinity_key) = entry.affinity_key.filter(|_| entry.is_ready()) {
            return self.leave_affinity_list(entry, affinity_key);
        }
        self.cache.index.remove(self.connection, entry)?;
        if entry.list < FIRST_GROUPED || !entry.is_ready() {
            return Ok(());
        }
        self.note_exit(entry.list, entry.sort_key())?;
        self.settle_group_of(entry.list)
    }

    /// Removes a task that a session is about to start from a list of a group or an affinity key,
    /// and counts it. Returns true if that holds the group back. The cached row of the task is kept
    /// for the start.
    pub(in crate::sqlite) fn start_from_list(
        &mut self,
        session: SessionId,
        list: i64,
        sort_key: Place,
    ) -> Result<bool> {
        self.cache.index.remove_ready_to_start(self.connection, list, sort_key)?;
        if list >= FIRST_WITH_AFFINITY {
            self.prefer(list >> AFFINITY_SHIFT, session)?;
        }
        self.note_exit(list, sort_key)?;
        if self.cache.limits.fair_shares.are_shared() {
            self.charge(list)?;
        }
        let Some(group) = self.cache.names.group_of(list) else { return Ok(false) };
        self.cache.limits.start_in_group(self.connection, group, self.steady_time())?;
        self.settle_group(group)?;
        Ok(self.cache.limits.group(self.connection, group)?.held_back)
    }

    fn note_entry(&mut self, list: i64, sort_key: Place, first: Option<Place>) -> Result<()> {
        let Some(group) = self.cache.names.group_of(list) else { return Ok(()) };
        if self.cache.limits.group(self.connection, group)?.held_back {
            return self.settle_group(group);
        }
        if first.is_some_and(|first| first < sort_key) {
            return Ok(());
        }
        let (head_list, share_tag) = (self.cache.names.ungrouped_of(list), self.share_tag_of(list)?);
        if let Some(first) = first {
            self.cache.heads.remove(self.connection, head_list, ClaimableHead { share_tag, sort_key: first, list })?;
        }
        self.cache.heads.insert(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
        // A new group is below its minimum from the start.
        if self.cache.limits.fair_shares.are_shared() { self.settle_minimum(group) } else { Ok(()) }
    }

    /// Updates the head of a list after its first task has left.
    fn note_exit(&mut self, list: i64, sort_key: Place) -> Result<()> {
        if list >= FIRST_WITH_AFFINITY {
            return self.note_exit_from_affinity_list(list, sort_key);
        }
        let (head_list, share_tag) = (self.cache.names.ungrouped_of(list), self.share_tag_of(list)?);
        if self.cache.heads.remove(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?
            && let Some(sort_key) = self.cache.index.first_ready(self.connection, list)?
        {
            self.cache.heads.insert(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
        }
        Ok(())
    }

    pub(super) fn settle_group_of(&mut self, list: i64) -> Result<()> {
        self.cache.names.group_of(list).map_or(Ok(()), |group| self.settle_group(group))
    }

    /// Holds a group back or releases it, as its limit and its pause require. Records when the
    /// group gets a token if it waits for one.
    pub(in crate::sqlite) fn settle_group(&mut self, group: i64) -> Result<()> {
        let now = self.steady_time();
        self.settle_minimum(group)?;
        let state = self.cache.limits.group(self.connection, group)?;
        if state.usage.limit.is_none() && !state.held_back && state.token_at.is_none() && self.cache.pauses.is_empty() {
            return Ok(());
        }
        let (usage, was_held_back, was_token_at) = (state.usage, state.held_back, state.token_at);
        let is_paused = self.cache.pauses.group_is_paused(&state.name);
        let held_back = is_paused || usage.room(now) == 0;
        if held_back != was_held_back {
            self.move_heads(group, held_back)?;
        }
        let wait = usage.until_token(now).filter(|_| held_back);
        let token_at =
            if wait.is_some() && self.has_due_tasks(group)? { wait.map(|wait| microseconds(now + wait)) } else { None };
        if token_at != was_token_at {
            self.note_token_due(group, was_token_at, token_at)?;
        }
        Ok(())
    }

    fn move_heads(&mut self, group: i64, held_back: bool) -> Result<()> {
        for at in 0..self.cache.names.sub_queues_of_group(group).len() {
            let Some(list) = self.cache.names.sub_queues_of_group(group).get(at).copied() else { break };
            let Some(sort_key) = self.cache.index.first_ready(self.connection, list)? else { continue };
            let (head_list, share_tag) = (self.cache.names.ungrouped_of(list), self.share_tag_of(list)?);
            let head = ClaimableHead { share_tag, sort_key, list };
            if held_back {
                self.cache.heads.remove(self.connection, head_list, head)?;
            } else {
                self.cache.heads.insert(self.connection, head_list, head)?;
                self.hint.work += 1;
            }
        }
        self.move_affinity_heads(group, held_back)?;
        self.cache.limits.group(self.connection, group)?.held_back = held_back;
        self.cache.limits.mark_group_changed(group);
        Ok(())
    }

    fn has_due_tasks(&mut self, group: i64) -> Result<bool> {
        for at in 0..self.cache.names.sub_queues_of_group(group).len() {
            let Some(list) = self.cache.names.sub_queues_of_group(group).get(at).copied() else { break };
            if self.cache.index.first_ready(self.connection, list)?.is_some() {
                return Ok(true);
            }
        }
        Ok(!self.affinity_lists_of_group(group)?.is_empty())
    }

    fn note_token_due(&mut self, group: i64, before: Option<i64>, token_at: Option<i64>) -> Result<()> {
        if let Some(at) = before {
            self.cache.heads.remove_token_due(self.connection, at, group)?;
        }
        if let Some(at) = token_at {
            self.cache.heads.add_token_due(self.connection, at, group)?;
            // Wakes the engine, which has a new moment to wake at.
            self.hint.work += 1;
        }
        self.cache.limits.group(self.connection, group)?.token_at = token_at;
        self.cache.limits.mark_group_changed(group);
        Ok(())
    }

    /// Releases groups that have got a token.
    pub(in crate::sqlite) fn release_groups(&mut self) -> Result<()> {
        if !self.cache.names.has_groups() {
            return Ok(());
        }
        // Steady time may have restarted since the values in the file were recorded.
        let anew = std::mem::take(&mut self.cache.settle_groups);
        let (up_to, limit) = if anew { (i64::MAX, bounds::GROUPS) } else { (self.steady, bounds::SWEEP) };
        for (_, group) in self.cache.heads.tokens_due(self.connection, up_to, limit)? {
            self.settle_group(group)?;
        }
        Ok(())
    }

    /// Counts a task of a list that starts, except for its group.
    pub(in crate::sqlite) fn count_start(&mut self, list: i64) {
        if !self.cache.queues.is_limited() && !self.cache.limits.has_numbered_scopes() {
            return;
        }
        let Some(scopes) = self.scopes_of(list) else { return };
        if let [_, ScopeNumber::Queue(queue), _] = scopes {
            self.cache.queues.count(queue, 1);
        }
        self.cache.limits.start(scopes, self.steady_time());
    }

    /// Counts a task of a list that runs no more. Only an end that makes room where there was none
    /// wakes the engine: any other task that a limit allows would have been started.
    pub(in crate::sqlite) fn count_end(&mut self, list: i64) -> Result<()> {
        if (self.cache.queues.is_limited() || self.cache.limits.has_numbered_scopes())
            && let Some(scopes) = self.scopes_of(list)
        {
            let made_room = matches!(scopes, [_, ScopeNumber::Queue(queue), _] if self.cache.queues.count(queue, -1));
            if self.cache.limits.end(scopes) || made_room {
                self.hint.work += 1;
            }
        }
        if let Some(group) = self.cache.names.group_of(list) {
            self.cache.limits.end_in_group(self.connection, group)?;
            self.settle_group(group)?;
        }
        Ok(())
    }

    pub(in crate::sqlite) fn steady_time(&self) -> Duration {
        Duration::from_micros(self.steady.unsigned_abs())
    }

    fn scopes_of(&self, list: i64) -> Option<[ScopeNumber; 3]> {
        let list = self.cache.names.sub_queue(list)?;
        Some([ScopeNumber::All, ScopeNumber::Queue(list.queue), ScopeNumber::Kind(list.kind)])
    }

    /// Returns true if tasks of a list are under a rate.
    pub(in crate::sqlite) fn is_rated(&mut self, list: i64) -> Result<bool> {
        let scopes = self.scopes_of(list).into_iter().flatten();
        let has_rate = |scope| self.cache.limits.usage(scope).is_some_and(|usage| usage.limit.rate.is_some());
        if self.cache.limits.has_numbered_scopes() && scopes.into_iter().any(has_rate) {
            return Ok(true);
        }
        let Some(group) = self.cache.names.group_of(list) else { return Ok(false) };
        Ok(self.cache.limits.group(self.connection, group)?.usage.limit.rate.is_some())
    }

    /// Returns the time until the next token for which a task waits that a claim, or any claim,
    /// would take otherwise. Tasks whose group is held back wait for their group.
    pub(in crate::sqlite) fn next_token(&mut self, claim: Option<&Claim>) -> Result<Option<Duration>> {
        let now = self.steady_time();
        let waits = self.cache.limits.scopes().filter_map(|(scope, usage)| Some((scope, usage.until_token(now)?)));
        let waits: Vec<(ScopeNumber, Duration)> = waits.collect();
        let mut next = None;
        for (scope, wait) in waits {
            if next.is_none_or(|next| wait < next) && self.something_waits(scope, claim)? {
                next = Some(wait);
            }
        }
        Ok([next, self.next_token_of_groups(claim)?].into_iter().flatten().min())
    }

    fn next_token_of_groups(&mut self, claim: Option<&Claim>) -> Result<Option<Duration>> {
        if !self.cache.names.has_groups() {
            return Ok(None);
        }
        // Nearly always the claim would take a task of one of the first groups.
        for (limit, passed) in [(GROUPS_LOOKED_AT_FIRST, 0), (bounds::GROUPS, GROUPS_LOOKED_AT_FIRST)] {
            let due = self.cache.heads.tokens_due(self.connection, i64::MAX, limit)?;
            for (at, group) in due.iter().skip(passed) {
                if self.group_waits(*group, claim)? {
                    let wait = at.saturating_sub(self.steady);
                    return Ok(Some(Duration::from_micros(u64::try_from(wait).unwrap_or(0))));
                }
            }
            if due.len() < limit {
                break;
            }
        }
        Ok(None)
    }

    /// Returns true if a group has a due task that a claim would take except for the group's limit.
    fn group_waits(&mut self, group: i64, claim: Option<&Claim>) -> Result<bool> {
        let state = self.cache.limits.group(self.connection, group)?;
        if self.cache.pauses.group_is_paused(&state.name) {
            return Ok(false);
        }
        let lists = self.cache.names.sub_queues_of_group(group).iter().copied();
        let lists = lists.chain(self.affinity_lists_of_group(group)?);
        let lists: Vec<i64> = lists.filter(|list| self.list_may_give(*list, claim)).collect();
        self.any_ready(&lists)
    }

    fn something_waits(&mut self, scope: ScopeNumber, claim: Option<&Claim>) -> Result<bool> {
        let lists = self.cache.names.ungrouped_sub_queues().filter(|(_, list)| match scope {
            ScopeNumber::All => true,
            ScopeNumber::Queue(queue) => list.queue == queue,
            ScopeNumber::Kind(kind) => list.kind == kind,
        });
        let lists = lists.map(|(number, _)| number).filter(|list| self.list_may_give(*list, claim));
        let lists: Vec<i64> = lists.collect();
        for head_list in &lists {
            if self.cache.heads.first(self.connection, *head_list)?.is_some() {
                return Ok(true);
            }
        }
        Ok(self.any_reserved(&lists)? || self.any_ready(&lists)?)
    }

    fn any_ready(&mut self, lists: &[i64]) -> Result<bool> {
        for list in lists {
            if self.cache.index.first_ready(self.connection, *list)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if neither a pause nor the claim's selection excludes tasks of a list.
    fn list_may_give(&self, list: i64, claim: Option<&Claim>) -> bool {
        self.cache.names.sub_queue(list).is_some_and(|list| {
            let is_paused = self.cache.pauses.holds(&list.queue_name, &list.kind_name);
            let selects = |claim: &Claim| claim.selects(&list.queue_name, &list.kind_name, list.orchestration);
            !is_paused && claim.is_none_or(selects)
        })
    }
}
