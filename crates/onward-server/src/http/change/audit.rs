//! Audit records: the author, the change and the time.

use onward_store::{
    DocumentCursor, DocumentQuery, Error, ExpectedVersion, Name, PutDocument, Store, StoreReads, Timestamp, Write,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::access::Actor;

/// The collection of the audit records. The keys are in the order of time.
pub(super) const COLLECTION: &str = "onward.audit";

/// A record of a change through the server. It is stored in the commit of the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuditRecord {
    /// The time of the change, by the clock of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// The id of the key; that of the session if the one-time link signed in.
    key: String,
    /// The name of the key.
    name: String,
    /// The id of the session, if the change came from a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// The number of the request.
    request_id: String,
    /// The method and the pattern of the path.
    action: String,
    /// The path.
    object: String,
}

impl AuditRecord {
    pub(crate) fn new(actor: &Actor, address: Option<String>, request_id: &str, action: String, object: &str) -> Self {
        let Actor { key, name, session, .. } = actor.clone();
        let (request_id, object) = (request_id.to_owned(), object.to_owned());
        Self { at: None, key, name, session, address, request_id, action, object }
    }

    /// Returns the record with another object, if one is stated.
    pub(crate) fn about(&self, object: Option<String>) -> Self {
        Self { object: object.unwrap_or_else(|| self.object.clone()), ..self.clone() }
    }

    /// Returns the write that stores the record. `number` counts the changes of the request.
    pub(crate) fn document(&self, now: Timestamp, number: u32) -> Result<Write, Error> {
        let record = Self { at: Some(now), ..self.clone() };
        let content = serde_json::to_vec(&record).map_err(|error| Error::corrupt(error.to_string()))?;
        let key = format!("{}-{}-{number}", time_key(now), self.request_id);
        let document = PutDocument {
            expect: ExpectedVersion::Absent,
            content_type: "application/json".to_owned(),
            ..PutDocument::new(Name::new(COLLECTION)?, key, content)
        };
        Ok(Write::PutDocument(Box::new(document)))
    }
}

/// Returns a time as a text that sorts like the time.
pub(super) fn time_key(time: Timestamp) -> String {
    format!("{:016x}", time.as_microseconds().max(0))
}

/// Returns a page of the audit records from a time on, the oldest first, and the cursor of the next
/// page.
pub(crate) async fn audit_page(
    store: &dyn Store,
    since: Option<Timestamp>,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<AuditRecord>, Option<String>), Error> {
    let start = after.or_else(|| since.map(time_key));
    let query = DocumentQuery {
        after: start.map(|key| DocumentCursor { value: String::new(), key }),
        limit,
        with_content: true,
        ..DocumentQuery::new(Name::new(COLLECTION)?)
    };
    let page = store.documents(query).await?;
    let read = |content: &[u8]| {
        serde_json::from_slice(content).map_err(|_| Error::corrupt("an audit record cannot be read; export the others"))
    };
    let records = page.documents.iter().map(|document| read(document.content.as_deref().unwrap_or_default()));
    Ok((records.collect::<Result<_, _>>()?, page.next.map(|next| next.key)))
}
