//! Converts rows to records.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use bytes::Bytes;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::api::error::{Error, Result};
use crate::api::result::TaskResult;
use crate::api::task::{AttemptError, ByteProgress, Priority, Progress, SessionId, TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::id_values;
use crate::sqlite::reads::sub_queue_names::{NamesOfSubQueue, SubQueueNames};

/// The columns of a live task, in the order that [`read`] expects.
pub(in crate::sqlite) const LIVE: &str = "t.id, t.sub_queue, \
    CASE WHEN l.first IS NOT NULL THEN 3 WHEN t.scheduled = 1 THEN 1 WHEN t.scheduled = 2 THEN 9 ELSE 2 END, t.priority, t.key, t.submitted_at, \
    t.run_at, t.expires_at, t.attempts + (l.first IS NOT NULL), coalesce(l.started_at, t.started_at), NULL, l.session, \
    t.cancel_requested > 0, t.options";

/// The columns of an ended task, in the order that [`read`] expects.
pub(in crate::sqlite) const ENDED: &str = "t.id, t.sub_queue, t.state, t.priority, t.key, t.submitted_at, t.run_at, t.expires_at, \
    t.attempts, t.started_at, t.finished_at, NULL, \
    t.cancel_requested > 0, t.options";

/// The source of live tasks, joined with the row of `lease` that covers each.
pub(super) const FROM_LIVE: &str = "task t LEFT JOIN lease l ON l.first = (SELECT max(first) FROM lease WHERE first <= t.id) \
    AND l.last >= t.id";

/// The source of ended tasks.
pub(super) const FROM_ENDED: &str = "history t";

/// Reads a record without its errors and progress. Payload and result are the last two columns, if
/// the query selects them.
pub(in crate::sqlite) fn read(
    row: &Row<'_>,
    sub_queues: &mut SubQueueNames<'_>,
    with_payload: bool,
) -> Result<TaskRecord> {
    let options: TaskOptions = row.get(13)?;
    let NamesOfSubQueue { kind, queue, group } = sub_queues.of(row.get(1)?)?;
    let items = options.item_count();
    let moment = |index| -> Result<Timestamp> { Ok(Timestamp::from_microseconds(row.get(index)?)) };
    let maybe = |index| -> Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_microseconds))
    };
    let bytes = |index| -> Result<Option<Bytes>> {
        let value = row.get_ref(index)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
        Ok(value.map(Bytes::copy_from_slice))
    };
    Ok(TaskRecord {
        id: TaskId(row.get(0)?),
        kind,
        queue,
        group,
        state: TaskState::from_code(row.get(2)?)
            .ok_or_else(|| Error::corrupt("a task is in a state that does not exist; restore a backup"))?,
        priority: Priority(row.get(3)?),
        key: row.get(4)?,
        submitted_at: moment(5)?,
        run_at: moment(6)?,
        expires_at: maybe(7)?,
        attempts: row.get(8)?,
        started_at: maybe(9)?,
        finished_at: maybe(10)?,
        session: row.get::<_, Option<i64>>(11)?.map(SessionId),
        cancel_requested: row.get(12)?,
        payload: if with_payload { bytes(14)? } else { None },
        result: if with_payload { bytes(15)?.into() } else { TaskResult::NotRead },
        errors: Vec::new(),
        progress: None,
        parent: options.parent,
        tags: options.tags,
        blocked_by: Vec::new(),
        expected_io: options.expected_io,
        io: options.io,
        aggregate: options.aggregate,
        batch: None,
        items,
        affinity: options.affinity,
        orchestration: options.orchestration,
        report: options.report,
        keep_key_for: options.keep_key_for,
        ttl: options.ttl,
        timeout: options.timeout,
        heartbeat_timeout: options.heartbeat_timeout,
        deadline: options.deadline,
        retention: options.retention,
        retry: options.retry,
        scheduled_at: options.scheduled_at,
    })
}

/// Adds the errors and the progress of records.
pub(in crate::sqlite) fn complete(connection: &Connection, records: &mut [TaskRecord]) -> Result<()> {
    let ids = id_values(records.iter().map(|record| record.id));
    let mut errors = errors(connection, &ids)?;
    let mut progress = progress(connection, &ids)?;
    let mut open = open_dependencies(connection, records)?;
    let batches = batches_of(connection, records)?;
    for record in &mut *records {
        record.errors = errors.remove(&record.id).unwrap_or_default().into_values().collect();
        record.progress = progress.remove(&record.id);
        record.blocked_by = open.remove(&record.id).unwrap_or_default();
        record.batch = batches.get(&record.id).copied();
    }
    if batches.is_empty() { Ok(()) } else { add_results_of_batches(connection, records) }
}

/// Adds to each completed item the result of its batch, if the batch is still in history.
fn add_results_of_batches(connection: &Connection, records: &mut [TaskRecord]) -> Result<()> {
    let mut results: HashMap<TaskId, Option<Bytes>> = HashMap::new();
    let completed = |record: &&mut TaskRecord| record.state == TaskState::Completed && record.payload.is_some();
    for record in records.iter_mut().filter(completed) {
        let Some(batch) = record.batch else { continue };
        let result = match results.get(&batch) {
            Some(result) => result.clone(),
            None => result_of(connection, batch)?,
        };
        record.result = result.clone().into();
        results.insert(batch, result);
    }
    Ok(())
}

/// Reads the result of an ended task.
fn result_of(connection: &Connection, ended: TaskId) -> Result<Option<Bytes>> {
    let mut statement = connection.prepare_cached("SELECT result FROM history WHERE id = ?")?;
    let result: Option<Option<Vec<u8>>> = statement.query_row([ended.0], |row| row.get(0)).optional()?;
    Ok(result.flatten().map(Bytes::from))
}

/// Returns the batches of which the records are or were items.
fn batches_of(connection: &Connection, records: &[TaskRecord]) -> Result<HashMap<TaskId, TaskId>> {
    let aggregated = records.iter().filter(|record| record.aggregate.is_some());
    let ids = id_values(aggregated.map(|record| record.id));
    let mut batches = HashMap::new();
    if ids.is_empty() {
        return Ok(batches);
    }
    let mut statement = connection
        .prepare_cached("SELECT m.task, m.batch FROM rarray(?) a CROSS JOIN batch_item m ON m.task = a.value")?;
    let mut rows = statement.query([ids])?;
    while let Some(row) = rows.next()? {
        batches.insert(TaskId(row.get(0)?), TaskId(row.get(1)?));
    }
    Ok(batches)
}

/// Returns the tasks for which each blocked record waits.
fn open_dependencies(connection: &Connection, records: &[TaskRecord]) -> Result<HashMap<TaskId, Vec<TaskId>>> {
    let blocked = records.iter().filter(|record| record.state == TaskState::Blocked);
    let ids = id_values(blocked.map(|record| record.id));
    let mut open: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    if ids.is_empty() {
        return Ok(open);
    }
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/open_dependencies.sql"))?;
    let mut rows = statement.query([ids])?;
    while let Some(row) = rows.next()? {
        open.entry(TaskId(row.get(0)?)).or_default().push(TaskId(row.get(1)?));
    }
    Ok(open)
}

/// Returns the errors of tasks, by number.
pub(in crate::sqlite) fn errors(
    connection: &Connection,
    ids: &Rc<Vec<Value>>,
) -> Result<HashMap<TaskId, BTreeMap<i64, AttemptError>>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/errors_of_tasks.sql"))?;
    let mut rows = statement.query([ids])?;
    let mut errors: HashMap<TaskId, BTreeMap<i64, AttemptError>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let at = Timestamp::from_microseconds(row.get(3)?);
        let error = AttemptError { attempt: row.get(2)?, at, message: row.get(4)? };
        errors.entry(TaskId(row.get(0)?)).or_default().insert(row.get(1)?, error);
    }
    Ok(errors)
}

/// Reads the progress of tasks.
pub(in crate::sqlite) fn progress(connection: &Connection, ids: &Rc<Vec<Value>>) -> Result<HashMap<TaskId, Progress>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/progress_of_tasks.sql"))?;
    let mut rows = statement.query([ids])?;
    let mut progress = HashMap::new();
    while let Some(row) = rows.next()? {
        let at = Timestamp::from_microseconds(row.get(3)?);
        let bytes = bytes_done(row)?;
        progress.insert(TaskId(row.get(0)?), Progress { fraction: row.get(1)?, message: row.get(2)?, at, bytes });
    }
    Ok(progress)
}

/// Decodes the progress in bytes.
fn bytes_done(row: &Row<'_>) -> rusqlite::Result<Option<ByteProgress>> {
    let total: Option<i64> = row.get(5)?;
    let done: Option<i64> = row.get(4)?;
    Ok(done.map(|done| ByteProgress { done: done.cast_unsigned(), total: total.map(i64::cast_unsigned) }))
}
