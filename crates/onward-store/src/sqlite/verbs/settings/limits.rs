//! Limits: the number of tasks that may run at once, and the rate at which they may start.

use crate::api::error::Result;
use crate::api::limit::{Limit, LimitScope, SetLimit};
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::queue::QueueSettings;
use crate::bounds;
use crate::rules;
use crate::sqlite::commit::cache::scope_number;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};
use crate::sqlite::limits::deferred_counters::leases_of_groups;
use crate::sqlite::limits::limit_usage::ScopeNumber;

impl Transaction<'_> {
    /// Sets a limit. Tasks that run already count.
    pub(in crate::sqlite) fn set_limit(&mut self, set: &SetLimit) -> VerbResult<Outcome> {
        rules::limit::check(set)?;
        let (queue, kind) = match &set.scope {
            LimitScope::Queue(queue) => (Some(queue), None),
            LimitScope::Kind(kind) => (None, Some(kind)),
            LimitScope::All | LimitScope::Group(_) | LimitScope::Groups(_) => (None, None),
        };
        if let Some(text) = self.cache.names.refusal(queue, kind) {
            return Err(Refusal::Invalid(text).into());
        }
        self.check_group_limits(&set.scope)?;
        self.save_all_counters()?;
        let limit = match (&set.scope, queue, kind) {
            (_, Some(queue), _) => self.set_limit_of_queue(set, queue)?,
            (LimitScope::Group(_) | LimitScope::Groups(_), ..) => self.set_limit_of_groups(set)?,
            (_, _, kind) => self.set_limit_of_kind_or_all(set, kind)?,
        };
        self.cache.queues.reconfigured(self.connection)?;
        self.hint.work += 1;
        Ok(Outcome::LimitSet(limit))
    }

    /// Rejects a limit of a further group if there are too many.
    fn check_group_limits(&self, scope: &LimitScope) -> VerbResult<()> {
        let is_of_groups = |scope: &&LimitScope| matches!(scope, LimitScope::Group(_) | LimitScope::Groups(_));
        let known = self.cache.limits.configured();
        let is_new = is_of_groups(&scope) && !known.contains_key(scope);
        if is_new && known.keys().filter(is_of_groups).count() >= bounds::GROUP_LIMITS {
            return Err(rules::limit::too_many_group_limits().into());
        }
        Ok(())
    }

    /// Returns the limit of a scope before a change.
    fn limit_before(&self, scope: &LimitScope) -> Limit {
        self.cache.limits.configured().get(scope).copied().unwrap_or_default()
    }

    /// Sets the limit of a queue. A queue's concurrency is one of its settings.
    fn set_limit_of_queue(&mut self, set: &SetLimit, queue: &Name) -> Result<Limit> {
        let number = self.cache.names.ensure_queue(self.connection, queue)?;
        let settings = self.cache.queues.settings(number);
        let before = Limit { concurrency: settings.concurrency, ..self.limit_before(&set.scope) };
        let limit = rules::limit::after(before, set);
        self.keep_queue(number, QueueSettings { concurrency: limit.concurrency, ..settings })?;
        let kept = Limit { concurrency: None, ..limit };
        let (running, now) = (self.count_leases(number)?, self.steady_time());
        let scope = (&set.scope, Some(ScopeNumber::Queue(number)));
        self.cache.limits.set(self.connection, scope, kept, running, now)?;
        Ok(limit)
    }

    /// Sets the limit of a kind or of the store.
    fn set_limit_of_kind_or_all(&mut self, set: &SetLimit, kind: Option<&Name>) -> Result<Limit> {
        if let Some(kind) = kind {
            self.cache.names.ensure_kind(self.connection, kind)?;
        }
        let limit = rules::limit::after(self.limit_before(&set.scope), set);
        let number = scope_number(&self.cache.names, &set.scope);
        let running = match number {
            Some(ScopeNumber::Kind(kind)) => self.count_leases_of_kind(Some(kind))?,
            _ => self.count_leases_of_kind(None)?,
        };
        let now = self.steady_time();
        self.cache.limits.set(self.connection, (&set.scope, number), limit, running, now)?;
        Ok(limit)
    }

    /// Sets the limit of groups, and updates each existing group that it concerns.
    fn set_limit_of_groups(&mut self, set: &SetLimit) -> Result<Limit> {
        let limit = rules::limit::after(self.limit_before(&set.scope), set);
        let (now, groups) = (self.steady_time(), self.groups_of(&set.scope));
        let mut before = Vec::with_capacity(groups.len());
        for group in groups {
            before.push((group, self.cache.limits.group(self.connection, group)?.usage));
        }
        self.cache.limits.set(self.connection, (&set.scope, None), limit, 0, now)?;
        let are_shared = rules::share::are_shared(self.cache.limits.configured());
        if self.cache.limits.fair_shares.set(self.connection, are_shared)? {
            self.reset_share_tags()?;
        }
        let running = leases_of_groups(self.connection)?;
        for (group, before) in before {
            let usage = &mut self.cache.limits.group(self.connection, group)?.usage;
            usage.running = running.get(&group).copied().unwrap_or(0);
            usage.bucket = before.bucket_under(usage.limit.rate, now);
            self.cache.limits.mark_group_changed(group);
            self.refresh_group(group)?;
        }
        Ok(limit)
    }

    /// Returns the existing groups of a scope.
    fn groups_of(&self, scope: &LimitScope) -> Vec<i64> {
        let names = &self.cache.names;
        match scope {
            LimitScope::Group(name) => names.group(name).into_iter().collect(),
            LimitScope::Groups(beginning) => {
                let groups = names.groups().filter(|(name, _)| name.starts_with(beginning.as_str()));
                groups.map(|(_, number)| number).collect()
            }
            LimitScope::All | LimitScope::Queue(_) | LimitScope::Kind(_) => Vec::new(),
        }
    }

    /// Returns the number of running tasks of a kind, or of all kinds. Its cost is proportional to
    /// that number, so it is called only when a limit is set.
    fn count_leases_of_kind(&self, kind: Option<i64>) -> Result<i64> {
        let mut statement =
            self.connection.prepare_cached(include_str!("../../sql/settings/count_leases_of_kind.sql"))?;
        Ok(statement.query_row([kind], |row| row.get(0))?)
    }
}
