//! The rows of orchestrations in other tables than `task`.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::api::error::Result;
use crate::api::orchestration::{Instance, MessageBody, decode_message};
use crate::api::task::TaskId;
use crate::copy::PIECE;
use crate::model::Task;
use crate::postgres::{MessageRow, TurnRow};
use crate::sqlite::columns::awaited_events::names_text;
use crate::sqlite::reads;

/// Adds to a task the orchestration's data except its history, as the model has them.
pub(in crate::sqlite) fn complete(connection: &Connection, task: &mut Task) -> Result<()> {
    if task.instance.is_none() {
        return Ok(());
    }
    let record = reads::instance(connection, task.id)?.unwrap_or_default();
    let cancel = last_cancel(connection, task.id)?;
    task.instance = Some(Arc::new(Instance {
        generation: record.generation,
        length: record.length,
        bytes: record.bytes,
        received: record.received,
        taken: record.received.saturating_sub(record.waiting),
        cancel,
        version: record.version,
        awaits: record.awaits,
        hold: record.hold,
        status: record.status,
        values: record.values,
        mailbox: VecDeque::new(),
        chunks: Vec::new(),
    }));
    Ok(())
}

/// Returns the number of the last unread message that requests a cancellation; 0 for none.
fn last_cancel(connection: &Connection, task: TaskId) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT body FROM message WHERE task = ? ORDER BY number DESC")?;
    let mut rows = statement.query([task.0])?;
    while let Some(row) = rows.next()? {
        let message = decode_message(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?;
        if message.body == MessageBody::Cancel {
            return Ok(message.number);
        }
    }
    Ok(0)
}

/// Returns the messages after a position.
pub(in crate::sqlite) fn messages(connection: &Connection, (task, number): (i64, i64)) -> Result<Vec<MessageRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT task, number, body FROM message WHERE (task, number) > (?1, ?2) ORDER BY task, number LIMIT ?3",
    )?;
    let rows = statement.query_map([task, number, PIECE.cast_signed() as i64], |row| {
        Ok(MessageRow { task: row.get(0)?, number: row.get(1)?, body: row.get(2)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns the chunks of histories after a position.
pub(super) fn turns(connection: &Connection, (task, first): (i64, i64)) -> Result<Vec<TurnRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT task, first, events, chunk FROM turn WHERE (task, first) > (?1, ?2) ORDER BY task, first LIMIT ?3",
    )?;
    let rows = statement.query_map([task, first, PIECE.cast_signed() as i64], |row| {
        let chunk: Vec<u8> = row.get(3)?;
        Ok(TurnRow { task: row.get(0)?, first: row.get(1)?, events: row.get(2)?, chunk: chunk.into() })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Writes an orchestration's data except its history and its messages.
pub(in crate::sqlite) fn write(connection: &Connection, task: &Task) -> Result<()> {
    let Some(instance) = task.instance.as_deref() else { return Ok(()) };
    let Instance { generation, length, bytes, received, status, values, version, awaits, hold, .. } = instance;
    let id = task.id.0;
    connection
        .prepare_cached(
            "INSERT INTO instance (task, generation, length, bytes, received, status, version, awaits, hold) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            id,
            generation,
            length,
            bytes,
            received,
            status.as_deref(),
            version,
            names_text(awaits),
            hold.code()
        ])?;
    for (key, value) in values {
        connection
            .prepare_cached("INSERT INTO instance_value (task, key, value) VALUES (?, ?, ?)")?
            .execute(params![id, key, &value[..]])?;
    }
    Ok(())
}

/// Writes an unread message.
pub(super) fn write_message(connection: &Connection, message: &MessageRow) -> Result<()> {
    connection.prepare_cached("INSERT INTO message (task, number, body) VALUES (?, ?, ?)")?.execute(params![
        message.task,
        message.number,
        message.body
    ])?;
    Ok(())
}

/// Writes a chunk of a history.
pub(super) fn write_turn(connection: &Connection, turn: &TurnRow) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO turn (task, first, events, chunk) VALUES (?, ?, ?, ?)")?
        .execute(params![turn.task, turn.first, turn.events, &turn.chunk[..]])?;
    Ok(())
}
