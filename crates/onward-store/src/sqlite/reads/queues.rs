//! Queues and their sizes.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::store::{EndedCounts, QueueRecord};
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::order::SortKey;
use crate::sqlite::commit::cache::Cache;

/// The record of a queue under construction.
struct QueueUnderConstruction {
    record: QueueRecord,
    first: Option<SortKey>,
}

impl QueueUnderConstruction {
    /// Records the first task of a ready list of the queue.
    fn begins(&mut self, line: SortKey) {
        self.first = Some(self.first.map_or(line, |first| first.min(line)));
    }
}

/// Returns every queue with its counts. Counters have most of them, so the cost does not grow with
/// the number of tasks.
pub(in crate::sqlite) fn queues(
    connection: &Connection,
    cache: &mut Cache,
    now: Timestamp,
) -> Result<Vec<QueueRecord>> {
    let mut queues = names(connection, cache, now)?;
    add_tables(connection, &mut queues)?;
    add_running(connection, &mut queues)?;
    add_memory(cache, &mut queues);
    add_first(connection, cache, &mut queues)?;
    add_ended(connection, &mut queues)?;
    let mut records = Vec::with_capacity(queues.len());
    for (_, QueueUnderConstruction { mut record, first }) in queues {
        if let Some(first) = first {
            let run_at: Option<i64> = connection
                .prepare_cached("SELECT run_at FROM task WHERE id = ?")?
                .query_row([first.task.0], |row| row.get(0))
                .optional()?;
            record.oldest_waiting = run_at.map(Timestamp::from_microseconds);
        }
        records.push(record);
    }
    records.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(records)
}

/// Returns the queues that are not deleted, without counts.
fn names(connection: &Connection, cache: &Cache, now: Timestamp) -> Result<BTreeMap<i64, QueueUnderConstruction>> {
    let mut statement = connection.prepare_cached("SELECT id, name FROM queue WHERE deleted = 0")?;
    let mut rows = statement.query([])?;
    let mut queues = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let name = Name::new(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
        let number = row.get(0)?;
        let paused = cache.pauses.queue_is_paused(&name, now);
        let settings = cache.queues.settings(number);
        let record = QueueRecord {
            name,
            blocked: 0,
            scheduled: 0,
            waiting: 0,
            running: 0,
            ended: EndedCounts::default(),
            oldest_waiting: None,
            paused,
            weight: settings.weight,
            concurrency: settings.concurrency,
            affinity_wait: settings.affinity_wait,
        };
        queues.insert(number, QueueUnderConstruction { record, first: None });
    }
    Ok(queues)
}

/// Adds the counts of the index tables, and of blocked tasks.
fn add_tables(connection: &Connection, queues: &mut BTreeMap<i64, QueueUnderConstruction>) -> Result<()> {
    let mut statement = connection.prepare_cached("SELECT queue, waiting, scheduled, blocked FROM queue_size")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(QueueUnderConstruction { record, .. }) = queues.get_mut(&row.get(0)?) {
            (record.waiting, record.scheduled, record.blocked) = (row.get(1)?, row.get(2)?, row.get(3)?);
        }
    }
    Ok(())
}

/// Counts the running tasks by the leases.
fn add_running(connection: &Connection, queues: &mut BTreeMap<i64, QueueUnderConstruction>) -> Result<()> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/running_of_queues.sql"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(QueueUnderConstruction { record, .. }) = queues.get_mut(&row.get(0)?) {
            record.running = row.get(1)?;
        }
    }
    Ok(())
}

/// Adds the counts of tasks in memory, of which there is a bounded number.
fn add_memory(cache: &Cache, queues: &mut BTreeMap<i64, QueueUnderConstruction>) {
    for (list, sort_keys) in cache.index.ready_in_memory() {
        if let Some(queue) = cache.names.sub_queue(list).and_then(|sub_queue| queues.get_mut(&sub_queue.queue)) {
            queue.record.waiting += sort_keys.len() as u64;
            sort_keys.first().into_iter().for_each(|sort_key| queue.begins(*sort_key));
        }
    }
    for list in cache.index.scheduled_in_memory() {
        if let Some(queue) = cache.names.sub_queue(list).and_then(|sub_queue| queues.get_mut(&sub_queue.queue)) {
            queue.record.scheduled += 1;
        }
    }
}

/// Finds the first task of each ready list in the tables, by one seek each.
fn add_first(connection: &Connection, cache: &Cache, queues: &mut BTreeMap<i64, QueueUnderConstruction>) -> Result<()> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/next_ready_list.sql"))?;
    let mut last = -1;
    for _ in 0..bounds::SUB_QUEUES_EXAMINED {
        let first = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, SortKey { at: row.get(1)?, task: TaskId(row.get(2)?) }));
        let Some((list, sort_key)) = statement.query_row([last], first).optional()? else { break };
        if let Some(queue) = cache.names.sub_queue(list).and_then(|sub_queue| queues.get_mut(&sub_queue.queue)) {
            queue.begins(sort_key);
        }
        last = list;
    }
    Ok(())
}

/// Adds the numbers of ended tasks in history.
fn add_ended(connection: &Connection, queues: &mut BTreeMap<i64, QueueUnderConstruction>) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT n.queue, s.state, s.in_history FROM statistics s JOIN sub_queue n ON n.id = s.sub_queue",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state = TaskState::from_code(row.get(1)?);
        let count = queues.get_mut(&row.get(0)?).and_then(|sizes| state.and_then(|state| sizes.record.ended.of(state)));
        if let Some(count) = count {
            *count += row.get::<_, u64>(2)?;
        }
    }
    Ok(())
}
