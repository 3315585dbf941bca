//! Documents.

use std::sync::Arc;

use rusqlite::Connection;

use crate::api::document::{DocumentRecord, ExpectedVersion, PutDocument};
use crate::api::error::Result;
use crate::api::name::Name;
use crate::copy::DOCUMENT_PIECE;
use crate::model::Document;
use crate::postgres::DocumentRow;
use crate::sqlite::columns::documents::{COLUMNS, content, count_new, put, record};

/// Reads the documents after row `after`. Also returns the last row read.
pub(super) fn read(connection: &Connection, after: i64) -> Result<(Vec<DocumentRow>, Option<i64>)> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, d.content, d.id, c.name FROM document d JOIN document_collection c ON c.id = d.collection \
         WHERE d.id > ?1 ORDER BY d.id LIMIT {DOCUMENT_PIECE}"
    ))?;
    let (mut rows, mut documents, mut last) = (statement.query([after])?, Vec::new(), None);
    while let Some(row) = rows.next()? {
        last = Some(row.get(9)?);
        let collection = Name::new(row.get::<_, String>(10)?)?;
        let DocumentRecord { key, version, changed_at, content_type, index, .. } = record(&collection, row)?;
        let document = Document { version, changed_at, content_type, index, content: content(row)? };
        documents.push(DocumentRow { collection, key, document: Arc::new(document) });
    }
    Ok((documents, last))
}

/// Writes a document and counts it.
pub(super) fn write(connection: &Connection, row: &DocumentRow) -> Result<()> {
    let Document { version, changed_at, content_type, index, content } = (*row.document).clone();
    let (collection, key) = (row.collection.clone(), row.key.clone());
    let number = count_new(connection, &collection)?;
    let document = PutDocument { collection, key, expect: ExpectedVersion::Any, content_type, content, index };
    put(connection, number, &document, (version, changed_at))
}
