//! Reads of orchestrations: the instance and its history.

use tokio_postgres::types::Type;

use super::model_reads::ask;
use crate::api::error::Result;
use crate::api::orchestration::{HistoryChunk, InstanceRecord, decode_instance};
use crate::api::task::TaskId;
use crate::bounds;
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;

/// Returns the record of an instance, of a live or an ended orchestration.
pub(in crate::postgres) async fn instance(shared: &Shared, task: TaskId) -> Result<Option<InstanceRecord>> {
    let client = shared.pool.get().await?;
    let text = "SELECT instance FROM {s}.task WHERE id = $1 UNION ALL SELECT instance FROM {s}.history WHERE id = $1";
    let rows = ask(&client, shared, text, &[(&task.0, Type::INT8)]).await?;
    client.give_back();
    let stored: Option<&[u8]> = rows.first().and_then(|row| row.get(0));
    Ok(stored.map(decode_instance).transpose()?.map(|instance| instance.record()))
}

/// Returns chunks of a history, beginning with the one that contains event `from`.
pub(in crate::postgres) async fn history(
    shared: &Shared,
    task: TaskId,
    from: u64,
    limit: usize,
) -> Result<Vec<HistoryChunk>> {
    let client = shared.pool.get().await?;
    let text = "SELECT first, events, chunk FROM {s}.turn WHERE task = $1 AND first + events > $2 \
                ORDER BY first LIMIT $3";
    let (from, limit) = (from.cast_signed(), number(limit.min(bounds::PAGE)));
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
        [(&task.0, Type::INT8), (&from, Type::INT8), (&limit, Type::INT8)];
    let rows = ask(&client, shared, text, &parameters).await?;
    client.give_back();
    let chunk = |row: &tokio_postgres::Row| {
        let (first, events, chunk): (i64, i64, Vec<u8>) = (row.get(0), row.get(1), row.get(2));
        HistoryChunk { first: first.cast_unsigned(), events: events.cast_unsigned(), chunk: chunk.into() }
    };
    Ok(rows.iter().map(chunk).collect())
}
