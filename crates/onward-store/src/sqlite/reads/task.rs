//! One task.

use rusqlite::Connection;

use crate::api::error::Result;
use crate::api::task::{TaskId, TaskRecord};
use crate::sqlite::reads::record::{ENDED, FROM_ENDED, FROM_LIVE, LIVE, complete, read};
use crate::sqlite::reads::sub_queue_names::SubQueueNames;

/// Returns the record of a task, live or ended.
pub(in crate::sqlite) fn task(connection: &Connection, id: TaskId) -> Result<Option<TaskRecord>> {
    let live = format!("SELECT {LIVE}, t.payload, NULL FROM {FROM_LIVE} WHERE t.id = ?");
    let ended = format!("SELECT {ENDED}, t.payload, t.result FROM {FROM_ENDED} WHERE t.id = ?");
    for sql in [live, ended] {
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([id.0])?;
        if let Some(row) = rows.next()? {
            let mut record = read(row, &mut SubQueueNames::new(connection), true)?;
            complete(connection, std::slice::from_mut(&mut record))?;
            return Ok(Some(record));
        }
    }
    Ok(None)
}
