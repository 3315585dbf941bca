//! The webhooks of a store.

use std::sync::Arc;

use onward_store::{
    DocumentQuery, DocumentRecord, Error, ExpectedVersion, Name, Outcome, PutDocument, Store, StoreReads, Write,
};
use tokio::sync::Notify;

use super::webhook::StoredWebhook;
use crate::http::bounds;

/// The collection of the webhooks. The key of a document is the id.
const COLLECTION: &str = "onward.webhooks";

/// Returns the id of a new webhook.
pub(crate) fn new_webhook_id() -> String {
    format!("{:016x}", fastrand::u64(..))
}

/// The webhooks of a store. They are documents, so every server on the store sends them.
#[derive(Debug)]
pub(crate) struct Webhooks {
    store: Arc<dyn Store>,
    /// Notified when this server creates one.
    pub(super) created: Notify,
}

impl Webhooks {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, created: Notify::new() }
    }

    /// Returns all webhooks by their ids, of which there are at most [`bounds::WEBHOOKS`] unless
    /// several servers created some at the same time.
    pub(crate) async fn list(&self) -> Result<Vec<(String, StoredWebhook)>, Error> {
        let query =
            DocumentQuery { limit: 2 * bounds::WEBHOOKS, with_content: true, ..DocumentQuery::new(collection()?) };
        let page = self.store.documents(query).await?;
        page.documents.iter().map(|document| Ok((document.key.clone(), read(document)?))).collect()
    }

    /// Returns the webhook with an id.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<StoredWebhook>, Error> {
        let found = self.store.document(collection()?, id.to_owned()).await?;
        found.as_ref().map(read).transpose()
    }

    /// Stores a webhook under a new id.
    pub(crate) async fn put(&self, id: &str, webhook: &StoredWebhook) -> Result<(), Error> {
        let content = serde_json::to_vec(webhook).map_err(|error| Error::corrupt(error.to_string()))?;
        let document = PutDocument {
            expect: ExpectedVersion::Absent,
            content_type: "application/json".to_owned(),
            ..PutDocument::new(collection()?, id, content)
        };
        match self.store.apply(vec![Write::PutDocument(Box::new(document))]).await?.pop() {
            Some(Outcome::DocumentPut { .. }) => {
                self.created.notify_waiters();
                Ok(())
            }
            Some(Outcome::Refused(refusal)) => Err(Error::invalid(refusal.to_string())),
            _ => Err(Error::corrupt("the store returned the outcome of another write for a webhook")),
        }
    }

    /// Deletes a webhook. Deliveries that were not sent yet fail.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), Error> {
        let (collection, key) = (collection()?, id.to_owned());
        let delete = Write::DeleteDocument { collection, key, expect: ExpectedVersion::Any };
        match self.store.apply(vec![delete]).await?.pop() {
            Some(Outcome::Refused(refusal)) => Err(Error::invalid(refusal.to_string())),
            _ => Ok(()),
        }
    }
}

fn collection() -> Result<Name, Error> {
    Name::new(COLLECTION)
}

fn read(document: &DocumentRecord) -> Result<StoredWebhook, Error> {
    serde_json::from_slice(document.content.as_deref().unwrap_or_default()).map_err(|_| {
        Error::corrupt(format!("the webhook {} cannot be read; delete it and create another", document.key))
    })
}
