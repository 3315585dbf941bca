//! The rows of documents. They are read on demand and not cached, because no submit and no claim
//! needs them.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::api::document::{DocumentRecord, PutDocument};
use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::timestamp::Timestamp;

/// The columns of a record without its content, from `document d`.
pub(in crate::sqlite) const COLUMNS: &str =
    "d.key, d.version, d.changed_at, d.content_type, d.value0, d.value1, d.value2, d.value3";

/// The index of the content, which follows [`COLUMNS`].
pub(in crate::sqlite) const CONTENT: usize = 8;

const VALUE0: usize = 4;

/// Reads a record without its content from a row of [`COLUMNS`].
pub(in crate::sqlite) fn record(collection: &Name, row: &Row<'_>) -> rusqlite::Result<DocumentRecord> {
    let mut index = Vec::new();
    for column in VALUE0..CONTENT {
        let Some(value) = row.get(column)? else { break };
        index.push(value);
    }
    Ok(DocumentRecord {
        collection: collection.clone(),
        key: row.get(0)?,
        version: row.get(1)?,
        changed_at: Timestamp::from_microseconds(row.get(2)?),
        content_type: row.get(3)?,
        index,
        content: None,
    })
}

/// Reads the content, which follows [`COLUMNS`].
pub(in crate::sqlite) fn content(row: &Row<'_>) -> rusqlite::Result<Bytes> {
    Ok(Bytes::from(row.get::<_, Vec<u8>>(CONTENT)?))
}

/// Reads a document with its content.
pub(in crate::sqlite) fn find(connection: &Connection, collection: &Name, key: &str) -> Result<Option<DocumentRecord>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/documents/find_document.sql"))?;
    let read = |row: &Row<'_>| Ok(DocumentRecord { content: Some(content(row)?), ..record(collection, row)? });
    Ok(statement.query_row([collection.as_str(), key], read).optional()?)
}

/// Writes a document into a collection, and replaces the one with the same key.
pub(in crate::sqlite) fn put(
    connection: &Connection,
    collection: i64,
    put: &PutDocument,
    (version, changed_at): (u64, Timestamp),
) -> Result<()> {
    let value = |number: usize| put.index.get(number).map(String::as_str);
    connection.prepare_cached(include_str!("../sql/documents/put_document.sql"))?.execute(params![
        collection,
        put.key,
        version,
        changed_at.as_microseconds(),
        put.content_type,
        value(0),
        value(1),
        value(2),
        value(3),
        &put.content[..],
    ])?;
    Ok(())
}

/// Counts a new document of a collection, and creates the collection if it is missing. Returns the
/// number of the collection.
pub(in crate::sqlite) fn count_new(connection: &Connection, collection: &Name) -> Result<i64> {
    let mut statement = connection.prepare_cached(include_str!("../sql/documents/count_new_document.sql"))?;
    Ok(statement.query_row([collection.as_str()], |row| row.get(0))?)
}
