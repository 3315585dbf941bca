//! The hooks of a store.

use std::sync::Arc;

use onward_store::{
    DocumentQuery, DocumentRecord, Error, ExpectedVersion, Name, Outcome, PutDocument, Store, StoreReads, Write,
};

use super::hook::StoredHook;
use crate::http::bounds;

/// The collection of the hooks. The key of a document is the name.
const COLLECTION: &str = "onward.hooks";

/// The hooks of a store. They are documents, so every server on the store takes their deliveries.
#[derive(Debug)]
pub(crate) struct Hooks {
    store: Arc<dyn Store>,
}

impl Hooks {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Returns all hooks by their names, at most twice [`bounds::WEBHOOKS`].
    pub(crate) async fn list(&self) -> Result<Vec<(String, StoredHook)>, Error> {
        let query =
            DocumentQuery { limit: 2 * bounds::WEBHOOKS, with_content: true, ..DocumentQuery::new(collection()?) };
        let page = self.store.documents(query).await?;
        page.documents.iter().map(|document| Ok((document.key.clone(), read(document)?))).collect()
    }

    /// Returns the hook with a name.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<StoredHook>, Error> {
        if name.is_empty() || name.len() > bounds::HOOK_NAME_BYTES {
            return Ok(None);
        }
        let found = self.store.document(collection()?, name.to_owned()).await?;
        found.as_ref().map(read).transpose()
    }

    /// Stores a hook, in place of the one with its name.
    pub(crate) async fn put(&self, name: &str, hook: &StoredHook) -> Result<(), Error> {
        let content = serde_json::to_vec(hook).map_err(|error| Error::corrupt(error.to_string()))?;
        let content_type = "application/json".to_owned();
        let document = PutDocument { content_type, ..PutDocument::new(collection()?, name, content) };
        self.apply(Write::PutDocument(Box::new(document))).await
    }

    /// Deletes a hook. Its deliveries are refused from now on.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), Error> {
        let (collection, key, expect) = (collection()?, name.to_owned(), ExpectedVersion::Any);
        self.apply(Write::DeleteDocument { collection, key, expect }).await
    }

    async fn apply(&self, write: Write) -> Result<(), Error> {
        match self.store.apply(vec![write]).await?.pop() {
            Some(Outcome::Refused(refusal)) => Err(Error::invalid(refusal.to_string())),
            _ => Ok(()),
        }
    }
}

fn collection() -> Result<Name, Error> {
    Name::new(COLLECTION)
}

fn read(document: &DocumentRecord) -> Result<StoredHook, Error> {
    serde_json::from_slice(document.content.as_deref().unwrap_or_default())
        .map_err(|_| Error::corrupt(format!("the hook {} cannot be read; put it again", document.key)))
}
