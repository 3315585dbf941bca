//! Idempotency keys: a repeated request has no second effect.

use onward_store::{
    Error, ExpectedVersion, Name, Page, PutDocument, Store, StoreReads, TaskFilter, TaskId, TaskRecord, Timestamp,
    Write,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::scope::ChangeScope;
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
    /// The outcomes of the first request that its tasks do not show.
    outcomes: Vec<NotedOutcome>,
}

/// The content of the document of a key.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    fingerprint: String,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outcomes: Vec<NotedOutcome>,
}

/// The outcome of one submit of a request. It is known only after the commit, so it is noted in a
/// second one; after a crash between the two, a repeat returns the id and `inserted` or
/// `duplicate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedOutcome {
    /// The position of the task in the request.
    pub(crate) index: usize,
    /// The id of the task that the response names.
    pub(crate) id: TaskId,
    /// The word of the outcome.
    pub(crate) outcome: String,
}

impl Idempotency {
    /// Returns the key of a request. `owner` is the id of the API key: keys of different owners are
    /// different. `request` has everything that distinguishes the request from others.
    pub(crate) fn new(owner: &str, path: &str, key: &str, request: &[&[u8]]) -> Self {
        let digest = hex(&[owner.as_bytes(), path.as_bytes(), key.as_bytes()]);
        Self { digest, fingerprint: hex(request), outcomes: Vec::new() }
    }

    /// Returns the noted outcome of one task of the first request.
    pub(crate) fn outcome(&self, index: usize) -> Option<&NotedOutcome> {
        self.outcomes.iter().find(|noted| noted.index == index)
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the write that stores the key. It is refused if the key is stored already.
    pub(super) fn document(&self, now: Timestamp) -> Result<Write, Error> {
        self.write(now, ExpectedVersion::Absent, Vec::new())
    }

    fn write(&self, now: Timestamp, expect: ExpectedVersion, outcomes: Vec<NotedOutcome>) -> Result<Write, Error> {
        let request = StoredRequest { fingerprint: self.fingerprint.clone(), at: now, outcomes };
        let content = serde_json::to_vec(&request).map_err(|error| Error::corrupt(error.to_string()))?;
        let document = PutDocument {
            expect,
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

/// Returns a random id for a request without an idempotency key.
pub(crate) fn new_request_id() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// Returns the digest of parts. Their lengths are hashed too, so that different parts with the same
/// concatenation differ.
fn hex(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Notes outcomes of the present request beside its key. A failure is logged: the request has
/// succeeded.
pub(crate) async fn note_outcomes(store: &dyn Store, outcomes: Vec<NotedOutcome>) {
    let Some(scope) = ChangeScope::current().filter(|_| !outcomes.is_empty()) else { return };
    let Some(request) = scope.idempotency() else { return };
    let noted = async {
        let write = request.write(store.clock().now(), ExpectedVersion::Version(1), outcomes)?;
        store.apply(vec![write]).await
    };
    if let Err(error) = noted.await {
        tracing::warn!(%error, "the outcome of a submit could not be noted for a repeat of its request");
    }
}

/// Returns `Some` if the key was used before: the first request if it was the same, and `None` if
/// it was another one.
pub(crate) async fn find(store: &dyn Store, request: &Idempotency) -> Result<Option<Option<Idempotency>>, Error> {
    let found = store.document(request.collection()?, request.digest.clone()).await?;
    let Some(content) = found.and_then(|document| document.content) else { return Ok(None) };
    let stored: StoredRequest = serde_json::from_slice(&content)
        .map_err(|_| Error::corrupt("the record of an idempotency key cannot be read; use another key"))?;
    let is_same = stored.fingerprint == request.fingerprint;
    Ok(Some(is_same.then(|| Idempotency { outcomes: stored.outcomes, ..request.clone() })))
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
