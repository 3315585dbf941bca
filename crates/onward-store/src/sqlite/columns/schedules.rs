//! The rows of schedules. They are read on demand and not cached, because no submit and no claim
//! needs them.

use bytes::Bytes;
use rusqlite::{Connection, Params, Row, params};

use crate::api::error::{Error, Result};
use crate::api::schedule::{LastFiring, NewSchedule, NextFiring, ScheduleError, ScheduleRecord};
use crate::api::task::{NewTask, TaskId};
use crate::api::timestamp::Timestamp;

/// The columns in the order in which [`record`] reads them.
const COLUMNS: &str = "definition, payload, revision, paused, next_at, next_due, pending_at, last_at, last_fired_at, last_task, \
    error, error_at, fired, skipped, missed, failed, created_at";

/// Returns the schedules that `which` selects, which is a condition, an order, or both.
pub(in crate::sqlite) fn read(
    connection: &Connection,
    which: &str,
    values: impl Params,
) -> Result<Vec<ScheduleRecord>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM schedule {which}"))?;
    let mut rows = statement.query(values)?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(row)?);
    }
    Ok(records)
}

/// Decodes a row of [`COLUMNS`].
fn record(row: &Row<'_>) -> Result<ScheduleRecord> {
    let moment = |index| -> Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_microseconds))
    };
    let last = match (moment(7)?, moment(8)?, row.get(9)?) {
        (Some(at), Some(fired_at), Some(task)) => Some(LastFiring { at, fired_at, task: TaskId(task) }),
        _ => None,
    };
    let error = match (row.get(10)?, moment(11)?) {
        (Some(message), Some(at)) => Some(ScheduleError { at, message }),
        _ => None,
    };
    Ok(ScheduleRecord {
        schedule: definition(row)?,
        revision: row.get(2)?,
        paused: row.get(3)?,
        next: moment(4)?.zip(moment(5)?).map(|(at, due)| NextFiring { at, due }),
        pending_at: moment(6)?,
        last,
        error,
        fired: row.get(12)?,
        skipped: row.get(13)?,
        missed: row.get(14)?,
        failed: row.get(15)?,
        created_at: Timestamp::from_microseconds(row.get(16)?),
    })
}

/// Decodes a schedule's definition. The payload has a column of its own, because JSON cannot hold
/// bytes without an encoding.
fn definition(row: &Row<'_>) -> Result<NewSchedule> {
    let text = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    let mut schedule: NewSchedule = serde_json::from_str(text)
        .map_err(|error| Error::corrupt("a schedule cannot be read; restore a backup").caused_by(error))?;
    let payload = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
    schedule.task.payload = Bytes::copy_from_slice(payload);
    Ok(schedule)
}

/// Writes a schedule.
pub(in crate::sqlite) fn put(connection: &Connection, record: &ScheduleRecord) -> Result<()> {
    let schedule = &record.schedule;
    let without_payload =
        NewSchedule { task: NewTask { payload: Bytes::new(), ..schedule.task.clone() }, ..schedule.clone() };
    let text = serde_json::to_string(&without_payload)
        .map_err(|error| Error::io("a schedule cannot be written").caused_by(error))?;
    let number = |at: Timestamp| at.as_microseconds();
    connection.prepare_cached(include_str!("../sql/settings/put_schedule.sql"))?.execute(params![
        schedule.name.as_str(),
        text,
        &schedule.task.payload[..],
        record.revision,
        record.paused,
        record.next.map(|next| number(next.at)),
        record.next.map(|next| number(next.due)),
        record.pending_at.map(number),
        record.last.map(|last| number(last.at)),
        record.last.map(|last| number(last.fired_at)),
        record.last.map(|last| last.task.0),
        record.error.as_ref().map(|error| error.message.as_str()),
        record.error.as_ref().map(|error| number(error.at)),
        record.fired,
        record.skipped,
        record.missed,
        record.failed,
        number(record.created_at),
    ])?;
    Ok(())
}
