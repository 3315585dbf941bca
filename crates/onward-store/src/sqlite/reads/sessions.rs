//! The open sessions.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::Connection;

use crate::api::error::Result;
use crate::api::store::SessionRecord;
use crate::api::task::SessionId;
use crate::api::timestamp::Timestamp;
use crate::rules::why::Worker;
use crate::sqlite::columns::served;

/// Returns the processes that have opened sessions.
pub(in crate::sqlite) fn processes(connection: &Connection) -> Result<BTreeSet<String>> {
    let mut statement = connection.prepare_cached("SELECT DISTINCT process FROM session")?;
    let processes = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(processes)
}

/// Returns the sessions, except those of processes that have ended.
pub(in crate::sqlite) fn sessions(connection: &Connection, ended: &BTreeSet<String>) -> Result<Vec<SessionRecord>> {
    Ok(workers(connection, ended, Duration::ZERO)?.into_iter().map(|worker| worker.record).collect())
}

/// Returns the same sessions, with the time since which each lease has been over at `now`, in
/// steady time.
pub(in crate::sqlite) fn workers(
    connection: &Connection,
    ended: &BTreeSet<String>,
    now: Duration,
) -> Result<Vec<Worker>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/sessions.sql"))?;
    let mut rows = statement.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        if ended.contains(row.get_ref(6)?.as_str().map_err(rusqlite::Error::from)?) {
            continue;
        }
        let record = SessionRecord {
            id: SessionId(row.get(0)?),
            name: row.get(1)?,
            opened_at: Timestamp::from_microseconds(row.get(2)?),
            lease: Duration::from_micros(row.get(3)?),
            running: row.get(4)?,
            serves: served::read(row, 5)?,
        };
        sessions.push(Worker { record, silent: now.saturating_sub(Duration::from_micros(row.get(7)?)) });
    }
    Ok(sessions)
}
