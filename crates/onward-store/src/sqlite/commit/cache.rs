//! The writer's cache between transactions; all of it can be read again from the file.

use std::time::Duration;

use rusqlite::OptionalExtension;

use crate::api::error::Result;
use crate::api::limit::LimitScope;
use crate::bounds;
use crate::rules;
use crate::rules::share::FairShareTag;
use crate::sqlite::columns::meta::exists;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::deferred_tags::NewTags;
use crate::sqlite::commit::names::{FIRST_WITH_AFFINITY, Names};
use crate::sqlite::limits::deferred_counters::ClockReading;
use crate::sqlite::limits::limit_usage::{Limits, ScopeNumber};
use crate::sqlite::limits::pauses::Pauses;
use crate::sqlite::limits::queue_settings::Queues;
use crate::sqlite::ready::affinity_keys::AffinityKeys;
use crate::sqlite::ready::affinity_lists::head_list_of;
use crate::sqlite::ready::claimable_heads::{ClaimableHead, ClaimableHeads};
use crate::sqlite::ready::index::Index;
use crate::sqlite::row_cache::running_tasks::RunningTasks;

/// The parts of the cache that stay valid when another process has written.
#[derive(Default)]
struct SurvivingParts {
    names: Option<Names>,
    limits: Option<Limits>,
    refresh_groups: bool,
    /// The time at which the reservations of affinity lists were last checked.
    looked_at: Option<i64>,
    pruned_to: i64,
}

/// The writer's cache. It is dropped and read again when another process has written, and when a
/// transaction was rolled back.
#[derive(Debug)]
pub(in crate::sqlite) struct Cache {
    pub(in crate::sqlite) names: Names,
    pub(in crate::sqlite) index: Index,
    pub(in crate::sqlite) tags: NewTags,
    pub(in crate::sqlite) pauses: Pauses,
    pub(in crate::sqlite) queues: Queues,
    pub(in crate::sqlite) limits: Limits,
    pub(in crate::sqlite) heads: ClaimableHeads,
    pub(in crate::sqlite) affinity: AffinityKeys,
    /// True if the next sweep must check every group that waits for a token, regardless of the time
    /// at which its token was expected.
    pub(in crate::sqlite) refresh_groups: bool,
    pub(in crate::sqlite) running_rows: RunningTasks,
    /// True if a key may still be reserved although its task has ended.
    pub(in crate::sqlite) retained_keys: bool,
    /// True if a task may wait for another task to end, because it was submitted with `requeue`.
    pub(in crate::sqlite) successors: bool,
    /// True if some dependents of ended tasks have not been updated yet.
    pub(in crate::sqlite) has_unpropagated_ends: bool,
    /// The time at which the next attempt that awaits an external completion becomes overdue.
    pub(in crate::sqlite) next_overdue: Option<i64>,
    /// The time at which the next pending batch becomes ready if no more items arrive.
    pub(in crate::sqlite) next_ready_batch: Option<i64>,
    /// The number of the next task. Numbers are never used again: every task that leaves `task`
    /// leaves a log row, and that row carries the number of the next task.
    pub(in crate::sqlite) next_task: i64,
    /// The number of the next log row.
    pub(in crate::sqlite) next_log: i64,
    /// Every end of a task that is logged before this row was handled by a prune: the task was
    /// removed, or it has a retention of its own.
    pub(in crate::sqlite) pruned_to: i64,
    /// The number of the next tag; `None` until a tag is first written.
    pub(in crate::sqlite) next_tag: Option<i64>,
    /// The latest day on which a task ended; `None` until it is first needed.
    pub(in crate::sqlite) day: Option<i64>,
}

impl Cache {
    /// Reads the cache from the file. Checks all groups again, because a process may have died
    /// between two commits and left their state behind.
    pub(in crate::sqlite) fn load(connection: &Database<'_>, now: ClockReading) -> Result<Self> {
        Self::load_with(connection, SurvivingParts { refresh_groups: true, ..SurvivingParts::default() }, now)
    }

    /// Reads again what another process may have changed.
    pub(super) fn reload(self, connection: &Database<'_>, now: ClockReading) -> Result<Self> {
        let known = SurvivingParts {
            names: Some(self.names),
            limits: Some(self.limits),
            refresh_groups: self.refresh_groups,
            looked_at: self.affinity.looked_at,
            pruned_to: self.pruned_to,
        };
        Self::load_with(connection, known, now)
    }

    /// Reads everything that is not already known to be up to date.
    fn load_with(connection: &Database<'_>, known: SurvivingParts, now: ClockReading) -> Result<Self> {
        let last_task: Option<i64> =
            connection.prepare_cached("SELECT max(id) FROM task")?.query_row([], |row| row.get(0))?;
        let last_log: Option<(i64, i64)> = connection
            .prepare_cached("SELECT id, next_task FROM log ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (last_log, next_task) = last_log.unwrap_or((0, 1));
        let names = Names::load(connection, known.names)?;
        let mut index = Index::load(connection)?;
        let queues = Queues::load(connection)?;
        let mut limits =
            Limits::load(connection, queues.configuration(), known.limits, |scope| scope_number(&names, scope))?;
        limits.recompute_counters(connection, &names, now)?;
        Ok(Self {
            heads: heads(connection, &names, &mut index, &mut limits)?,
            names,
            index,
            tags: NewTags::load(connection)?,
            pauses: Pauses::load(connection)?,
            queues,
            limits,
            affinity: AffinityKeys::load(connection, known.looked_at)?,
            refresh_groups: known.refresh_groups,
            running_rows: RunningTasks::default(),
            has_unpropagated_ends: exists(connection, "SELECT EXISTS (SELECT 1 FROM unpropagated_end)")?,
            next_overdue: next_overdue(connection)?,
            next_ready_batch: next_ready_batch(connection)?,
            retained_keys: exists(connection, "SELECT EXISTS (SELECT 1 FROM retained_key)")?,
            successors: exists(connection, "SELECT EXISTS (SELECT 1 FROM successor)")?,
            next_task: next_task.max(last_task.unwrap_or(0) + 1),
            next_log: last_log + 1,
            pruned_to: known.pruned_to,
            next_tag: None,
            day: None,
        })
    }
}

impl Cache {
    /// Returns the fair-share tag of a list among those of its queue.
    pub(in crate::sqlite) fn share_tag_of(&mut self, connection: &Database<'_>, list: i64) -> Result<FairShareTag> {
        share_tag_of(connection, &self.names, &mut self.limits, list)
    }

    /// Returns the lists of a head list whose groups have received a token since they were last
    /// checked.
    pub(in crate::sqlite) fn lists_with_tokens(
        &mut self,
        connection: &Database<'_>,
        head_list: i64,
        now: Duration,
    ) -> Result<Vec<i64>> {
        let mut lists = Vec::new();
        for (_, group) in self.heads.tokens_due(connection, i64::MAX, bounds::GROUPS)? {
            let state = self.limits.group(connection, group)?;
            if state.usage.room(now) > 0 && !self.pauses.group_is_paused(&state.name) {
                let of_group = self.names.sub_queues_of_group(group).iter().copied();
                lists.extend(of_group.filter(|list| self.names.ungrouped_of(*list) == head_list));
            }
        }
        Ok(lists)
    }
}

/// Returns the fair-share tag of a sub-queue's group; the default if no groups share queues.
fn share_tag_of(connection: &Database<'_>, names: &Names, limits: &mut Limits, number: i64) -> Result<FairShareTag> {
    if !limits.fair_shares.are_shared() {
        return Ok(FairShareTag::default());
    }
    let Some(sub_queue) = names.sub_queue(number) else { return Ok(FairShareTag::default()) };
    let group = names.group_of(number);
    let tags = limits.fair_shares.tags(connection, sub_queue.queue, group)?;
    let is_below_minimum =
        group.map_or(Ok(false), |group| limits.group(connection, group).map(|state| state.is_below_minimum))?;
    Ok(rules::share::fair_share_tag(tags, is_below_minimum))
}

/// Returns the time at which the next attempt that awaits an external completion becomes overdue.
pub(in crate::sqlite) fn next_overdue(connection: &Database<'_>) -> Result<Option<i64>> {
    let mut statement =
        connection.prepare_cached("SELECT min(until) FROM awaited_completion WHERE until IS NOT NULL")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Returns the time at which the next pending batch is ready if no more items arrive.
pub(in crate::sqlite) fn next_ready_batch(connection: &Database<'_>) -> Result<Option<i64>> {
    Ok(connection.prepare_cached("SELECT min(ready_at) FROM pending_batch")?.query_row([], |row| row.get(0))?)
}

/// Returns the number of a limit's scope; `None` for a group or all groups, which have none.
pub(in crate::sqlite) fn scope_number(names: &Names, scope: &LimitScope) -> Option<ScopeNumber> {
    match scope {
        LimitScope::All => Some(ScopeNumber::All),
        LimitScope::Queue(name) => names.queue(name).map(ScopeNumber::Queue),
        LimitScope::Kind(name) => names.kind(name).map(ScopeNumber::Kind),
        LimitScope::Group(_) | LimitScope::Groups(_) => None,
    }
}

/// Returns the claimable heads. In a shared file they are in the tables; else they are found from
/// the ready lists.
fn heads(connection: &Database<'_>, names: &Names, index: &mut Index, limits: &mut Limits) -> Result<ClaimableHeads> {
    if index.is_shared() {
        return Ok(ClaimableHeads::Tables);
    }
    let mut heads = ClaimableHeads::default();
    for list in index.grouped_lists() {
        let (group, sort_key) = (names.group_of(list), index.first_ready(connection, list)?);
        let Some(sort_key) = sort_key.filter(|_| group.is_some() || list >= FIRST_WITH_AFFINITY) else { continue };
        if let Some(group) = group {
            let state = limits.group(connection, group)?;
            if let Some(at) = state.token_at {
                heads.add_token_due(connection, at, group)?;
            }
            if state.blocked {
                continue;
            }
        }
        let share_tag = share_tag_of(connection, names, limits, list)?;
        let head_list = head_list_of(connection, names, list)?;
        heads.insert(connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
    }
    Ok(heads)
}
