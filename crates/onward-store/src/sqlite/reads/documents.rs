//! Documents.

use rusqlite::{Connection, OptionalExtension, Rows, ToSql};

use crate::api::document::{DocumentPage, DocumentPageBuilder, DocumentQuery, DocumentRecord};
use crate::api::error::Result;
use crate::api::name::Name;
use crate::bounds;
use crate::sqlite::columns::documents::{COLUMNS, content, find, record};

/// Returns a document with its content.
pub(in crate::sqlite) fn document(
    connection: &Connection,
    collection: &Name,
    key: &str,
) -> Result<Option<DocumentRecord>> {
    find(connection, collection, key)
}

/// Returns a page of a collection. It follows the order of one index, so its cost depends on its
/// own length only.
pub(in crate::sqlite) fn documents(connection: &Connection, query: &DocumentQuery) -> Result<DocumentPage> {
    let mut collection = connection.prepare_cached("SELECT id FROM document_collection WHERE name = ?")?;
    let collection: Option<i64> = collection.query_row([query.collection.as_str()], |row| row.get(0)).optional()?;
    match (collection, query.selection.index()) {
        (None, _) => Ok(DocumentPage::default()),
        (_, Some(index)) if index >= bounds::DOCUMENT_INDEXES => Ok(DocumentPage::default()),
        (Some(collection), index) => page(connection, query, collection, index),
    }
}

/// Reads a page in the order of an index or of the keys. Rows are read one by one, so that the page
/// ends with the selection.
fn page(connection: &Connection, query: &DocumentQuery, collection: i64, index: Option<usize>) -> Result<DocumentPage> {
    let start = query.start();
    let mut statement = connection.prepare_cached(&text(query, index, start.is_included))?;
    let by_key: [&dyn ToSql; 2] = [&collection, &start.key];
    let by_value: [&dyn ToSql; 3] = [&collection, &start.key, &start.value];
    let rows = statement.query(if index.is_some() { &by_value[..] } else { &by_key[..] })?;
    fill(query, rows)
}

/// Returns the statement for a page: by key, or by an index value and key.
fn text(query: &DocumentQuery, index: Option<usize>, is_start_included: bool) -> String {
    let content = if query.with_content { ", d.content" } else { "" };
    let from = if is_start_included { ">=" } else { ">" };
    let rest = match index {
        None => format!("d.key {from} ?2 ORDER BY d.key"),
        Some(index) => {
            format!("d.value{index} <> '' AND (d.value{index}, d.key) {from} (?3, ?2) ORDER BY d.value{index}, d.key")
        }
    };
    format!("SELECT {COLUMNS}{content} FROM document d WHERE d.collection = ?1 AND {rest}")
}

/// Adds rows to the page until one is outside the selection or the page is full.
fn fill(query: &DocumentQuery, mut rows: Rows<'_>) -> Result<DocumentPage> {
    let mut page = DocumentPageBuilder::new(query);
    while let Some(row) = rows.next()? {
        let document = record(&query.collection, row)?;
        // The selected rows are consecutive in this order, so the first other row ends the page.
        if !query.selection.selects(&document.key, &document.index) || !page.takes_another() {
            break;
        }
        let content = if query.with_content { Some(content(row)?) } else { None };
        page.add(DocumentRecord { content, ..document });
    }
    Ok(page.finish())
}
