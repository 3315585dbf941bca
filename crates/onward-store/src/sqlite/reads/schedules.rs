//! Schedules.

use rusqlite::Connection;

use crate::api::error::Result;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::sqlite::columns::schedules::read;

/// Returns the schedules of a selection.
pub(in crate::sqlite) fn schedules(connection: &Connection, which: &ScheduleSelection) -> Result<Vec<ScheduleRecord>> {
    match which {
        ScheduleSelection::All => read(connection, "ORDER BY name", []),
        ScheduleSelection::Named(name) => read(connection, "WHERE name = ?", [name.as_str()]),
        ScheduleSelection::Next { limit } => {
            let next = "WHERE paused = 0 AND next_due IS NOT NULL ORDER BY next_due, name LIMIT ?";
            read(connection, next, [i64::try_from(*limit).unwrap_or(i64::MAX)])
        }
        ScheduleSelection::Pending => read(connection, "WHERE pending_at IS NOT NULL AND paused = 0 ORDER BY name", []),
    }
}
