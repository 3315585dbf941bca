//! Reads everything except tasks from its tables.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rusqlite::Connection;

use crate::api::error::Result;
use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::{BatchKey, UnpropagatedEnd};
use crate::postgres::{ChangeSet, DayCounts, PendingBatchBody, SharesBody, SmallStateRow, StoreSettings};
use crate::rules::history::day_of;
use crate::sqlite::columns::meta::meta;
use crate::sqlite::columns::schedules;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::limits::limit_usage::Limits;
use crate::sqlite::limits::pauses::Pauses;
use crate::sqlite::limits::queue_settings::Queues;
use crate::sqlite::reads::{SubQueueNames, history, statistics};

/// Reads the settings into a piece.
pub(in crate::sqlite) fn read(connection: &Connection, now: Timestamp, piece: &mut ChangeSet) -> Result<()> {
    let database = Database::from(connection);
    let items = &mut piece.items;
    let queues = names(connection, items)?;
    let settings = Queues::load(&database)?;
    for (number, name) in &queues {
        let of_queue = settings.settings(*number);
        if of_queue != crate::api::queue::QueueSettings::default() {
            items.push(SmallStateRow::new("settings", name, &of_queue)?);
        }
    }
    let (configuration, mode) = (settings.configuration(), settings.mode());
    let limits = Limits::load(&database, configuration, None, |_| None)?;
    for (scope, limit) in limits.configured() {
        items.push(SmallStateRow::new("limit", scope, limit)?);
    }
    for pause in Pauses::load(&database)?.records() {
        items.push(SmallStateRow::new("pause", &pause.scope, &pause.until)?);
    }
    for schedule in schedules::read(connection, "ORDER BY name", [])? {
        items.push(SmallStateRow::new("schedule", &schedule.schedule.name, &schedule)?);
    }
    let schedule_revision = meta(&database, "schedule_revision")?.cast_unsigned();
    items.push(SmallStateRow::sole("store", &StoreSettings { mode, configuration, schedule_revision })?);
    buckets(connection, items)?;
    shares(connection, &queues, items)?;
    pending_batches(connection, items)?;
    unpropagated_ends(connection, items)?;
    piece.statistics = statistics(connection)?;
    let day = |day: crate::api::history::QueueDay| DayCounts {
        day: day_of(day.day),
        queue: day.queue.to_string(),
        ended: day.ended,
    };
    piece.days = history(connection, now, crate::bounds::HISTORY_DAYS)?.into_iter().map(day).collect();
    Ok(())
}

/// Adds the names of queues, kinds and groups. Returns the queues, including deleted ones.
fn names(connection: &Connection, items: &mut Vec<SmallStateRow>) -> Result<BTreeMap<i64, Name>> {
    let mut queues = BTreeMap::new();
    for (sort, sql) in [
        ("queue", "SELECT id, name, deleted FROM queue"),
        ("kind", "SELECT id, name, 0 FROM kind"),
        ("group", "SELECT id, name, 0 FROM task_group"),
    ] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name = Name::new(row.get::<_, String>(1)?)?;
            if !row.get::<_, bool>(2)? {
                items.push(SmallStateRow::named(sort, &name));
            }
            if sort == "queue" {
                queues.insert(row.get(0)?, name);
            }
        }
    }
    Ok(queues)
}

/// Adds the token buckets, by scope.
fn buckets(connection: &Connection, items: &mut Vec<SmallStateRow>) -> Result<()> {
    let sql = "SELECT scope, name, full_at FROM task_limit WHERE full_at IS NOT NULL AND rate_tasks IS NOT NULL AND scope < 3 \
               UNION ALL SELECT 3, name, full_at FROM task_group WHERE full_at IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        let scope = match row.get::<_, i64>(0)? {
            0 => LimitScope::All,
            1 => LimitScope::Queue(Name::new(name)?),
            2 => LimitScope::Kind(Name::new(name)?),
            _ => LimitScope::Group(Name::new(name)?),
        };
        let full_at = Duration::from_nanos(row.get::<_, i64>(2)?.unsigned_abs());
        items.push(SmallStateRow::new("bucket", &scope, &full_at)?);
    }
    Ok(())
}

/// Reads the virtual times of groups, one row of the small state for each queue.
fn shares(connection: &Connection, queues: &BTreeMap<i64, Name>, items: &mut Vec<SmallStateRow>) -> Result<()> {
    let sql = "SELECT s.queue, s.task_group, g.name, s.guaranteed, s.shared FROM fair_share s \
               LEFT JOIN task_group g ON g.id = s.task_group ORDER BY s.queue, s.task_group";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut by_queue: BTreeMap<i64, SharesBody> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let shares = by_queue.entry(row.get(0)?).or_insert_with(|| SharesBody { now: (0, 0), tags: Vec::new() });
        let time = (row.get(3)?, row.get(4)?);
        match row.get::<_, i64>(1)? {
            crate::sqlite::limits::fair_shares::QUEUE => shares.now = time,
            _ => shares.tags.push((row.get::<_, Option<String>>(2)?.map(Name::new).transpose()?, time)),
        }
    }
    for (queue, shares) in by_queue {
        if let Some(name) = queues.get(&queue) {
            items.push(SmallStateRow::new("fair_share", name, &shares)?);
        }
    }
    Ok(())
}

/// Reads the pending batches with their items.
fn pending_batches(connection: &Connection, items: &mut Vec<SmallStateRow>) -> Result<()> {
    let mut sub_queues = SubQueueNames::new(connection);
    let sql = "SELECT first_item, items, bytes, began_at, size, deadline, ready_at, sub_queue FROM pending_batch ORDER BY sub_queue";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let moment = |at| Ok::<_, rusqlite::Error>(Timestamp::from_microseconds(row.get(at)?));
        let sub_queue: i64 = row.get(7)?;
        let mut pending_items = connection.prepare_cached("SELECT task FROM pending_item WHERE sub_queue = ?")?;
        let tasks = pending_items.query_map([sub_queue], |row| row.get(0).map(TaskId))?;
        let body = PendingBatchBody {
            began_with: TaskId(row.get(0)?),
            items: row.get(1)?,
            bytes: row.get::<_, i64>(2)?.cast_unsigned(),
            began_at: moment(3)?,
            size: row.get(4)?,
            deadline: moment(5)?,
            ready_at: moment(6)?,
            tasks: tasks.collect::<rusqlite::Result<BTreeSet<TaskId>>>()?,
        };
        let names = sub_queues.of(sub_queue)?;
        let line: BatchKey = (names.queue, names.kind, names.group);
        items.push(SmallStateRow::new("pending_batch", &line, &body)?);
    }
    Ok(())
}

/// Adds the ended tasks whose dependents are not all updated.
fn unpropagated_ends(connection: &Connection, items: &mut Vec<SmallStateRow>) -> Result<()> {
    let sql = "SELECT task, state, up_to, next_child, next_item FROM unpropagated_end ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let line = statement.query_map([], |row| {
        let id = |at| row.get(at).map(TaskId);
        let ended = TaskState::from_code(row.get(1)?);
        Ok(UnpropagatedEnd { task: id(0)?, ended, up_to: id(2)?, next_child: id(3)?, next_item: id(4)? })
    })?;
    let line: VecDeque<UnpropagatedEnd> = line.collect::<rusqlite::Result<_>>()?;
    if !line.is_empty() {
        items.push(SmallStateRow::sole("unpropagated_ends", &line)?);
    }
    Ok(())
}
