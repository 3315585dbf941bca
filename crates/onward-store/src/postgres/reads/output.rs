//! Output of tasks.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::model_reads::ask;
use crate::api::error::{Error, Result};
use crate::api::output::{OutputPiece, OutputStream, TaskOutput};
use crate::api::task::TaskId;
use crate::model::{Output, up_to};
use crate::postgres::shared::Shared;

/// One statement, so that it is of one moment.
const TASK_OUTPUT: &str = "WITH head AS MATERIALIZED (SELECT body, result, \
       (SELECT coalesce(sum(length), 0)::bigint FROM {s}.output_piece \
        WHERE task = $1 AND stream = $2 AND (result IS NOT NULL OR octet_length(bytes) > 0)) AS kept \
       FROM (SELECT body->>'output' AS body, NULL::bytea AS result FROM {s}.task WHERE id = $1 \
             UNION ALL SELECT body->>'output', result FROM {s}.history WHERE id = $1) t WHERE body IS NOT NULL) \
     SELECT h.body, h.kept, p.at, p.length, CASE octet_length(p.bytes) WHEN 0 THEN h.result ELSE p.bytes END \
     FROM head h \
     LEFT JOIN {s}.output_piece p ON p.task = $1 AND p.stream = $2 AND p.at + p.length > $3 ORDER BY p.at";

/// Returns output of a task from byte `from` on, at most `limit` bytes; `None` if the task has
/// none.
pub(in crate::postgres) async fn task_output(
    shared: &Shared,
    task: TaskId,
    stream: OutputStream,
    from: u64,
    limit: usize,
) -> Result<Option<TaskOutput>> {
    let client = shared.pool.get().await?;
    let (code, from) = (i16::from(stream.code()), from.min(i64::MAX.cast_unsigned()).cast_signed());
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&task.0, Type::INT8), (&code, Type::INT2), (&from, Type::INT8)];
    let rows = ask(&client, shared, TASK_OUTPUT, &parameters).await?;
    client.give_back();
    let Some(first) = rows.first() else { return Ok(None) };
    let output: Output = serde_json::from_str(first.get(0)).map_err(|error| {
        Error::corrupt(format!("the row of task {task} cannot be read; restore a backup")).caused_by(error)
    })?;
    let (end, kept) = (output.end(stream), first.get::<_, i64>(1).cast_unsigned());
    let pieces = up_to(rows.iter().filter_map(|row| piece(row, stream)), limit);
    let (claim, attempt, cut) = (output.claim, output.attempt, end.saturating_sub(kept));
    Ok(Some(TaskOutput { claim, attempt, end, cut, pieces }))
}

/// Reads one piece; a stream without kept pieces gives a row without one. A piece that stands for
/// the result has no bytes if there is no result.
fn piece(row: &Row, stream: OutputStream) -> Option<OutputPiece> {
    let at: i64 = row.get::<_, Option<i64>>(2)?;
    let (length, bytes): (i32, Vec<u8>) = (row.get(3), row.get::<_, Option<_>>(4)?);
    Some(OutputPiece { stream, at: at.cast_unsigned(), length: length.cast_unsigned(), bytes: bytes.into() })
}
