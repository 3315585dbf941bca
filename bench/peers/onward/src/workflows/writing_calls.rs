//! Counts the calls of a store that write something.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onward_store::{Outcome, Store, StoreDecorator, StoreFuture, Write};

/// A store that counts the calls with a write that is no renewal and no sweep.
#[derive(Debug)]
pub(crate) struct WritingCalls {
    inner: Arc<dyn Store>,
    calls: AtomicU64,
}

impl WritingCalls {
    pub(crate) fn of(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, calls: AtomicU64::new(0) })
    }

    pub(crate) fn count(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl StoreDecorator for WritingCalls {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        let counts = writes.iter().any(|write| !matches!(write, Write::RenewSession { .. } | Write::Sweep));
        self.calls.fetch_add(u64::from(counts), Ordering::Relaxed);
        self.inner.apply(writes)
    }
}
