//! The reasons why a task does not run.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::limit::{Limit, LimitScope};
use crate::api::orchestration::Hold;
use crate::api::reason::WaitReason;
use crate::api::task::{SessionId, TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::bounds;
use crate::rules;
use crate::rules::limit::Bucket;
use crate::rules::order::{self, SortKey};
use crate::rules::why::{LimitUse, OrchestrationFacts, WaitFacts, reasons};
use crate::sqlite::columns::awaited_events::names;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::limits::limit_usage::{ScopeNumber, Usage};
use crate::sqlite::reads::contention::contended_limit;
use crate::sqlite::reads::sessions;
use crate::sqlite::reads::task::task;

/// Returns the reasons why a task waits. `ended` has the ended processes that still have sessions.
pub(in crate::sqlite) fn why(
    connection: &Database<'_>,
    cache: &mut Cache,
    id: TaskId,
    (now, steady): (Timestamp, Duration),
    ended: &BTreeSet<String>,
) -> Result<Option<Vec<WaitReason>>> {
    let Some(record) = task(connection, id)? else { return Ok(None) };
    let is_waiting = record.state == TaskState::Waiting;
    let (pauses, limits) = (pauses(cache, &record), limit_uses(connection, cache, &record)?);
    let reserved = if is_waiting { reserved(connection, cache, &record, now)? } else { None };
    let ahead = if is_waiting { ahead(connection, cache, &record)? } else { 0 };
    let groups_ahead = groups_ahead(connection, cache, &record, steady)?;
    let is_next = is_waiting && ahead + groups_ahead == 0 && reserved.is_none() && pauses.is_empty();
    let is_limited = is_next && !limits.is_empty();
    let contended = if is_limited { contended(connection, cache, &record, (now, steady))? } else { None };
    let facts = WaitFacts {
        task: id,
        kind: record.kind.clone(),
        queue: record.queue.clone(),
        state: record.state,
        run_at: record.run_at,
        expires_at: record.expires_at,
        deadline: record.deadline,
        blocked_by: record.blocked_by.clone(),
        awaited: if record.state == TaskState::Blocked { awaited(connection, id)? } else { None },
        orchestration: orchestration(connection, &record)?,
        aggregated: why_aggregated(connection, &record)?,
        pauses,
        limits,
        contended,
        reserved,
        ahead,
        groups_ahead,
        sessions: sessions::workers(connection, ended, steady)?,
    };
    Ok(Some(reasons(&facts, now, steady)))
}

/// Returns the number of the claim that awaits an external completion, and its latest time.
fn awaited(connection: &Database<'_>, task: TaskId) -> Result<Option<(u32, Option<Timestamp>)>> {
    let mut statement = connection.prepare_cached("SELECT claim, until FROM awaited_completion WHERE task = ?")?;
    let row =
        |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.map(Timestamp::from_microseconds)));
    Ok(statement.query_row([task.0], row).optional()?)
}

/// Returns the state of a live orchestration.
fn orchestration(connection: &Database<'_>, record: &TaskRecord) -> Result<Option<OrchestrationFacts>> {
    if !record.orchestration || record.state.is_ended() {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(
        "SELECT length > 0, version, hold, EXISTS (SELECT 1 FROM message m WHERE m.task = i.task), awaits
         FROM instance i WHERE i.task = ?",
    )?;
    let row = |row: &rusqlite::Row<'_>| {
        let facts = OrchestrationFacts {
            has_begun: row.get(0)?,
            version: row.get(1)?,
            hold: Hold::from_code(row.get(2)?),
            has_messages: row.get(3)?,
            kept_until: record.expires_at,
            ..OrchestrationFacts::default()
        };
        Ok((facts, row.get(4)?))
    };
    let read: Option<(OrchestrationFacts, Option<String>)> = statement.query_row([record.id.0], row).optional()?;
    let (facts, awaits) = read.unwrap_or_default();
    let tasks = if facts.has_begun { awaited_tasks(connection, record.id)? } else { Vec::new() };
    Ok(Some(OrchestrationFacts { awaits: names(awaits.as_deref())?, tasks, ..facts }))
}

/// Returns the first live tasks whose ends an orchestration receives.
fn awaited_tasks(connection: &Database<'_>, parent: TaskId) -> Result<Vec<TaskId>> {
    let mut statement = connection.prepare_cached(
        "SELECT c.child FROM child c CROSS JOIN task t ON t.id = c.child
         WHERE c.parent = ? AND json_extract(t.options, '$.report') IS NOT NULL ORDER BY c.child LIMIT ?",
    )?;
    let tasks =
        statement.query_map(params![parent.0, bounds::NAMED_TASKS.cast_signed()], |row| row.get(0).map(TaskId))?;
    Ok(tasks.collect::<rusqlite::Result<_>>()?)
}

/// Returns the reason why an item waits: it is in a pending batch, or its batch has not ended.
fn why_aggregated(connection: &Database<'_>, record: &TaskRecord) -> Result<Option<WaitReason>> {
    if record.aggregate.is_none() || record.state != TaskState::Blocked {
        return Ok(None);
    }
    if let Some(batch) = record.batch {
        return Ok(Some(WaitReason::InBatch { batch }));
    }
    let mut statement = connection.prepare_cached(
        "SELECT c.items, c.size, c.ready_at FROM task t JOIN pending_batch c ON c.sub_queue = t.sub_queue WHERE t.id = ?",
    )?;
    let reason = statement.query_row([record.id.0], |row| {
        let ready_at = Timestamp::from_microseconds(row.get(2)?);
        Ok(WaitReason::PendingBatch { items: row.get(0)?, size: row.get(1)?, ready_at })
    });
    Ok(reason.optional()?)
}

/// Returns the pauses that apply to a task.
fn pauses(cache: &Cache, record: &TaskRecord) -> Vec<(Scope, Option<Timestamp>)> {
    let mut scopes = vec![Scope::All, Scope::Queue(record.queue.clone()), Scope::Kind(record.kind.clone())];
    scopes.extend(record.group.clone().map(Scope::Group));
    let mut pauses = Vec::new();
    for scope in scopes {
        let found = cache.pauses.records().into_iter().find(|pause| pause.scope == scope);
        pauses.extend(found.map(|pause| (pause.scope, pause.until)));
    }
    pauses
}

/// Returns the limits that apply to a task.
fn limit_uses(connection: &Database<'_>, cache: &mut Cache, record: &TaskRecord) -> Result<Vec<LimitUse>> {
    let mut uses = Vec::new();
    uses.extend(cache.limits.usage(ScopeNumber::All).map(|usage| used(LimitScope::All, usage)));
    uses.extend(queue_use(cache, record));
    let kind = cache.names.kind(&record.kind).and_then(|kind| cache.limits.usage(ScopeNumber::Kind(kind)));
    uses.extend(kind.map(|usage| used(LimitScope::Kind(record.kind.clone()), usage)));
    let Some((group, name)) = record.group.as_ref().and_then(|name| Some((cache.names.group(name)?, name))) else {
        return Ok(uses);
    };
    let usage = cache.limits.group(connection, group)?.usage;
    let set_on = rules::limit::limit_of_group(cache.limits.configured(), name).map(|(scope, _)| scope.clone());
    uses.extend(set_on.map(|scope| used(scope, &usage)));
    Ok(uses)
}

/// Returns the use of a queue's limits. Its concurrency is stored apart from its rate.
fn queue_use(cache: &Cache, record: &TaskRecord) -> Option<LimitUse> {
    let queue = cache.names.queue(&record.queue)?;
    let usage = cache.limits.usage(ScopeNumber::Queue(queue));
    let concurrency = cache.queues.settings(queue).concurrency;
    let limit = Limit { concurrency, rate: usage.and_then(|usage| usage.limit.rate), ..Limit::default() };
    let running = cache.queues.running(queue).or_else(|| usage.map(|usage| usage.running)).unwrap_or(0);
    let bucket = usage.map_or(Bucket::default(), |usage| usage.bucket);
    let scope = LimitScope::Queue(record.queue.clone());
    (!limit.is_none()).then(|| LimitUse { scope, limit, running: running.unsigned_abs(), bucket })
}

/// Returns a limit with its use.
fn used(scope: LimitScope, usage: &Usage) -> LimitUse {
    LimitUse { scope, limit: usage.limit, running: usage.running.unsigned_abs(), bucket: usage.bucket }
}

/// Returns the sub-queue of a live task.
fn sub_queue_of(connection: &Database<'_>, task: TaskId) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT sub_queue FROM task WHERE id = ?")?;
    Ok(statement.query_row(params![task.0], |row| row.get(0)).optional()?)
}

/// Returns the limit that other tasks can use up before a waiting task, the first of its list.
fn contended(
    connection: &Database<'_>,
    cache: &mut Cache,
    record: &TaskRecord,
    now: (Timestamp, Duration),
) -> Result<Option<LimitScope>> {
    let Some(sub_queue) = sub_queue_of(connection, record.id)? else { return Ok(None) };
    let list = cache.list_of(connection, sub_queue, record.affinity.as_ref())?;
    contended_limit(connection, cache, record, list, now)
}

/// Returns the number of groups of its queue and kind that go before its own.
fn groups_ahead(connection: &Database<'_>, cache: &mut Cache, record: &TaskRecord, steady: Duration) -> Result<u64> {
    if record.state != TaskState::Waiting || !cache.limits.fair_shares.are_shared() {
        return Ok(0);
    }
    let Some(sub_queue) = sub_queue_of(connection, record.id)? else { return Ok(0) };
    let (head_list, share_tag) = (cache.names.ungrouped_of(sub_queue), cache.share_tag_of(connection, sub_queue)?);
    let mut groups = cache.heads.count_before(connection, head_list, share_tag)?;
    let mut others = cache.lists_with_tokens(connection, head_list, steady)?;
    others.push(head_list);
    for other in others.into_iter().filter(|other| *other != sub_queue) {
        let is_ahead =
            cache.share_tag_of(connection, other)? < share_tag && cache.index.first_ready(connection, other)?.is_some();
        groups += u64::from(is_ahead);
    }
    Ok(groups.min(bounds::AHEAD))
}

/// Returns the session for which the list of a task is reserved, and the end of the reservation.
pub(in crate::sqlite) fn reserved(
    connection: &Database<'_>,
    cache: &mut Cache,
    record: &TaskRecord,
    now: Timestamp,
) -> Result<Option<(SessionId, Timestamp)>> {
    if record.affinity.is_none() {
        return Ok(None);
    }
    let Some(sub_queue) = sub_queue_of(connection, record.id)? else { return Ok(None) };
    let list = cache.list_of(connection, sub_queue, record.affinity.as_ref())?;
    cache.reservation(connection, list, now)
}

/// Returns the number of tasks before this one in its list, at most [`bounds::AHEAD`], which keeps
/// it cheap.
fn ahead(connection: &Database<'_>, cache: &mut Cache, record: &TaskRecord) -> Result<u64> {
    let Some(sub_queue) = sub_queue_of(connection, record.id)? else { return Ok(0) };
    let own: SortKey = order::sort_key(record.priority, record.run_at, record.id);
    let most = usize::try_from(bounds::AHEAD).unwrap_or(usize::MAX);
    let list = cache.list_of(connection, sub_queue, record.affinity.as_ref())?;
    let first = cache.index.next_ready(connection, list, None, most)?;
    Ok(first.iter().take_while(|sort_key| **sort_key < own).count() as u64)
}
