//! Pending batches.

use rusqlite::{Connection, Row, params};

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// Returns the pending batches.
pub(in crate::sqlite) fn pending_batches(
    connection: &Connection,
    which: &PendingBatchSelection,
) -> Result<Vec<PendingBatch>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/pending_batches.sql"))?;
    let queue = which.queue.as_ref().map(Name::as_str);
    let mut rows = statement.query(params![queue, which.limit.clamp(1, bounds::PAGE).cast_signed()])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(row)?);
    }
    Ok(records)
}

/// Decodes a row.
fn record(row: &Row<'_>) -> Result<PendingBatch> {
    Ok(PendingBatch {
        items: row.get(0)?,
        size: row.get(1)?,
        payload_bytes: row.get::<_, i64>(2)?.cast_unsigned(),
        began_at: Timestamp::from_microseconds(row.get(3)?),
        ready_at: Timestamp::from_microseconds(row.get(4)?),
        queue: Name::new(row.get::<_, String>(5)?)?,
        kind: Name::new(row.get::<_, String>(6)?)?,
        group: row.get::<_, Option<String>>(7)?.map(Name::new).transpose()?,
    })
}
