//! Idempotency keys: a repeated request has no second effect.

use onward_store::{
    Error, ExpectedVersion, Name, Page, PutDocument, Store, StoreReads, TaskFilter, TaskRecord, Timestamp, Write,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::http::bounds;

/// The tag that a task carries which was submitted under an idempotency key. Its value is the
/// digest of the key.
pub(crate) const TAG: &str = "onward.request";

/// The beginning of the names of the collections. A hexadecimal digit of the digest follows, so
/// that sixteen collections share the keys.
pub(super) const COLLECTION_PREFIX: &str = "onward.request-";

/// The idempotency key of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Idempotency {
    /// The digest of the key, its owner and the path.
    digest: String,
    /// The digest of the request.
    fingerprint: String,
}

/// The content of the document of a key.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    fingerprint: String,
    at: Timestamp,
}

impl Idempotency {
    /// `owner` is the id of the API key: keys of different owners are different. `request` has
    /// everything that makes the request what it is.
    pub(crate) fn new(owner: &str, path: &str, key: &str, request: &[&[u8]]) -> Self {
        let digest = hex(&[owner.as_bytes(), path.as_bytes(), key.as_bytes()]);
        Self { digest, fingerprint: hex(request) }
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the write that stores the key. It is refused if the key is stored already.
    pub(super) fn document(&self, now: Timestamp) -> Result<Write, Error> {
        let request = StoredRequest { fingerprint: self.fingerprint.clone(), at: now };
        let content = serde_json::to_vec(&request).map_err(|error| Error::corrupt(error.to_string()))?;
        let document = PutDocument {
            expect: ExpectedVersion::Absent,
            content_type: "application/json".to_owned(),
            index: vec![super::audit::time_key(now)],
            ..PutDocument::new(self.collection()?, self.digest.clone(), content)
        };
        Ok(Write::PutDocument(Box::new(document)))
    }

    fn collection(&self) -> Result<Name, Error> {
        Name::new(format!("{COLLECTION_PREFIX}{}", &self.digest[..1]))
    }
}

/// Returns the digest of parts. The lengths keep apart what together has the same bytes.
fn hex(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether the key was used before; then `Some(true)` if it was with the same request.
pub(crate) async fn find(store: &dyn Store, request: &Idempotency) -> Result<Option<bool>, Error> {
    let found = store.document(request.collection()?, request.digest.clone()).await?;
    let Some(content) = found.and_then(|document| document.content) else { return Ok(None) };
    let stored: StoredRequest = serde_json::from_slice(&content)
        .map_err(|_| Error::corrupt("the record of an idempotency key cannot be read; use another key"))?;
    Ok(Some(stored.fingerprint == request.fingerprint))
}

/// Returns the tasks that the first request with the key submitted, in the order of their numbers.
pub(crate) async fn tagged_tasks(store: &dyn Store, digest: &str) -> Result<Vec<TaskRecord>, Error> {
    let filter = TaskFilter { tags: [(TAG, digest)].into_iter().collect(), ..TaskFilter::default() };
    let (mut tasks, mut before) = (Vec::new(), None);
    while tasks.len() <= bounds::BATCH {
        let page = store.tasks(filter.clone(), Page { before, limit: bounds::PAGE }).await?;
        tasks.extend(page.tasks);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    tasks.reverse();
    Ok(tasks)
}
