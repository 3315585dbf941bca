//! Documents: small named contents that a store keeps besides tasks.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// The request to store a document.
/// An [expected version](ExpectedVersion) makes the request fail instead of overwriting a change of
/// another process:
///
/// ```
/// use onward_store::{ExpectedVersion, MemoryStore, Outcome, PutDocument, Refusal, Store, Write};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let put = PutDocument::new("settings".parse()?, "theme", "dark");
/// let put = PutDocument { expect: ExpectedVersion::Absent, ..put };
/// let write = Write::PutDocument(Box::new(put));
/// let outcomes = store.apply(vec![write.clone(), write]).await?;
/// assert!(matches!(outcomes[1], Outcome::Refused(Refusal::DocumentChanged { .. })));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutDocument {
    /// The collection. It exists while it has documents.
    pub collection: Name,
    /// The key within the collection, 1 to 512 bytes.
    pub key: String,
    /// The version that the document must have.
    pub expect: ExpectedVersion,
    /// The media type of the content, 1 to 128 visible ASCII characters.
    pub content_type: String,
    /// The content; at most 1 MiB ([`bounds::DOCUMENT_BYTES`]).
    pub content: Bytes,
    /// Up to 4 values by which the document is found, each at most 256 bytes. The position of a
    /// value is the number of its index. An empty value leaves the document out of that index.
    pub index: Vec<String>,
}

impl PutDocument {
    /// Creates a request that replaces any document of the key. The content has no known type and
    /// the document is in no index.
    #[must_use]
    pub fn new(collection: Name, key: impl Into<String>, content: impl Into<Bytes>) -> Self {
        Self {
            collection,
            key: key.into(),
            expect: ExpectedVersion::Any,
            content_type: "application/octet-stream".to_owned(),
            content: content.into(),
            index: Vec::new(),
        }
    }
}

/// The version that a document must have for a write to change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedVersion {
    /// Any version, or no document.
    #[default]
    Any,
    /// No document.
    Absent,
    /// The document in this version.
    Version(u64),
}

/// The record of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRecord {
    /// The collection.
    pub collection: Name,
    /// The key.
    pub key: String,
    /// The version: 1 for a new document, and one more after each change. A document that is put
    /// again after its deletion is new.
    pub version: u64,
    /// The time of the last change.
    pub changed_at: Timestamp,
    /// The media type of the content.
    pub content_type: String,
    /// The values of the indexes.
    pub index: Vec<String>,
    /// The content; `None` in a listing that did not ask for it.
    pub content: Option<Bytes>,
}

/// A query for the documents of a collection, in pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentQuery {
    /// The collection.
    pub collection: Name,
    /// The documents, and their order.
    pub selection: DocumentSelection,
    /// The document after which the page starts: [`DocumentPage::next`] of the previous page.
    /// `None` starts with the first document.
    pub after: Option<DocumentCursor>,
    /// The largest number of documents, clamped to 1 to 1000 ([`bounds::PAGE`]). Default: 50.
    pub limit: usize,
    /// Reads contents, too. A page then ends after the document with which its contents reach
    /// [`bounds::DOCUMENT_PAGE_BYTES`]. Default: false.
    pub with_content: bool,
}

impl DocumentQuery {
    /// Creates a query for all documents of a collection, in the order of their keys, without
    /// contents.
    #[must_use]
    pub fn new(collection: Name) -> Self {
        let selection = DocumentSelection::KeyPrefix(String::new());
        Self { collection, selection, after: None, limit: 50, with_content: false }
    }
}

/// The value and the key at which a page begins, and whether the document there belongs to it.
pub(crate) struct PageStart<'q> {
    pub(crate) value: &'q str,
    pub(crate) key: &'q str,
    pub(crate) is_included: bool,
}

impl DocumentQuery {
    /// Returns where the page begins: at the first document that the selection can have, or after
    /// that of the cursor.
    pub(crate) fn start(&self) -> PageStart<'_> {
        let first = match &self.selection {
            DocumentSelection::KeyPrefix(prefix) => ("", prefix.as_str()),
            DocumentSelection::IndexValue { value, .. } => (value.as_str(), ""),
            DocumentSelection::IndexPrefix { prefix, .. } => (prefix.as_str(), ""),
        };
        let by_index = self.selection.index().is_some();
        let after = self.after.as_ref();
        match after.map(|after| (if by_index { after.value.as_str() } else { "" }, after.key.as_str())) {
            Some((value, key)) if (value, key) >= first => PageStart { value, key, is_included: false },
            _ => PageStart { value: first.0, key: first.1, is_included: true },
        }
    }
}

/// The documents that a query selects. Keys and values are ordered by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentSelection {
    /// The documents whose keys begin with this, in the order of their keys.
    KeyPrefix(String),
    /// The documents with this value in an index, in the order of their keys.
    IndexValue {
        /// The number of the index, counted from 0.
        index: usize,
        /// The value. An empty value is in no index.
        value: String,
    },
    /// The documents whose values in an index begin with a prefix, in the order of value and key.
    IndexPrefix {
        /// The number of the index, counted from 0.
        index: usize,
        /// The prefix.
        prefix: String,
    },
}

impl DocumentSelection {
    /// Returns the number of the index that the selection uses; `None` if it goes by keys.
    pub(crate) fn index(&self) -> Option<usize> {
        match self {
            Self::KeyPrefix(_) => None,
            Self::IndexValue { index, .. } | Self::IndexPrefix { index, .. } => Some(*index),
        }
    }

    /// Returns the text by which a document is ordered before its key: empty if its key decides.
    pub(crate) fn order_of<'d>(&self, index: &'d [String]) -> &'d str {
        self.index().and_then(|number| index.get(number)).map_or("", String::as_str)
    }

    /// Returns whether the selection has a document with this key and these values.
    pub(crate) fn selects(&self, key: &str, index: &[String]) -> bool {
        let value = self.order_of(index);
        match self {
            Self::KeyPrefix(prefix) => key.starts_with(prefix.as_str()),
            Self::IndexValue { value: wanted, .. } => !value.is_empty() && value == wanted,
            Self::IndexPrefix { prefix, .. } => !value.is_empty() && value.starts_with(prefix.as_str()),
        }
    }
}

/// The position of a document in the order of a query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DocumentCursor {
    /// The value in the index of the query; empty for a query by keys.
    pub value: String,
    /// The key.
    pub key: String,
}

/// A page of documents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DocumentPage {
    /// The documents, in the order of the query.
    pub documents: Vec<DocumentRecord>,
    /// The value for [`DocumentQuery::after`] of the next page; `None` if this was the last page.
    pub next: Option<DocumentCursor>,
}

/// A page that is filled document by document, in the order of its query.
pub(crate) struct DocumentPageBuilder<'q> {
    query: &'q DocumentQuery,
    content_bytes: usize,
    page: DocumentPage,
}

impl<'q> DocumentPageBuilder<'q> {
    /// Creates an empty page for a query.
    pub(crate) fn new(query: &'q DocumentQuery) -> Self {
        Self { query, content_bytes: 0, page: DocumentPage::default() }
    }

    /// Returns the largest number of documents of a page.
    pub(crate) fn limit(query: &DocumentQuery) -> usize {
        query.limit.clamp(1, bounds::PAGE)
    }

    /// Returns whether the page takes another document. If not, notes that one follows.
    pub(crate) fn takes_another(&mut self) -> bool {
        let has_room =
            self.page.documents.len() < Self::limit(self.query) && self.content_bytes < bounds::DOCUMENT_PAGE_BYTES;
        if !has_room {
            let last = self.page.documents.last();
            self.page.next = last.map(|last| DocumentCursor {
                value: self.query.selection.order_of(&last.index).to_owned(),
                key: last.key.clone(),
            });
        }
        has_room
    }

    /// Adds the next document. The caller has asked [`takes_another`](Self::takes_another).
    pub(crate) fn add(&mut self, document: DocumentRecord) {
        self.content_bytes += document.content.as_ref().map_or(0, Bytes::len);
        self.page.documents.push(document);
    }

    /// Returns the page. Its cursor is set if another document follows.
    pub(crate) fn finish(self) -> DocumentPage {
        self.page
    }
}
