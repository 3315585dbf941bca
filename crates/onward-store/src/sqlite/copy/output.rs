//! The output of tasks.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::api::error::Result;
use crate::copy::PIECE;
use crate::model::{Output, Task};
use crate::postgres::OutputRow;

/// Adds the output to a task, without its pieces.
pub(super) fn complete(connection: &Connection, task: &mut Task) -> Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT claim, attempt, stdout, stderr FROM output WHERE task = ?")?;
    let output = statement.query_row([task.id.0], |row| {
        let ends = [row.get(2)?, row.get(3)?];
        Ok(Output { claim: row.get(0)?, attempt: row.get(1)?, ends, pieces: Vec::new() })
    });
    task.output = output.optional()?.map(Arc::new);
    Ok(())
}

/// Reads the pieces after a position.
pub(super) fn pieces(connection: &Connection, (task, stream, at): (i64, i16, i64)) -> Result<Vec<OutputRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT task, stream, at, length, bytes FROM output_piece WHERE (task, stream, at) > (?1, ?2, ?3) \
         ORDER BY task, stream, at LIMIT ?4",
    )?;
    let mut rows = statement.query(params![task, stream, at, PIECE.cast_signed() as i64])?;
    let mut pieces = Vec::new();
    while let Some(row) = rows.next()? {
        let bytes: Vec<u8> = row.get(4)?;
        pieces.push(OutputRow::read((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?, bytes.into())?);
    }
    Ok(pieces)
}

/// Writes the output of a task, without its pieces.
pub(super) fn write(connection: &Connection, task: &Task) -> Result<()> {
    let Some(Output { claim, attempt, ends: [stdout, stderr], .. }) = task.output.as_deref() else { return Ok(()) };
    connection
        .prepare_cached("INSERT INTO output (task, claim, attempt, stdout, stderr) VALUES (?, ?, ?, ?, ?)")?
        .execute(params![task.id.0, claim, attempt, stdout, stderr])?;
    Ok(())
}

/// Writes a piece of a task's output.
pub(super) fn write_piece(connection: &Connection, OutputRow { task, piece }: &OutputRow) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO output_piece (task, stream, at, length, bytes) VALUES (?, ?, ?, ?, ?)")?
        .execute(params![task, piece.stream.code(), piece.at, piece.length, &piece.bytes[..]])?;
    Ok(())
}
