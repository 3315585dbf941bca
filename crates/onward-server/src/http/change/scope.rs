//! The scope of a request: the records that its changes write.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onward_store::bounds::TAGS;
use onward_store::{Error, Tags, Timestamp, Write};

use super::audit::AuditRecord;
use super::idempotency::{Idempotency, TAG};

tokio::task_local! {
    /// The scope of the request that this future serves. The engine calls the store within the
    /// future of its caller, so the store sees the scope of the request that caused the call.
    static SCOPE: Arc<ChangeScope>;
}

/// The records that each change of a request carries.
#[derive(Debug)]
pub(crate) struct ChangeScope {
    audit: Option<AuditRecord>,
    idempotency: Option<Idempotency>,
    guard: Mutex<Option<Write>>,
    /// The subject of the changes, if the path of the request does not name it. An empty text
    /// stands for changes without an audit record.
    subject: Mutex<Option<String>>,
    /// The number of audit records so far.
    recorded: AtomicU32,
    is_repeated: AtomicBool,
}

/// Serves a request within its scope.
pub(crate) async fn in_scope<F: Future>(scope: Arc<ChangeScope>, request: F) -> F::Output {
    SCOPE.scope(scope, request).await
}

/// States what the changes of the present request are about, for their audit records.
pub(crate) fn describe_change(subject: String) {
    if let Some(scope) = ChangeScope::current() {
        *scope.subject.lock().unwrap_or_else(PoisonError::into_inner) = Some(subject);
    }
}

impl ChangeScope {
    pub(crate) fn new(audit: Option<AuditRecord>, idempotency: Option<Idempotency>) -> Self {
        let (recorded, is_repeated) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { audit, idempotency, guard: Mutex::default(), subject: Mutex::default(), recorded, is_repeated }
    }

    /// Returns the scope of the present request. Returns `None` outside of requests, and for a
    /// request whose changes record nothing.
    pub(super) fn current() -> Option<Arc<Self>> {
        SCOPE.try_with(Arc::clone).ok().filter(|scope| scope.records_something())
    }

    /// Returns the records for a write, and marks the tasks that it submits.
    pub(super) fn records_for(&self, writes: &mut [Write], now: Timestamp) -> Result<Vec<Write>, Error> {
        let mut records = Vec::new();
        if let Some(idempotency) = self.idempotency.as_ref().filter(|_| writes.iter().any(creates)) {
            writes.iter_mut().for_each(|write| mark(write, idempotency));
            records.push(idempotency.document(now)?);
        }
        if let Some(audit) = &self.audit {
            let subject = self.subject.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if subject.as_deref() != Some("") {
                let number = self.recorded.fetch_add(1, Ordering::Relaxed);
                records.push(audit.about(subject).document(now, number)?);
            }
        }
        records.extend(self.guard.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Ok(records)
    }

    fn records_something(&self) -> bool {
        let has_guard = || self.guard.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        self.audit.is_some() || self.idempotency.is_some() || has_guard()
    }

    /// Adds a write to each change of the request.
    pub(crate) fn set_guard(&self, guard: Write) {
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    }

    /// Notes that another request with the same idempotency key was faster.
    pub(super) fn note_repeated(&self) {
        self.is_repeated.store(true, Ordering::Relaxed);
    }

    /// Returns the idempotency key of the request.
    pub(crate) fn idempotency(&self) -> Option<&Idempotency> {
        self.idempotency.as_ref()
    }

    /// Returns true if another request with the same idempotency key was faster, so that nothing of
    /// this one was done.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated.load(Ordering::Relaxed)
    }
}

/// Returns true for the writes that an idempotency key is for.
fn creates(write: &Write) -> bool {
    matches!(write, Write::Submit(_) | Write::Signal(_))
}

/// Tags a submitted task, so that a repeated request finds it. A task with all the tags that it may
/// have is found by its noted outcome.
fn mark(write: &mut Write, idempotency: &Idempotency) {
    if let Write::Submit(task) = write
        && task.tags.len() < TAGS
    {
        let mut tags: Tags = std::mem::take(&mut task.tags);
        tags.set(TAG, idempotency.digest());
        task.tags = tags;
    }
}
