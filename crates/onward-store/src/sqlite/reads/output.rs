//! Output of tasks.

use bytes::Bytes;
use rusqlite::{Connection, Row, params};

use crate::api::error::Result;
use crate::api::output::{OutputPiece, OutputStream, TaskOutput};
use crate::api::task::TaskId;

/// Reads the output of a task, in one statement so that all of it is from one moment.
pub(in crate::sqlite) fn task_output(
    connection: &Connection,
    task: TaskId,
    stream: OutputStream,
    from: u64,
    limit: usize,
) -> Result<Option<TaskOutput>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/task_output.sql"))?;
    let from = from.min(i64::MAX.cast_unsigned());
    let mut rows = statement.query(params![task.0, stream.code(), from])?;
    let (mut output, mut read) = (None, 0);
    while let Some(row) = rows.next()? {
        let output = output.get_or_insert(header(row)?);
        if read >= limit {
            break;
        }
        if let Some(piece) = piece(row, stream)?.filter(|piece| piece.end() > from) {
            read += piece.length as usize;
            output.pieces.push(piece);
        }
    }
    Ok(output)
}

/// Reads the ends of the stream. The bytes before the first kept piece were cut.
fn header(row: &Row<'_>) -> rusqlite::Result<TaskOutput> {
    let (end, kept): (u64, u64) = (row.get(2)?, row.get(3)?);
    let cut = end.saturating_sub(kept);
    Ok(TaskOutput { claim: row.get(0)?, attempt: row.get(1)?, end, cut, pieces: Vec::new() })
}

/// Reads one piece. A stream without kept pieces has one row without a piece. A piece that stands
/// for the result has no bytes if there is no result.
fn piece(row: &Row<'_>, stream: OutputStream) -> rusqlite::Result<Option<OutputPiece>> {
    let (at, bytes): (Option<u64>, Option<Vec<u8>>) = (row.get(4)?, row.get(6)?);
    let (Some(at), Some(bytes)) = (at, bytes) else { return Ok(None) };
    Ok(Some(OutputPiece { stream, at, length: row.get(5)?, bytes: Bytes::from(bytes) }))
}
