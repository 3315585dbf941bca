//! Limits that tasks of other sub-queues can use up before a task starts.

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::api::error::Result;
use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::task::{SessionId, TaskId, TaskRecord};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Claim, QueueSelection};
use crate::bounds;
use crate::rules::order::{SortKey, sort_key};
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::limits::limit_usage::ScopeNumber;
use crate::sqlite::limits::trial_shares::TrialShares;
use crate::sqlite::reads::peek::looking;
use crate::sqlite::ready::affinity_keys::preferred_sessions;

/// Returns the limit that other tasks can use up before a waiting task, the first of its list,
/// starts. The model has the rule (`contended_limit`).
pub(in crate::sqlite) fn contended_limit(
    connection: &Database<'_>,
    cache: &mut Cache,
    record: &TaskRecord,
    list: i64,
    (now, steady): (Timestamp, Duration),
) -> Result<Option<LimitScope>> {
    // No session has the number 0, so its claim takes no reserved task.
    let mut sessions = vec![SessionId(0)];
    sessions.extend(preferred_sessions(connection, cache)?);
    let orders = orders_of_queues(cache, &record.queue);
    let task = sort_key(record.priority, record.run_at, record.id);
    for session in sessions {
        for order in &orders {
            let transaction = looking(connection, cache, now, steady);
            let (left, seen) = (FxHashMap::default(), FxHashSet::default());
            let shares = TrialShares::default();
            let mut trial = Trial { transaction, session, steady, left, shares, seen, list, task };
            if let Some(position) = trial.contended(order)? {
                return Ok(scope_at(record, position));
            }
        }
    }
    Ok(None)
}

/// Returns the orders in which claims may take the tasks of queues before a task of `own`, each as
/// groups of queues. In strict mode the order within a group is known.
fn orders_of_queues(cache: &Cache, own: &Name) -> [Vec<Vec<Name>>; 2] {
    let names = cache.names.queues().map(|(name, _)| name.clone());
    let (own, others): (Vec<Name>, Vec<Name>) = names.partition(|name| name == own);
    if cache.queues.mode() == QueueMode::Strict {
        [vec![own.clone()], vec![[own, others].concat()]]
    } else {
        [vec![own.clone(), others.clone()], vec![others, own]]
    }
}

/// Returns a scope of a task by its position.
fn scope_at(record: &TaskRecord, position: usize) -> Option<LimitScope> {
    match position {
        0 => Some(LimitScope::All),
        1 => Some(LimitScope::Queue(record.queue.clone())),
        2 => Some(LimitScope::Kind(record.kind.clone())),
        _ => record.group.clone().map(LimitScope::Group),
    }
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
    /// The session that claims.
    session: SessionId,
    steady: Duration,
    /// The number of further starts in each scope that was looked at.
    left: FxHashMap<TrialScope, usize>,
    /// The fair shares after the starts so far.
    shares: TrialShares,
    /// The candidates so far. A task whose reservation is over may be in two sources, because only
    /// a sweep moves it.
    seen: FxHashSet<TaskId>,
    /// The list of the task.
    list: i64,
    /// The sort key of the task.
    task: SortKey,
}

impl Trial<'_> {
    /// Returns the position of the scope of the task that other tasks use up before it can start.
    fn contended(&mut self, order: &[Vec<Name>]) -> Result<Option<usize>> {
        order.iter().try_for_each(|queues| self.use_up(queues))?;
        self.exhausted()
    }

    /// Starts the tasks that a claim takes from some queues, until the turn of the task or until a
    /// limit of the task is used up.
    fn use_up(&mut self, queues: &[Name]) -> Result<()> {
        let choice = QueueChoice { mode: Some(QueueMode::Strict), ..QueueChoice::default() };
        let queues = QueueSelection::Only(queues.iter().map(|queue| (queue.clone(), usize::MAX)).collect());
        let claim = Claim { queues, choice, ..Claim::any(self.session, usize::MAX) };
        let mut candidates = self.transaction.trial_candidates(&claim, std::mem::take(&mut self.shares))?;
        let mut started = 0;
        while started < bounds::AHEAD
            && self.exhausted()?.is_none()
            && let Some(candidate) = self.transaction.next_candidate(&mut candidates)?
        {
            candidates.pass(candidate);
            if candidate.sort_key == self.task {
                break;
            }
            if !self.seen.insert(candidate.sort_key.task) {
                continue;
            }
            if self.start(candidate.list)? {
                started += 1;
                self.transaction.start_on_trial(&mut candidates, candidate)?;
            }
        }
        self.shares = candidates.trial.unwrap_or_default();
        Ok(())
    }

    /// Starts a task of a list. Returns false if a limit or a reservation holds it back.
    fn start(&mut self, list: i64) -> Result<bool> {
        let Transaction { connection, cache, now, .. } = &mut self.transaction;
        let reserved = cache.reservation(connection, list, *now)?;
        let is_for_another = reserved.is_some_and(|(preferred, _)| preferred != self.session);
        if is_for_another || self.first_exhausted(list)?.is_some() {
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

    /// Returns the position of the first scope of a list in which nothing more may start.
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

    /// Returns the number of tasks that may still start in a scope, after those that the trial has
    /// started.
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
