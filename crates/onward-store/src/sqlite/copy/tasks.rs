//! Converts rows of tasks to tasks of the model.

use std::vec::IntoIter;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};

use super::{orchestrations, output};
use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{NewTask, OnDuplicate, Priority, TaskId, TaskState, UniqueKey};
use crate::api::timestamp::Timestamp;
use crate::copy::PIECE;
use crate::model::{AwaitedCompletion, End, LoggedChange, Task};
use crate::postgres::{TaskRow, encode, tag};
use crate::sqlite::columns::links::{AWAITED, CHECKPOINT, MOVING};
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::id_values;
use crate::sqlite::commit::transition_log::decode;
use crate::sqlite::reads::{NamesOfSubQueue, SubQueueNames, errors, progress};

/// The query for live tasks.
const LIVE: &str = "SELECT id, sub_queue, scheduled, priority, run_at, claims, attempts, cancel_requested > 0, submitted_at, started_at, expires_at, \
     options, key, payload, lost, links FROM task WHERE id > ?1 ORDER BY id LIMIT ?2";

/// The query for ended tasks, with the order of their ends.
const ENDED: &str = "SELECT h.id, h.sub_queue, h.state, h.priority, h.run_at, h.claims, h.attempts, h.cancel_requested > 0, h.submitted_at, h.started_at, \
     h.expires_at, h.options, h.key, h.payload, h.finished_at, h.result, h.ended_in, o.number \
     FROM history h JOIN temp.end_order o ON o.task = h.id WHERE h.id > ?1 ORDER BY h.id LIMIT ?2";

/// Returns the next live tasks, with numbers above `after`.
pub(in crate::sqlite) fn live(connection: &Connection, after: i64) -> Result<IntoIter<Task>> {
    let mut sub_queues = SubQueueNames::new(connection);
    let mut statement = connection.prepare_cached(LIVE)?;
    let mut rows = statement.query([after, limit()])?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next()? {
        let mut task = task(row, &mut sub_queues)?;
        task.state = match row.get(2)? {
            0 => TaskState::Waiting,
            1 => TaskState::Scheduled,
            2 => TaskState::Blocked,
            code => return Err(Error::corrupt(format!("task {} is in a state {code}; restore a backup", task.id))),
        };
        task.lost = row.get(14)?;
        details(connection, &mut task, row.get(15)?)?;
        orchestrations::complete(connection, &mut task)?;
        tasks.push(task);
    }
    complete(connection, &mut tasks)?;
    Ok(tasks.into_iter())
}

/// Returns the next ended tasks, with numbers above `after`.
pub(in crate::sqlite) fn ended(connection: &Connection, after: i64) -> Result<IntoIter<Task>> {
    let mut sub_queues = SubQueueNames::new(connection);
    let mut statement = connection.prepare_cached(ENDED)?;
    let mut rows = statement.query([after, limit()])?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next()? {
        let mut task = task(row, &mut sub_queues)?;
        task.state = TaskState::from_code(row.get(2)?)
            .ok_or_else(|| Error::corrupt("a task is in a state that does not exist; restore a backup"))?;
        task.finished_at = maybe(row, 14)?;
        task.result = row.get::<_, Option<Vec<u8>>>(15)?.map(Bytes::from);
        task.end = Some(End { number: row.get::<_, i64>(17)?.cast_unsigned(), entry: row.get(16)? });
        orchestrations::complete(connection, &mut task)?;
        tasks.push(task);
    }
    complete(connection, &mut tasks)?;
    Ok(tasks.into_iter())
}

/// Returns the number of tasks in a piece.
fn limit() -> i64 {
    PIECE.cast_signed() as i64
}

/// Decodes an optional time.
fn maybe(row: &Row<'_>, at: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_microseconds))
}

/// Reads the columns that live and ended tasks share.
fn task(row: &Row<'_>, sub_queues: &mut SubQueueNames<'_>) -> Result<Task> {
    let options: TaskOptions = row.get(11)?;
    let (io, items) = (options.io, options.item_count());
    let mut new = new_task(sub_queues.of(row.get(1)?)?, options, row.get(12)?);
    (new.priority, new.payload) = (Priority(row.get(3)?), row.get::<_, Vec<u8>>(13)?.into());
    let submitted_at = Timestamp::from_microseconds(row.get(8)?);
    let mut task = Task::submitted(TaskId(row.get(0)?), new, submitted_at);
    task.run_at = Timestamp::from_microseconds(row.get(4)?);
    (task.claims, task.attempts, task.cancel_requested) = (row.get(5)?, row.get(6)?, row.get(7)?);
    (task.started_at, task.expires_at) = (maybe(row, 9)?, maybe(row, 10)?);
    (task.io, task.items) = (io, items);
    Ok(task)
}

/// Returns a submission from its names, options and key.
fn new_task(names: NamesOfSubQueue, options: TaskOptions, key: Option<String>) -> NewTask {
    let mut new = NewTask::of(names.kind);
    (new.queue, new.group) = (names.queue, names.group);
    let keep_for = options.keep_key_for;
    new.unique = key.map(|key| UniqueKey { key, on_duplicate: OnDuplicate::default(), keep_for });
    new.depends_on.on_failure = options.on_dependency_failure;
    NewTask {
        ttl: options.ttl,
        timeout: options.timeout,
        heartbeat_timeout: options.heartbeat_timeout,
        deadline: options.deadline,
        retention: options.retention,
        retry: options.retry,
        scheduled_at: options.scheduled_at,
        tags: options.tags,
        parent: options.parent,
        io: options.expected_io,
        aggregate: options.aggregate,
        affinity: options.affinity,
        orchestration: options.orchestration,
        report: options.report,
        ..new
    }
}

/// Reads the details that few live tasks have, each from its own table.
fn details(connection: &Connection, task: &mut Task, links: u8) -> Result<()> {
    let id = task.id.0;
    if links & CHECKPOINT != 0 {
        let mut checkpoint = connection.prepare_cached("SELECT checkpoint FROM task_checkpoint WHERE task = ?")?;
        task.checkpoint = checkpoint.query_row([id], |row| row.get::<_, Vec<u8>>(0)).optional()?.map(Bytes::from);
    }
    if links & AWAITED != 0 && task.state == TaskState::Blocked {
        let mut awaited =
            connection.prepare_cached("SELECT wait, until, expires_at FROM awaited_completion WHERE task = ?")?;
        let mut rows = awaited.query([id])?;
        if let Some(row) = rows.next()? {
            let wait = json(&row.get::<_, String>(0)?)?;
            task.awaited = Some(AwaitedCompletion { wait, until: maybe(row, 1)?, expires_at: maybe(row, 2)? });
        }
    }
    if links & MOVING != 0 {
        let mut moving = connection.prepare_cached("SELECT queue FROM moving WHERE task = ?")?;
        let queue: Option<String> = moving.query_row([id], |row| row.get(0)).optional()?;
        task.move_to = queue.map(Name::new).transpose()?;
    }
    if task.new.unique.is_some() {
        let mut follower = connection.prepare_cached("SELECT new_task, payload FROM successor WHERE task = ?")?;
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?));
        if let Some((text, payload)) = follower.query_row([id], read).optional()? {
            task.follower = Some(Box::new(NewTask { payload: payload.into(), ..json(&text)? }));
        }
    }
    Ok(())
}

/// Decodes JSON.
fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::corrupt("a row of the store cannot be read; restore a backup").caused_by(error))
}

/// Adds errors, progress and output.
fn complete(connection: &Connection, tasks: &mut [Task]) -> Result<()> {
    let ids = id_values(tasks.iter().map(|task| task.id));
    let (mut errors, mut progress) = (errors(connection, &ids)?, progress(connection, &ids)?);
    for task in tasks {
        task.errors = errors.remove(&task.id).unwrap_or_default().into_values().collect();
        task.progress = progress.remove(&task.id);
        output::complete(connection, task)?;
    }
    Ok(())
}

/// Returns the tags of the tasks of a table that were just read, with numbers above `after`.
pub(in crate::sqlite) fn tags(
    connection: &Connection,
    table: &str,
    after: i64,
    tasks: &[TaskRow],
) -> Result<Vec<(i64, Vec<u8>)>> {
    let Some(last) = tasks.last() else { return Ok(Vec::new()) };
    let sql = format!("SELECT id, options FROM {table} WHERE id > ?1 AND id <= ?2 AND instr(options, '\"tags\"') > 0");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([after, last.id])?;
    let mut tags = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, options): (i64, TaskOptions) = (row.get(0)?, row.get(1)?);
        tags.extend(options.tags.iter().map(|(key, value)| (id, tag(key, value))));
    }
    Ok(tags)
}

/// Returns the next entries of the log, with numbers above `after`.
pub(in crate::sqlite) fn log(connection: &Connection, after: i64) -> Result<Vec<(i64, i64, String)>> {
    let mut sub_queues = SubQueueNames::new(connection);
    let sql = "SELECT id, at, next_task, changes FROM log WHERE id > ?1 ORDER BY id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([after, limit()])?;
    let mut log = Vec::new();
    while let Some(row) = rows.next()? {
        let (at, bytes): (i64, Vec<u8>) = (row.get(1)?, row.get(3)?);
        let mut changes = Vec::new();
        for logged in decode(&bytes)? {
            let NamesOfSubQueue { kind, queue, .. } = sub_queues.of(logged.sub_queue)?;
            let at = Timestamp::from_microseconds(at);
            changes.push(LoggedChange { at, task: logged.task, kind, queue, change: logged.change });
        }
        log.push((row.get(0)?, row.get(2)?, encode(&changes)?));
    }
    Ok(log)
}
