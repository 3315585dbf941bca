//! The queues and kinds that a session serves, as JSON. The column is NULL for a session that
//! serves everything.

use rusqlite::Row;

use crate::api::error::{Error, Result};
use crate::api::served::Served;

/// Encodes a selection; `None` for one that serves everything.
pub(in crate::sqlite) fn write(serves: &Served) -> Result<Option<String>> {
    if serves.is_everything() {
        return Ok(None);
    }
    let text = serde_json::to_string(serves);
    Ok(Some(text.map_err(|error| Error::invalid("what a session serves cannot be written").caused_by(error))?))
}

/// Decodes a selection.
pub(in crate::sqlite) fn read(row: &Row<'_>, column: usize) -> Result<Served> {
    let text: Option<String> = row.get(column)?;
    let Some(text) = text else { return Ok(Served::default()) };
    let damaged = |error| Error::corrupt("what a session serves cannot be read; restore a backup").caused_by(error);
    serde_json::from_str(&text).map_err(damaged)
}
