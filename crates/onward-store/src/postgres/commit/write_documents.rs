//! Writing documents.

use tokio_postgres::types::Type;

use crate::postgres::commit::write_rows::Statements;
use crate::postgres::working_set::change_set::{ChangeSet, DocumentRow};

/// Writes the changed documents: first the removed ones, then the others.
pub(super) fn documents<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    if !change_set.removed_documents.is_empty() {
        let removed = change_set.removed_documents.iter();
        let (collections, keys): (Vec<&str>, Vec<&[u8]>) =
            removed.map(|(collection, key)| (collection.as_str(), key.as_bytes())).unzip();
        statements.send(
            "DELETE FROM {s}.document d USING unnest($1, $2) AS u (collection, key) \
             WHERE d.collection = u.collection AND d.key = u.key",
            vec![(Box::new(collections), Type::TEXT_ARRAY), (Box::new(keys), Type::BYTEA_ARRAY)],
        );
    }
    if !change_set.documents.is_empty() {
        put_documents(statements, &change_set.documents);
    }
    count_documents(statements, change_set);
}

const PUT_DOCUMENTS: &str = "INSERT INTO {s}.document \
       (collection, key, version, changed_at, content_type, value0, value1, value2, value3, content) \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
     ON CONFLICT (collection, key) DO UPDATE SET version = excluded.version, changed_at = excluded.changed_at, \
       content_type = excluded.content_type, value0 = excluded.value0, value1 = excluded.value1, \
       value2 = excluded.value2, value3 = excluded.value3, content = excluded.content";

/// Writes documents in one statement with an array for each column.
fn put_documents<'a>(statements: &mut Statements<'a>, rows: &'a [DocumentRow]) {
    let text = |text: fn(&DocumentRow) -> &str| -> Vec<&'a str> { rows.iter().map(text).collect() };
    let keys: Vec<&[u8]> = rows.iter().map(|row| row.key.as_bytes()).collect();
    let versions: Vec<i64> = rows.iter().map(|row| row.document.version.cast_signed()).collect();
    let changed_at: Vec<i64> = rows.iter().map(|row| row.document.changed_at.as_microseconds()).collect();
    let contents: Vec<&[u8]> = rows.iter().map(|row| &row.document.content[..]).collect();
    let values = |number: usize| -> Box<Vec<Option<&'a [u8]>>> {
        Box::new(rows.iter().map(|row| row.document.index.get(number).map(String::as_bytes)).collect())
    };
    statements.send(
        PUT_DOCUMENTS,
        vec![
            (Box::new(text(|row| row.collection.as_str())), Type::TEXT_ARRAY),
            (Box::new(keys), Type::BYTEA_ARRAY),
            (Box::new(versions), Type::INT8_ARRAY),
            (Box::new(changed_at), Type::INT8_ARRAY),
            (Box::new(text(|row| &row.document.content_type)), Type::TEXT_ARRAY),
            (values(0), Type::BYTEA_ARRAY),
            (values(1), Type::BYTEA_ARRAY),
            (values(2), Type::BYTEA_ARRAY),
            (values(3), Type::BYTEA_ARRAY),
            (Box::new(contents), Type::BYTEA_ARRAY),
        ],
    );
}

/// Writes the number of documents of each changed collection, and deletes empty collections.
fn count_documents<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    let is_empty = |(_, documents): &&(String, i64)| *documents == 0;
    let gone: Vec<&str> = change_set.collections.iter().filter(is_empty).map(|(name, _)| name.as_str()).collect();
    if !gone.is_empty() {
        let delete = "DELETE FROM {s}.document_collection WHERE name = ANY($1)";
        statements.send(delete, vec![(Box::new(gone), Type::TEXT_ARRAY)]);
    }
    let changed = change_set.collections.iter().filter(|size| !is_empty(size));
    let (names, documents): (Vec<&str>, Vec<i64>) =
        changed.map(|(name, documents)| (name.as_str(), *documents)).unzip();
    if !names.is_empty() {
        statements.send(
            "INSERT INTO {s}.document_collection (name, documents) SELECT * FROM unnest($1, $2) \
             ON CONFLICT (name) DO UPDATE SET documents = excluded.documents",
            vec![(Box::new(names), Type::TEXT_ARRAY), (Box::new(documents), Type::INT8_ARRAY)],
        );
    }
}
