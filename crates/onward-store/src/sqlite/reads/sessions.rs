//! Who works here.

use std::time::Duration;

use rusqlite::Connection;

use crate::error::Result;
use crate::store::SessionRecord;
use crate::task::SessionId;
use crate::timestamp::Timestamp;

pub(in crate::sqlite) fn sessions(connection: &Connection) -> Result<Vec<SessionRecord>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/sessions.sql"))?;
    let sessions = statement.query_map([], |row| {
        Ok(SessionRecord {
            id: SessionId(row.get(0)?),
            name: row.get(1)?,
            opened_at: Timestamp::from_microseconds(row.get(2)?),
            lease: Duration::from_micros(row.get(3)?),
            running: row.get(4)?,
        })
    })?;
    Ok(sessions.collect::<rusqlite::Result<_>>()?)
}
