//! Running counts: each start and end of a task is counted in every scope that has a limit.

use crate::api::error::Result;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::ScopeNumber;
use std::time::Duration;

impl Transaction<'_> {
    /// Counts the start of a task of a list in every scope but its group.
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

    /// Counts the end of a task of a list. Wakes workers only if a full scope has room now: in
    /// other scopes all tasks that may start have started.
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
            self.refresh_group(group)?;
        }
        Ok(())
    }

    /// Returns the steady time of the transaction.
    pub(in crate::sqlite) fn steady_time(&self) -> Duration {
        Duration::from_micros(self.steady.unsigned_abs())
    }

    /// Returns the scopes of a list without its group; `None` for an unknown list.
    pub(in crate::sqlite) fn scopes_of(&self, list: i64) -> Option<[ScopeNumber; 3]> {
        let list = self.cache.names.sub_queue(list)?;
        Some([ScopeNumber::All, ScopeNumber::Queue(list.queue), ScopeNumber::Kind(list.kind)])
    }

    /// Returns true if a rate limits the tasks of a list.
    pub(in crate::sqlite) fn is_rated(&mut self, list: i64) -> Result<bool> {
        let scopes = self.scopes_of(list).into_iter().flatten();
        let has_rate = |scope| self.cache.limits.usage(scope).is_some_and(|usage| usage.limit.rate.is_some());
        if self.cache.limits.has_numbered_scopes() && scopes.into_iter().any(has_rate) {
            return Ok(true);
        }
        let Some(group) = self.cache.names.group_of(list) else { return Ok(false) };
        Ok(self.cache.limits.group(self.connection, group)?.usage.limit.rate.is_some())
    }
}
