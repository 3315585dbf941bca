//! From rows to records.

use bytes::Bytes;
use rusqlite::{Connection, Row};

use crate::error::{Error, Result};
use crate::limits;
use crate::name::Name;
use crate::task::{AttemptError, Priority, Progress, SessionId, TaskId, TaskRecord, TaskState};
use crate::timestamp::Timestamp;

/// The columns of a live task, in the order that [`read`] expects.
pub(super) const LIVE: &str = "t.id, k.name, q.name, \
    CASE WHEN l.task IS NOT NULL THEN 3 WHEN t.scheduled = 1 THEN 1 ELSE 2 END, t.priority, t.key, t.submitted_at, \
    t.run_at, t.expires_at, t.attempts + (l.task IS NOT NULL), coalesce(l.started_at, t.started_at), NULL, l.session, \
    t.cancel_requested > 0";

/// The columns of an ended task, in the order that [`read`] expects.
pub(super) const ENDED: &str = "t.id, k.name, q.name, t.state, t.priority, t.key, t.submitted_at, t.run_at, t.expires_at, \
    t.attempts, t.started_at, t.finished_at, NULL, 0";

/// Live tasks with what they are joined to.
pub(super) const FROM_LIVE: &str = "task t CROSS JOIN lane n ON n.id = t.lane CROSS JOIN queue q ON q.id = n.queue \
    CROSS JOIN kind k ON k.id = n.kind LEFT JOIN lease l ON l.task = t.id";

/// Ended tasks with what they are joined to.
pub(super) const FROM_ENDED: &str = "history t CROSS JOIN lane n ON n.id = t.lane CROSS JOIN queue q ON q.id = n.queue \
    CROSS JOIN kind k ON k.id = n.kind";

/// Reads a record without its errors and progress; payload and result are the last two columns where they were asked for.
pub(super) fn read(row: &Row<'_>, with_payload: bool) -> Result<TaskRecord> {
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
        kind: name(row, 1)?,
        queue: name(row, 2)?,
        state: TaskState::from_code(row.get(3)?)
            .ok_or_else(|| Error::corrupt("a task is in a state that does not exist; restore a backup"))?,
        priority: Priority(row.get(4)?),
        key: row.get(5)?,
        submitted_at: moment(6)?,
        run_at: moment(7)?,
        expires_at: maybe(8)?,
        attempts: row.get(9)?,
        started_at: maybe(10)?,
        finished_at: maybe(11)?,
        session: row.get::<_, Option<i64>>(12)?.map(SessionId),
        cancel_requested: row.get(13)?,
        payload: if with_payload { bytes(14)? } else { None },
        result: if with_payload { bytes(15)? } else { None },
        errors: Vec::new(),
        progress: None,
    })
}

fn name(row: &Row<'_>, index: usize) -> Result<Name> {
    Name::new(row.get_ref(index)?.as_str().map_err(rusqlite::Error::from)?)
}

/// Adds the errors and the progress of a record.
pub(super) fn complete(connection: &Connection, record: &mut TaskRecord) -> Result<()> {
    let mut statement = connection
        .prepare_cached("SELECT attempt, at, message FROM attempt_error WHERE task = ? ORDER BY number LIMIT ?")?;
    let limit = limits::ERRORS_KEPT.cast_signed();
    let mut rows = statement.query([record.id.0, limit as i64])?;
    while let Some(row) = rows.next()? {
        let at = Timestamp::from_microseconds(row.get(1)?);
        record.errors.push(AttemptError { attempt: row.get(0)?, at, message: row.get(2)? });
    }
    let mut statement = connection.prepare_cached("SELECT fraction, message, at FROM progress WHERE task = ?")?;
    let mut rows = statement.query([record.id.0])?;
    if let Some(row) = rows.next()? {
        let at = Timestamp::from_microseconds(row.get(2)?);
        record.progress = Some(Progress { fraction: row.get(0)?, message: row.get(1)?, at });
    }
    Ok(())
}
