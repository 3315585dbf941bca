//! Rows of documents as the driver has them.

#[cfg(feature = "sqlite")]
use std::sync::Arc;

use bytes::Bytes;
use tokio_postgres::Row;

use crate::api::document::DocumentRecord;
use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::timestamp::Timestamp;
use crate::model::{Document, DocumentId};
use crate::postgres::connect::error::classified;
#[cfg(feature = "sqlite")]
use crate::postgres::working_set::change_set::DocumentRow;

/// The columns of a record without its content, of `document d`.
pub(in crate::postgres) const DOCUMENT: &str =
    "d.collection, d.key, d.version, d.changed_at, d.content_type, d.value0, d.value1, d.value2, d.value3";

/// The column of a content that is read after [`DOCUMENT`].
const CONTENT: usize = 9;

const VALUE0: usize = 5;

/// Reads a record from a row of [`DOCUMENT`] and its content, which may be NULL.
pub(in crate::postgres) fn record(row: &Row) -> Result<DocumentRecord> {
    let (collection, key) = id(row)?;
    let changed_at = row.try_get(3).map_err(classified)?;
    let content: Option<Vec<u8>> = row.try_get(CONTENT).map_err(classified)?;
    Ok(DocumentRecord {
        collection,
        key,
        version: row.try_get::<_, i64>(2).map_err(classified)?.cast_unsigned(),
        changed_at: Timestamp::from_microseconds(changed_at),
        content_type: row.try_get(4).map_err(classified)?,
        index: index(row)?,
        content: content.map(Bytes::from),
    })
}

/// Reads a document for a write, with the number of documents in its collection and the number of
/// collections.
pub(super) fn loaded_document(row: &Row) -> Result<((DocumentId, Option<Document>), u64, u64)> {
    let count = |at: usize| row.try_get::<_, i64>(at).map(i64::cast_unsigned).map_err(classified);
    let (size, collections) = (count(CONTENT + 1)?, count(CONTENT + 2)?);
    let is_there = row.try_get::<_, Option<i64>>(2).map_err(classified)?.is_some();
    let document = if is_there { Some(content_of(record(row)?)) } else { None };
    Ok(((id(row)?, document), size, collections))
}

/// Reads a row of a change set from a row of [`DOCUMENT`] and its content.
#[cfg(feature = "sqlite")]
pub(in crate::postgres) fn document(row: &Row) -> Result<DocumentRow> {
    let (collection, key) = id(row)?;
    Ok(DocumentRow { collection, key, document: Arc::new(content_of(record(row)?)) })
}

/// Returns a document without its collection and key.
fn content_of(record: DocumentRecord) -> Document {
    let DocumentRecord { version, changed_at, content_type, index, content, .. } = record;
    Document { version, changed_at, content_type, index, content: content.unwrap_or_default() }
}

/// Reads the collection and the key.
fn id(row: &Row) -> Result<DocumentId> {
    Ok((Name::new(row.try_get::<_, &str>(0).map_err(classified)?)?, text(row.try_get(1).map_err(classified)?)?))
}

/// Reads the index values; the first empty column ends them.
fn index(row: &Row) -> Result<Vec<String>> {
    let mut index = Vec::new();
    for column in VALUE0..CONTENT {
        let Some(value) = row.try_get(column).map_err(classified)? else { break };
        index.push(text(value)?);
    }
    Ok(index)
}

/// Returns stored bytes as text. Keys are stored as bytes so that the server compares them by code
/// point, independent of its collation.
fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::corrupt("a document has a key that is not text; restore a backup"))
}
