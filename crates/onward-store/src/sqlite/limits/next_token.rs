//! The time until the next token that lets a waiting task start.

use crate::api::error::Result;
use crate::api::write::Claim;
use crate::bounds;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::ScopeNumber;
use std::time::Duration;

/// The number of groups that the first pass examines.
const FIRST_PASS_GROUPS: usize = 16;

impl Transaction<'_> {
    /// Returns the time until a token lets a waiting task start: for one claim, or for any if it is
    /// `None`. A task of a blocked group waits for its group's token, not for those of other
    /// scopes.
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

    /// Returns the time until a group with due tasks gets a token. With a claim, only groups count
    /// from which it takes tasks.
    fn next_token_of_groups(&mut self, claim: Option<&Claim>) -> Result<Option<Duration>> {
        if !self.cache.names.has_groups() {
            return Ok(None);
        }
        // One of the first groups nearly always has a task for the claim, so all are read only if
        // none has.
        for (limit, passed) in [(FIRST_PASS_GROUPS, 0), (bounds::GROUPS, FIRST_PASS_GROUPS)] {
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

    /// Returns true if a group has a due task that a claim would take if the group had a token.
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

    /// Returns true if a due task waits in a scope. With a claim, only tasks count that it takes.
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

    /// Returns true if a list has a due task.
    fn any_ready(&mut self, lists: &[i64]) -> Result<bool> {
        for list in lists {
            if self.cache.index.first_ready(self.connection, *list)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if neither a pause nor the claim's selection excludes the tasks of a list.
    fn list_may_give(&self, list: i64, claim: Option<&Claim>) -> bool {
        self.cache.names.sub_queue(list).is_some_and(|list| {
            let is_paused = self.cache.pauses.holds(&list.queue_name, &list.kind_name);
            let selects = |claim: &Claim| claim.selects(&list.queue_name, &list.kind_name, list.orchestration);
            !is_paused && claim.is_none_or(selects)
        })
    }
}
