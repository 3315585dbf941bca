//! Documents.

use tokio_postgres::types::{ToSql, Type};

use super::model_reads::ask;
use crate::api::document::{DocumentPage, DocumentPageBuilder, DocumentQuery, DocumentRecord, DocumentSelection};
use crate::api::error::Result;
use crate::api::name::Name;
use crate::bounds;
use crate::postgres::load::document_row::{DOCUMENT, record};
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;

/// Returns a document with its content.
pub(in crate::postgres) async fn document(
    shared: &Shared,
    collection: Name,
    key: String,
) -> Result<Option<DocumentRecord>> {
    let text = format!("SELECT {DOCUMENT}, d.content FROM {{s}}.document d WHERE d.collection = $1 AND d.key = $2");
    let (collection, key) = (collection.as_str(), key.as_bytes());
    let client = shared.pool.get().await?;
    let rows = ask(&client, shared, &text, &[(&collection, Type::TEXT), (&key, Type::BYTEA)]).await?;
    client.give_back();
    rows.first().map(record).transpose()
}

/// Returns a page of a collection, read in the order of one index so that a page costs its own
/// length.
pub(in crate::postgres) async fn documents(shared: &Shared, query: DocumentQuery) -> Result<DocumentPage> {
    if query.selection.index().is_some_and(|index| index >= bounds::DOCUMENT_INDEXES) {
        return Ok(DocumentPage::default());
    }
    let start = query.start();
    let (collection, limit) = (query.collection.as_str(), number(DocumentPageBuilder::limit(&query) + 1));
    let (value, key) = (start.value.as_bytes(), start.key.as_bytes());
    let end = end_of(&query.selection);
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&collection, Type::TEXT),
        (&limit, Type::INT8),
        (&value, Type::BYTEA),
        (&key, Type::BYTEA),
        (&end, Type::BYTEA),
    ];
    let client = shared.pool.get().await?;
    let rows = ask(&client, shared, &text(&query, start.is_included, end.is_some()), &parameters).await?;
    client.give_back();
    let mut page = DocumentPageBuilder::new(&query);
    for row in &rows {
        if !page.takes_another() {
            break;
        }
        page.add(record(row)?);
    }
    Ok(page.finish())
}

/// Returns the first bytes that are above everything that the selection has; `None` if there are
/// none.
fn end_of(selection: &DocumentSelection) -> Option<Vec<u8>> {
    let (prefix, is_whole) = match selection {
        DocumentSelection::KeyPrefix(prefix) | DocumentSelection::IndexPrefix { prefix, .. } => (prefix, false),
        DocumentSelection::IndexValue { value, .. } => (value, true),
    };
    let mut end = prefix.clone().into_bytes();
    if is_whole {
        end.push(0);
        return Some(end);
    }
    // No byte of a text is 0xff.
    *end.last_mut()? += 1;
    Some(end)
}

/// The statement for a page: $1 the collection, $2 the limit, $3 and $4 where it begins, $5 where
/// the selection ends.
fn text(query: &DocumentQuery, is_start_included: bool, has_end: bool) -> String {
    let from = if is_start_included { ">=" } else { ">" };
    let (of_start, ordered, order) = match query.selection.index() {
        None => (format!("d.key {from} $4"), "d.key".to_owned(), "d.key".to_owned()),
        Some(index) => (
            format!("d.value{index} <> '' AND (d.value{index}, d.key) {from} ($3, $4)"),
            format!("d.value{index}"),
            format!("d.value{index}, d.key"),
        ),
    };
    let of_end = if has_end { format!("AND {ordered} < $5") } else { String::new() };
    let selected = format!(
        "{{s}}.document d WHERE d.collection = $1 AND {of_start} {of_end} \
         ORDER BY {order} LIMIT $2"
    );
    if !query.with_content {
        return format!("SELECT {DOCUMENT}, NULL::bytea FROM {selected}");
    }
    // Contents beyond the end of the page are not sent.
    let (sum, limit) = ("sum(d.bytes) OVER (ORDER BY", bounds::DOCUMENT_PAGE_BYTES);
    format!(
        "SELECT {DOCUMENT}, CASE WHEN d.before < {limit} THEN d.content END FROM (\
           SELECT d.*, {sum} {order} ROWS UNBOUNDED PRECEDING) - d.bytes AS before FROM (\
             SELECT d.*, octet_length(d.content) AS bytes FROM {selected}) d) d ORDER BY {order}"
    )
}
