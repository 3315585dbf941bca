//! The data of an orchestration in other tables than `task`.

use std::collections::BTreeMap;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::api::error::Result;
use crate::api::orchestration::{HistoryChunk, Hold, InstanceRecord};
use crate::api::task::TaskId;
use crate::bounds;
use crate::sqlite::columns::awaited_events::names;
use crate::sqlite::columns::task_options::TaskOptions;

/// Returns the record of an orchestration, live or ended.
pub(in crate::sqlite) fn instance(connection: &Connection, task: TaskId) -> Result<Option<InstanceRecord>> {
    if !is_orchestration(connection, task)? {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(
        "SELECT generation, length, bytes, received, status, (SELECT count(*) FROM message m WHERE m.task = i.task), hold, version, awaits
         FROM instance i WHERE i.task = ?",
    )?;
    let read = |row: &Row<'_>| Ok((record(row)?, row.get(8)?));
    let (record, awaits): (_, Option<String>) = statement.query_row([task.0], read).optional()?.unwrap_or_default();
    Ok(Some(InstanceRecord { values: values(connection, task)?, awaits: names(awaits.as_deref())?, ..record }))
}

/// Returns true if a task is an orchestration.
fn is_orchestration(connection: &Connection, task: TaskId) -> Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT options FROM task WHERE id = ?1 UNION ALL SELECT options FROM history WHERE id = ?1 LIMIT 1",
    )?;
    let options: Option<TaskOptions> = statement.query_row([task.0], |row| row.get(0)).optional()?;
    Ok(options.is_some_and(|options| options.orchestration))
}

/// Decodes a row of `instance`.
fn record(row: &Row<'_>) -> rusqlite::Result<InstanceRecord> {
    let status: Option<Vec<u8>> = row.get(4)?;
    Ok(InstanceRecord {
        generation: row.get(0)?,
        length: row.get(1)?,
        bytes: row.get(2)?,
        received: row.get(3)?,
        waiting: row.get(5)?,
        hold: Hold::from_code(row.get(6)?),
        version: row.get(7)?,
        awaits: Vec::new(),
        status: status.map(Bytes::from),
        values: BTreeMap::new(),
    })
}

/// Reads the values that an orchestration has published.
fn values(connection: &Connection, task: TaskId) -> Result<BTreeMap<String, Bytes>> {
    let mut statement = connection.prepare_cached("SELECT key, value FROM instance_value WHERE task = ?")?;
    let values = statement.query_map([task.0], |row| Ok((row.get(0)?, Bytes::from(row.get::<_, Vec<u8>>(1)?))))?;
    Ok(values.collect::<rusqlite::Result<_>>()?)
}

/// Reads chunks of a history, beginning with the one that contains event `from`.
pub(in crate::sqlite) fn history(
    connection: &Connection,
    task: TaskId,
    from: u64,
    limit: usize,
) -> Result<Vec<HistoryChunk>> {
    let mut statement = connection.prepare_cached(
        "SELECT first, events, chunk FROM turn
         WHERE task = ?1 AND first >= coalesce((SELECT max(first) FROM turn WHERE task = ?1 AND first <= ?2), 0)
         ORDER BY first LIMIT ?3",
    )?;
    let limit = limit.min(bounds::PAGE).cast_signed();
    let chunks = statement.query_map(params![task.0, from, limit], |row| {
        let chunk: Vec<u8> = row.get(2)?;
        Ok(HistoryChunk { first: row.get(0)?, events: row.get(1)?, chunk: Bytes::from(chunk) })
    })?;
    Ok(chunks
        .filter(|chunk| chunk.as_ref().map_or(true, |chunk| chunk.first + chunk.events > from))
        .collect::<rusqlite::Result<_>>()?)
}
