//! Who works here.

use std::time::Duration;

use rusqlite::Connection;

use crate::error::Result;
use crate::served::Served;
use crate::sqlite::served_column;
use crate::store::SessionRecord;
use crate::task::SessionId;
use crate::timestamp::Timestamp;

pub(in crate::sqlite) fn sessions(connection: &Connection) -> Result<Vec<SessionRecord>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/sessions.sql"))?;
    let mut rows = statement.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(SessionRecord {
            id: SessionId(row.get(0)?),
            name: row.get(1)?,
            opened_at: Timestamp::from_microseconds(row.get(2)?),
            lease: Duration::from_micros(row.get(3)?),
            running: row.get(4)?,
            serves: served_column::read(row, 5)?,
        });
    }
    Ok(sessions)
}

/// The names of the open sessions and what they serve, oldest first.
pub(super) fn served(connection: &Connection) -> Result<Vec<(String, Served)>> {
    let mut statement = connection.prepare_cached("SELECT name, serves FROM session ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push((row.get(0)?, served_column::read(row, 1)?));
    }
    Ok(sessions)
}
