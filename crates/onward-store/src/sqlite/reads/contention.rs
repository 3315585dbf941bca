//! Limits that tasks of other sub-queues can use up before a task starts.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::task::{SessionId, TaskRecord};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Claim, QueueSelection};
use crate::bounds;
use crate::rules::order::{SortKey, sort_key};
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::ScopeNumber;
use crate::sqlite::reads::peek::looking;

/// Returns the limit that other tasks can use up before a waiting task, the first of its list,
/// starts. The model has the rule (`contended_limit`).
pub(in crate::sqlite) fn contended_limit(
    connection: &Database<'_>,
    cache: &mut Cache,
    record: &TaskRecord,
    list: i64,
    (now, steady): (Timestamp, Duration),
) -> Result<Option<LimitScope>> {
    let transaction = looking(connection, cache, now, steady);
    let task = sort_key(record.priority, record.run_at, record.id);
    let mut trial = Trial { transaction, steady, left: FxHashMap::default(), list, task };
    if trial.exhausted()?.is_some() {
        return Ok(None);
    }
    trial.use_up(vec![record.queue.clone()], |_, _| true)?;
    if trial.exhausted()?.is_none() {
        let queues = trial.transaction.cache.names.queues().map(|(name, _)| name);
        let others = queues.filter(|name| **name != record.queue).cloned().collect();
        trial.use_up(others, Trial::is_before_in_other_queue)?;
    }
    let scope = |position| match position {
        0 => Some(LimitScope::All),
        1 => Some(LimitScope::Queue(record.queue.clone())),
        2 => Some(LimitScope::Kind(record.kind.clone())),
        _ => record.group.clone().map(LimitScope::Group),
    };
    Ok(trial.exhausted()?.and_then(scope))
}

/// A scope that a limit may be set on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TrialScope {
    Numbered(ScopeNumber),
    Group(i64),
}

/// Starts on trial, which change nothing.
struct Trial<'a> {
    transaction: Transaction<'a>,
    steady: Duration,
    /// The number of further starts in each scope that was looked at.
    left: FxHashMap<TrialScope, usize>,
    /// The list of the task.
    list: i64,
    /// The sort key of the task.
    task: SortKey,
}

impl Trial<'_> {
    /// Starts the tasks that a claim takes from some queues, until the turn of the task or until a
    /// limit of the task is used up.
    fn use_up(&mut self, queues: Vec<Name>, is_before: impl Fn(&Self, (i64, SortKey)) -> bool) -> Result<()> {
        let choice = QueueChoice { mode: Some(QueueMode::Strict), ..QueueChoice::default() };
        let queues = QueueSelection::Only(queues.into_iter().map(|queue| (queue, usize::MAX)).collect());
        let claim = Claim { queues, choice, ..Claim::any(SessionId(0), usize::MAX) };
        let mut candidates = self.transaction.peek_candidates(&claim)?;
        let mut started = 0;
        while started < bounds::AHEAD
            && self.exhausted()?.is_none()
            && let Some(candidate) = self.transaction.next_candidate(&mut candidates)?
        {
            candidates.pass(candidate);
            if candidate.sort_key == self.task || !is_before(self, (candidate.list, candidate.sort_key)) {
                break;
            }
            started += u64::from(self.start(candidate.list)?);
        }
        Ok(())
    }

    /// Returns whether a task of another queue may start before the task.
    fn is_before_in_other_queue(&self, (list, sort_key): (i64, SortKey)) -> bool {
        let cache = &self.transaction.cache;
        let queue = |list| cache.names.sub_queue(list).map_or(0, |sub_queue| sub_queue.queue);
        let weight = |list| cache.queues.weight(queue(list));
        let is_earlier = cache.limits.fair_shares.are_shared() || sort_key < self.task;
        cache.queues.mode() != QueueMode::Strict
            || weight(list) > weight(self.list)
            || weight(list) == weight(self.list) && is_earlier
    }

    /// Starts a task of a list. Returns false if a limit or a reservation holds it back.
    fn start(&mut self, list: i64) -> Result<bool> {
        let Transaction { connection, cache, now, .. } = &mut self.transaction;
        if cache.reservation(connection, list, *now)?.is_some() || self.first_exhausted(list)?.is_some() {
            return Ok(false);
        }
        for scope in self.scopes(list).into_iter().flatten() {
            self.left.entry(scope).and_modify(|left| *left = left.saturating_sub(1));
        }
        Ok(true)
    }

    /// Returns the position of the first scope of the task in which nothing more may start.
    fn exhausted(&mut self) -> Result<Option<usize>> {
        self.first_exhausted(self.list)
    }

    fn first_exhausted(&mut self, list: i64) -> Result<Option<usize>> {
        for (position, scope) in self.scopes(list).into_iter().enumerate() {
            if let Some(scope) = scope
                && self.left_in(scope)? == 0
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Returns the scopes of a list: everything, its queue, its kind, and its group if it has one.
    fn scopes(&self, list: i64) -> [Option<TrialScope>; 4] {
        let names = &self.transaction.cache.names;
        let Some(sub_queue) = names.sub_queue(list) else { return [None; 4] };
        let numbered = |scope| Some(TrialScope::Numbered(scope));
        let group = Some(sub_queue.group).filter(|group| *group > 0).map(TrialScope::Group);
        let (queue, kind) = (ScopeNumber::Queue(sub_queue.queue), ScopeNumber::Kind(sub_queue.kind));
        [numbered(ScopeNumber::All), numbered(queue), numbered(kind), group]
    }

    fn left_in(&mut self, scope: TrialScope) -> Result<usize> {
        if let Some(left) = self.left.get(&scope) {
            return Ok(*left);
        }
        let (cache, steady) = (&mut self.transaction.cache, self.steady);
        let room = match scope {
            TrialScope::Group(group) => cache.limits.group(self.transaction.connection, group)?.usage.room(steady),
            TrialScope::Numbered(number) => {
                let room = cache.limits.usage(number).map_or(usize::MAX, |usage| usage.room(steady));
                match number {
                    ScopeNumber::Queue(queue) => cache.queues.room(queue).unwrap_or(usize::MAX).min(room),
                    ScopeNumber::All | ScopeNumber::Kind(_) => room,
                }
            }
        };
        self.left.insert(scope, room);
        Ok(room)
    }
}
