//! Documents: small named contents that a store keeps besides tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::document::{
    DocumentPage, DocumentPageBuilder, DocumentQuery, DocumentRecord, ExpectedVersion, PutDocument,
};
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::timestamp::Timestamp;
use crate::model::coverage::load_request::LoadRequest;
use crate::model::state::State;
use crate::rules::document as rule;

/// The collection and the key of a document.
pub(crate) type DocumentId = (Name, String);

/// A document without its collection and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) version: u64,
    pub(crate) changed_at: Timestamp,
    pub(crate) content_type: String,
    pub(crate) index: Vec<String>,
    pub(crate) content: Bytes,
}

/// The documents, shared with earlier states.
#[derive(Debug, Clone, Default)]
pub(crate) struct Documents {
    table: Arc<DocumentTable>,
}

/// The documents by collection and key, with their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentTable {
    pub(crate) by_id: BTreeMap<DocumentId, Arc<Document>>,
    /// The number of documents of each collection that has any.
    pub(crate) sizes: BTreeMap<Name, u64>,
    /// The number of collections that have any.
    pub(crate) collections: u64,
}

impl Document {
    /// Returns whether a put would change nothing, so that the version stays.
    fn has_same_content(&self, put: &PutDocument) -> bool {
        self.content_type == put.content_type && self.index == put.index && self.content == put.content
    }

    /// Returns the document as a reader receives it.
    fn record(&self, (collection, key): &DocumentId, with_content: bool) -> DocumentRecord {
        DocumentRecord {
            collection: collection.clone(),
            key: key.clone(),
            version: self.version,
            changed_at: self.changed_at,
            content_type: self.content_type.clone(),
            index: self.index.clone(),
            content: with_content.then(|| self.content.clone()),
        }
    }
}

impl Documents {
    /// Returns the table to read it.
    pub(crate) fn table(&self) -> &Arc<DocumentTable> {
        &self.table
    }

    /// Returns the table for a change, and copies it first if an earlier state shares it.
    pub(crate) fn table_mut(&mut self) -> &mut DocumentTable {
        Arc::make_mut(&mut self.table)
    }

    /// Returns a document with its content.
    pub(crate) fn record(&self, id: &DocumentId) -> Option<DocumentRecord> {
        self.table.by_id.get(id).map(|document| document.record(id, true))
    }

    /// Returns a page of a collection, by index value and key.
    pub(crate) fn page(&self, query: &DocumentQuery) -> DocumentPage {
        let order = |(_, key): &DocumentId, document: &Document| {
            (query.selection.order_of(&document.index).to_owned(), key.clone())
        };
        let start = query.start();
        let first_place = (start.value.to_owned(), start.key.to_owned());
        let first = (query.collection.clone(), String::new());
        let of_collection = self.table.by_id.range(first..).take_while(|(id, _)| id.0 == query.collection);
        let mut selected: Vec<(_, &DocumentId, &Document)> = of_collection
            .filter(|(id, document)| query.selection.selects(&id.1, &document.index))
            .map(|(id, document)| (order(id, document), id, &**document))
            .filter(|(order, ..)| *order > first_place || (start.is_included && *order == first_place))
            .collect();
        selected.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let mut page = DocumentPageBuilder::new(query);
        for (_, id, document) in selected {
            if !page.takes_another() {
                break;
            }
            page.add(document.record(id, query.with_content));
        }
        page.finish()
    }
}

impl DocumentTable {
    /// Inserts or replaces a document, and counts it.
    fn insert(&mut self, id: DocumentId, document: Document) {
        let size = self.sizes.entry(id.0.clone()).or_default();
        if self.by_id.insert(id, Arc::new(document)).is_none() {
            self.collections += u64::from(*size == 0);
            *size += 1;
        }
    }

    /// Removes a document, and a collection that becomes empty.
    fn remove(&mut self, id: &DocumentId) {
        if self.by_id.remove(id).is_none() {
            return;
        }
        if let Some(size) = self.sizes.get_mut(&id.0) {
            *size -= 1;
            if *size == 0 {
                self.sizes.remove(&id.0);
                self.collections -= 1;
            }
        }
    }
}

impl State {
    /// Writes a document if its version is the expected one. Equal content keeps the version.
    pub(super) fn put_document(&mut self, put: PutDocument) -> Result<Outcome, Refusal> {
        rule::check(&put)?;
        let id = (put.collection.clone(), put.key.clone());
        let present = self.find_document(&id).cloned();
        let version = present.as_ref().map(|present| present.version);
        rule::check_version(put.expect, version, &id.0, &id.1)?;
        if let Some(present) = present.filter(|present| present.has_same_content(&put)) {
            return Ok(Outcome::DocumentPut { version: present.version, changed: false });
        }
        let table = self.documents.table();
        if version.is_none() {
            rule::check_room(&id.0, table.sizes.get(&id.0).copied().unwrap_or_default(), table.collections)?;
        }
        let PutDocument { content_type, content, index, .. } = put;
        let version = version.unwrap_or_default() + 1;
        let document = Document { version, changed_at: self.now.wall, content_type, index, content };
        self.documents.table_mut().insert(id, document);
        Ok(Outcome::DocumentPut { version, changed: true })
    }

    /// Removes a document if its version is the expected one. Returns the version that it had.
    pub(super) fn delete_document(
        &mut self,
        collection: Name,
        key: String,
        expect: ExpectedVersion,
    ) -> Result<Outcome, Refusal> {
        rule::check_key(&collection, &key)?;
        let id = (collection, key);
        let version = self.find_document(&id).map(|document| document.version);
        rule::check_version(expect, version, &id.0, &id.1)?;
        if version.is_some() {
            self.documents.table_mut().remove(&id);
        }
        Ok(Outcome::DocumentDeleted { version })
    }

    /// Returns a document. One that is not loaded is requested and counts as absent until then.
    fn find_document(&self, id: &DocumentId) -> Option<&Arc<Document>> {
        let coverage = &self.tasks.coverage;
        coverage.request_unless(
            |loaded| loaded.documents.contains(id),
            || LoadRequest::Document(id.0.clone(), id.1.clone()),
        );
        self.documents.table().by_id.get(id)
    }
}
