//! Limits on the number of running tasks and on the rate of starts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::limit::{Limit, LimitRecord, LimitScope, Rate, SetLimit};
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::queue::QueueSettings;
use crate::api::write::Claim;
use crate::bounds;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules;
use crate::rules::limit::Bucket;

impl State {
    /// Applies the given values to the limit of a scope. A limit without any bound is removed.
    pub(in crate::model) fn set_limit(&mut self, set: &SetLimit) -> Result<Outcome, Refusal> {
        rules::limit::check(set)?;
        let (queue, kind) = match &set.scope {
            LimitScope::Queue(queue) => (Some(queue), None),
            LimitScope::Kind(kind) => (None, Some(kind)),
            LimitScope::All | LimitScope::Group(_) | LimitScope::Groups(_) => (None, None),
        };
        self.check_names(queue, kind)?;
        self.check_group_limits(&set.scope)?;
        self.register_names(queue, kind);
        let limit = rules::limit::after(self.limit_on(&set.scope), set);
        let rates = self.rates_of_buckets(&set.scope);
        self.store_limit(&set.scope, limit);
        self.convert_buckets(rates);
        self.reconfigured();
        self.hint_work();
        Ok(Outcome::LimitSet(limit))
    }

    /// Rejects a limit on a further group or prefix of groups if there are too many.
    fn check_group_limits(&self, scope: &LimitScope) -> Result<(), Refusal> {
        let is_of_groups = |scope: &&LimitScope| matches!(scope, LimitScope::Group(_) | LimitScope::Groups(_));
        let of_groups = self.limits.keys().filter(is_of_groups).count();
        if is_of_groups(&scope) && !self.limits.contains_key(scope) && of_groups >= bounds::GROUP_LIMITS {
            return Err(rules::limit::too_many_group_limits());
        }
        Ok(())
    }

    /// Stores a limit. The concurrency of a queue is stored among its settings.
    fn store_limit(&mut self, scope: &LimitScope, limit: Limit) {
        let mut kept = limit;
        if let LimitScope::Queue(queue) = scope {
            let concurrency = kept.concurrency.take();
            let settings = QueueSettings { concurrency, ..self.settings_of(queue) };
            self.settings.insert(queue.clone(), settings);
        }
        if kept.is_none() {
            self.limits.remove(scope);
        } else {
            self.limits.insert(scope.clone(), kept);
        }
        if !self.are_shared() {
            self.fair_shares.clear();
        }
    }

    /// Returns the scopes whose buckets a limit on `scope` may concern, each with its rate.
    fn rates_of_buckets(&self, scope: &LimitScope) -> Vec<(LimitScope, Option<Rate>)> {
        let concerns = |one: &&LimitScope| match (scope, one) {
            (LimitScope::Groups(beginning), LimitScope::Group(group)) => group.starts_with(beginning.as_str()),
            (scope, one) => scope == *one,
        };
        let concerned = self.buckets.keys().filter(concerns);
        concerned.map(|one| (one.clone(), self.limit_for(one).rate)).collect()
    }

    /// Converts buckets to their present rates, given the rates before. A scope without a rate has
    /// no bucket.
    fn convert_buckets(&mut self, before: Vec<(LimitScope, Option<Rate>)>) {
        for (scope, before) in before {
            match before.zip(self.limit_for(&scope).rate) {
                Some((before, after)) if before == after => {}
                Some((before, after)) => {
                    let bucket = self.bucket(&scope).under(before, after, self.now.steady);
                    self.buckets.insert(scope, bucket);
                }
                None => drop(self.buckets.remove(&scope)),
            }
        }
    }

    /// Returns the limit that is set on exactly this scope.
    fn limit_on(&self, scope: &LimitScope) -> Limit {
        let limit = self.limits.get(scope).copied().unwrap_or_default();
        match scope {
            LimitScope::Queue(queue) => Limit { concurrency: self.settings_of(queue).concurrency, ..limit },
            _ => limit,
        }
    }

    /// Returns the limit that applies to a scope. A group without a limit of its own has that of
    /// the longest prefix of its name.
    pub(in crate::model) fn limit_for(&self, scope: &LimitScope) -> Limit {
        match scope {
            LimitScope::Group(group) => {
                rules::limit::limit_of_group(&self.limits, group).map(|(_, limit)| *limit).unwrap_or_default()
            }
            _ => self.limit_on(scope),
        }
    }

    /// Returns the token bucket of a scope. It is full if no token was taken.
    pub(in crate::model) fn bucket(&self, scope: &LimitScope) -> Bucket {
        self.buckets.get(scope).copied().unwrap_or_default()
    }

    /// Returns the number of tasks of a scope that may start at `now`.
    pub(in crate::model) fn headroom_in(&self, scope: &LimitScope, now: Duration) -> usize {
        let limit = self.limit_for(scope);
        if limit.is_none() {
            return usize::MAX;
        }
        // Running tasks are counted only for a concurrency, because a partly loaded store would
        // have to load the counts.
        let running = limit.concurrency.map_or(0, |_| self.running_in(scope));
        rules::limit::room(limit, running, self.bucket(scope), now)
    }

    /// Returns the number of running tasks in a scope.
    pub(in crate::model) fn running_in(&self, scope: &LimitScope) -> u64 {
        self.tasks.running(scope)
    }

    /// Returns whether any limit depends on the number of running tasks.
    #[cfg(feature = "postgres")]
    pub(crate) fn counts_running(&self) -> bool {
        self.limits.values().any(|limit| limit.concurrency.is_some() || limit.minimum.is_some())
            || self.settings.values().any(|queue| queue.concurrency.is_some())
    }

    /// Returns whether any limit is set.
    pub(in crate::model) fn has_limits(&self) -> bool {
        !self.limits.is_empty() || self.settings.values().any(|queue| queue.concurrency.is_some())
    }

    /// Returns whether the limit of a task's group lets it start.
    fn group_allows(&self, task: &Task) -> bool {
        let group = task.new.group.clone();
        group.is_none_or(|group| self.headroom_in(&LimitScope::Group(group), self.now.steady) > 0)
    }

    /// Returns whether a rate applies to a task.
    pub(in crate::model) fn is_rated(&self, task: &Task) -> bool {
        scopes(task).any(|scope| self.limit_for(&scope).rate.is_some())
    }

    /// Takes tokens from the bucket of a scope, if it has one.
    pub(super) fn take_tokens(&mut self, scope: LimitScope, tokens: u32) {
        if let Some(rate) = self.limit_for(&scope).rate {
            let taken = self.bucket(&scope).take(rate, tokens, self.now.steady);
            self.buckets.insert(scope, taken);
        }
    }

    /// Returns the time until a token lets a waiting task start: for one claim, or for any if it is
    /// `None`. A task of a blocked group waits for its group's token only.
    pub(in crate::model) fn next_token(&self, claim: Option<&Claim>) -> Option<Duration> {
        // Mostly every bucket has a token, which this check finds without scanning the waiting
        // tasks.
        let least = self.limits.values().filter_map(|limit| limit.rate).map(Bucket::spare).min()?;
        if self.buckets.values().all(|bucket| bucket.full_at.saturating_sub(self.now.steady) <= least) {
            return None;
        }
        let may_be_taken = |task: &&Task| {
            let is_selected =
                claim.is_none_or(|claim| claim.selects(&task.new.queue, &task.new.kind, task.new.orchestration));
            is_selected && !self.is_paused(task)
        };
        let waits_for = |task: &Task| {
            let allows = self.group_allows(task);
            scopes(task).filter(move |scope| allows || matches!(scope, LimitScope::Group(_)))
        };
        let until = |scope: LimitScope| {
            let rate = self.limit_for(&scope).rate?;
            Some(self.bucket(&scope).until_token(rate, self.now.steady)).filter(|wait| !wait.is_zero())
        };
        // Limits treat tasks with the same queue, kind and group alike, so one task of each
        // combination is enough.
        let sort = |task: &Task| (task.new.queue.clone(), task.new.kind.clone(), task.new.group.clone());
        let sorts: BTreeMap<_, &Task> = self.tasks.waiting_of_each_scope().map(|task| (sort(task), task)).collect();
        let awaited: BTreeSet<LimitScope> = sorts.into_values().filter(may_be_taken).flat_map(waits_for).collect();
        awaited.into_iter().filter_map(until).min()
    }

    /// Returns every limit with its current use, by scope. They include the concurrencies of
    /// queues.
    pub(crate) fn limit_records(&self, now: Duration) -> Vec<LimitRecord> {
        let limited =
            |(queue, settings): (&Name, &QueueSettings)| settings.concurrency.map(|_| LimitScope::Queue(queue.clone()));
        let mut scopes: Vec<LimitScope> = self.limits.keys().cloned().collect();
        scopes.extend(self.settings.iter().filter_map(limited));
        scopes.sort();
        scopes.dedup();
        scopes.into_iter().map(|scope| self.limit_record(scope, now)).collect()
    }

    /// Returns one limit with its current use. A limit on a prefix has no use, because each group
    /// has its own.
    fn limit_record(&self, scope: LimitScope, now: Duration) -> LimitRecord {
        let limit = self.limit_on(&scope);
        let counts = !matches!(scope, LimitScope::Groups(_));
        let rate = limit.rate.filter(|_| counts);
        LimitRecord {
            running: counts.then(|| self.running_in(&scope)),
            tokens: rate.map(|rate| self.bucket(&scope).tokens(rate, now)),
            scope,
            limit,
        }
    }
}

/// Returns the scopes whose limits apply to a task.
pub(in crate::model) fn scopes(task: &Task) -> impl Iterator<Item = LimitScope> + use<> {
    let (queue, kind) = (LimitScope::Queue(task.new.queue.clone()), LimitScope::Kind(task.new.kind.clone()));
    let group = task.new.group.clone().map(LimitScope::Group);
    [LimitScope::All, queue, kind].into_iter().chain(group)
}
