//! Reading stored templates.

use std::collections::BTreeMap;

use onward_store::{DocumentCursor, DocumentPage, DocumentQuery, DocumentRecord, DocumentSelection, Name, StoreReads};

use super::collections::{NAMES, TEMPLATES};
use super::record::{StoredTemplate, TemplatePage, TemplateQuery, TemplateRecord};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::template::TemplateHash;

/// The number of names that are read at once.
const NAMES_READ: usize = 1000;

impl Engine {
    /// Returns the stored template of a name with a label, or without one the newest; `None` if
    /// there is none.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn template(&self, name: &str, label: Option<&str>) -> Result<Option<StoredTemplate>> {
        let key = label.map_or_else(|| name.to_owned(), |label| format!("{name}@{label}"));
        match self.named_hash(&key).await? {
            Some(hash) => self.template_by_hash(hash).await,
            None => Ok(None),
        }
    }

    /// Returns the stored template of a hash; `None` if there is none.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn template_by_hash(&self, hash: TemplateHash) -> Result<Option<StoredTemplate>> {
        let document = self.inner.store.document(Name::new(TEMPLATES)?, hash.to_string()).await?;
        let Some(document) = document else { return Ok(None) };
        let newest = match document.index.first() {
            Some(name) => self.named_hash(name).await?,
            None => None,
        };
        let record = TemplateRecord::of(&document, |_| newest)?;
        StoredTemplate::of(record, &document.content.unwrap_or_default()).map(Some)
    }

    /// Returns a page of the stored templates.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn templates(&self, query: TemplateQuery) -> Result<TemplatePage> {
        let TemplateQuery { after, limit } = query;
        let DocumentPage { documents, next } = self.by_name(TEMPLATES, after, limit).await?;
        let newest = self.newest_of(&documents).await?;
        let record = |document| TemplateRecord::of(document, |name| newest.get(name).copied());
        Ok(TemplatePage { templates: documents.iter().map(record).collect::<Result<_>>()?, next })
    }

    /// Returns the difference of two stored templates, line by line, in the unified format. It is
    /// empty if both hashes are the same.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if either is not stored; the store's error if it could
    /// not be read.
    pub async fn template_diff(&self, one: TemplateHash, other: TemplateHash) -> Result<String> {
        let (one, other) = (self.known_template(one).await?, self.known_template(other).await?);
        Ok(one.diff(&other))
    }

    async fn known_template(&self, hash: TemplateHash) -> Result<StoredTemplate> {
        self.template_by_hash(hash).await?.ok_or_else(|| {
            onward_store::Error::not_found(format!("there is no template {hash} in the store; put it first")).into()
        })
    }

    /// Returns the hash of a `NAME` or a `NAME@LABEL`.
    pub(in crate::workflow) async fn named_hash(&self, key: &str) -> Result<Option<TemplateHash>> {
        let document = self.inner.store.document(Name::new(NAMES)?, key.to_owned()).await?;
        document.as_ref().map(hash_in).transpose()
    }

    /// Returns the newest hash of each name among templates in the order of their names.
    async fn newest_of(&self, templates: &[DocumentRecord]) -> Result<BTreeMap<String, TemplateHash>> {
        let name = |document: &DocumentRecord| document.index.first().cloned().unwrap_or_default();
        let mut newest = BTreeMap::new();
        let (Some(first), Some(last)) = (templates.first().map(name), templates.last().map(name)) else {
            return Ok(newest);
        };
        let mut after = Some(DocumentCursor { value: first, key: String::new() });
        while after.as_ref().is_some_and(|after| after.value <= last) {
            let page = self.by_name(NAMES, after, NAMES_READ).await?;
            for document in &page.documents {
                newest.insert(document.key.clone(), hash_in(document)?);
            }
            after = page.next;
        }
        Ok(newest)
    }

    /// Returns documents with contents, if they are names, in the order of their names.
    async fn by_name(&self, collection: &str, after: Option<DocumentCursor>, limit: usize) -> Result<DocumentPage> {
        let query = DocumentQuery {
            selection: DocumentSelection::IndexPrefix { index: 0, prefix: String::new() },
            after,
            limit,
            with_content: collection == NAMES,
            ..DocumentQuery::new(Name::new(collection)?)
        };
        Ok(self.inner.store.documents(query).await?)
    }
}

fn hash_in(document: &DocumentRecord) -> Result<TemplateHash> {
    let content = document.content.as_deref().unwrap_or_default();
    let hash = std::str::from_utf8(content).ok().and_then(|text| text.parse().ok());
    hash.ok_or_else(|| {
        let key = &document.key;
        Error::from(onward_store::Error::corrupt(format!("the name `{key}` names no template; put the template again")))
    })
}
