//! What is kept of orchestrations beside their tasks.

use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::copy::PIECE;
use crate::error::Result;
use crate::memory::{Task, TurnRow};
use crate::orchestration::{Instance, Message, decode_message, encode_message};
use crate::sqlite::instance_column::names_text;
use crate::sqlite::reads;
use crate::task::TaskId;

/// Adds to a task what the specification has in the same place, but its history.
pub(super) fn complete(connection: &Connection, task: &mut Task) -> Result<()> {
    if task.instance.is_none() {
        return Ok(());
    }
    let record = reads::instance(connection, task.id)?.unwrap_or_default();
    task.instance = Some(Arc::new(Instance {
        generation: record.generation,
        length: record.length,
        bytes: record.bytes,
        received: record.received,
        awaits: record.awaits,
        hold: record.hold,
        status: record.status,
        values: record.values,
        mailbox: messages(connection, task.id)?.into(),
        chunks: Vec::new(),
    }));
    Ok(())
}

fn messages(connection: &Connection, task: TaskId) -> Result<Vec<Message>> {
    let mut statement = connection.prepare_cached("SELECT body FROM message WHERE task = ? ORDER BY number")?;
    let mut rows = statement.query([task.0])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(decode_message(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?);
    }
    Ok(messages)
}

/// Events of histories behind a place in one.
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

/// Writes it.
pub(super) fn write(connection: &Connection, task: &Task) -> Result<()> {
    let Some(instance) = task.instance.as_deref() else { return Ok(()) };
    let Instance { generation, length, bytes, received, status, values, awaits, hold, mailbox, .. } = instance;
    let id = task.id.0;
    connection
        .prepare_cached(
            "INSERT INTO instance (task, generation, length, bytes, received, status, awaits, hold) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![id, generation, length, bytes, received, status.as_deref(), names_text(awaits), hold.code()])?;
    for (key, value) in values {
        connection
            .prepare_cached("INSERT INTO instance_value (task, key, value) VALUES (?, ?, ?)")?
            .execute(params![id, key, &value[..]])?;
    }
    for message in mailbox {
        connection.prepare_cached("INSERT INTO message (task, number, body) VALUES (?, ?, ?)")?.execute(params![
            id,
            message.number,
            encode_message(message)?
        ])?;
    }
    Ok(())
}

pub(super) fn write_turn(connection: &Connection, turn: &TurnRow) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO turn (task, first, events, chunk) VALUES (?, ?, ?, ?)")?
        .execute(params![turn.task, turn.first, turn.events, &turn.chunk[..]])?;
    Ok(())
}
