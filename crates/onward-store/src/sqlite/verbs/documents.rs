//! Documents.

use rusqlite::{OptionalExtension, params};

use crate::api::document::{DocumentRecord, ExpectedVersion, PutDocument};
use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::outcome::Outcome;
use crate::rules::document as rule;
use crate::sqlite::columns::documents;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};

impl Transaction<'_> {
    /// Writes a document if its version is the expected one. Writes nothing if its content is the
    /// same, and keeps the version.
    pub(in crate::sqlite) fn put_document(&mut self, put: &PutDocument) -> VerbResult<Outcome> {
        rule::check(put)?;
        let present = documents::find(self.connection, &put.collection, &put.key)?;
        let version = present.as_ref().map(|present| present.version);
        rule::check_version(put.expect, version, &put.collection, &put.key)?;
        if let Some(present) = present.filter(|present| has_same_content(present, put)) {
            return Ok(Outcome::DocumentPut { version: present.version, changed: false });
        }
        let collection = match (version, self.find_collection(&put.collection)?) {
            (Some(_), Some((collection, _))) => collection,
            (_, found) => {
                let documents = found.map_or(0, |(_, documents)| documents);
                rule::check_room(&put.collection, documents, self.count_collections()?)?;
                documents::count_new(self.connection, &put.collection)?
            }
        };
        let version = version.unwrap_or_default() + 1;
        documents::put(self.connection, collection, put, (version, self.now))?;
        Ok(Outcome::DocumentPut { version, changed: true })
    }

    /// Removes a document if its version is the expected one. Returns the version that it had.
    pub(in crate::sqlite) fn delete_document(
        &mut self,
        collection: &Name,
        key: &str,
        expect: ExpectedVersion,
    ) -> VerbResult<Outcome> {
        rule::check_key(collection, key)?;
        let version = documents::find(self.connection, collection, key)?.map(|present| present.version);
        rule::check_version(expect, version, collection, key)?;
        if version.is_some() {
            self.remove_document(collection, key)?;
        }
        Ok(Outcome::DocumentDeleted { version })
    }

    /// Deletes the row of a document, and its collection after the last document.
    fn remove_document(&self, collection: &Name, key: &str) -> Result<()> {
        let Some((id, documents)) = self.find_collection(collection)? else { return Ok(()) };
        self.connection
            .prepare_cached("DELETE FROM document WHERE collection = ? AND key = ?")?
            .execute(params![id, key])?;
        let count = if documents <= 1 {
            "DELETE FROM document_collection WHERE id = ?"
        } else {
            "UPDATE document_collection SET documents = documents - 1 WHERE id = ?"
        };
        self.connection.prepare_cached(count)?.execute([id])?;
        Ok(())
    }

    /// Returns the number of a collection, and the number of its documents.
    fn find_collection(&self, name: &Name) -> Result<Option<(i64, u64)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT id, documents FROM document_collection WHERE name = ?")?;
        Ok(statement.query_row([name.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    /// Returns the number of collections, which is bounded.
    fn count_collections(&self) -> Result<u64> {
        let mut statement = self.connection.prepare_cached("SELECT count(*) FROM document_collection")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

/// Returns true if a put would change nothing.
fn has_same_content(present: &DocumentRecord, put: &PutDocument) -> bool {
    present.content_type == put.content_type
        && present.index == put.index
        && present.content.as_ref() == Some(&put.content)
}
