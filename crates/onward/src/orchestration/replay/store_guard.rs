//! A guard that keeps the code of orchestrations from the store of its engine. A replay would
//! repeat such a call, and no history records it. The guard rejects every call, because its success
//! would depend on the store.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use onward_store::{
    Changes, Clock, Error, NotificationReceiver, Outcome, Read, ReadReply, Store, StoreFuture, StoreInfo, Write,
};

thread_local! {
    /// True while the code of an orchestration runs on this thread.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the code of an orchestration, which may not call an engine in the meantime.
pub(super) fn without_store<R>(code: impl FnOnce() -> R) -> R {
    /// A guard that restores the earlier value, even after a panic.
    struct Restored(bool);

    impl Drop for Restored {
        fn drop(&mut self) {
            IS_GUARDED.set(self.0);
        }
    }

    let _restored = Restored(IS_GUARDED.replace(true));
    code()
}

/// Returns an error if the code of an orchestration runs on this thread.
///
/// # Errors
/// An error whose text names the alternatives.
pub(crate) fn check() -> onward_store::Result<()> {
    if IS_GUARDED.get() { Err(refused()) } else { Ok(()) }
}

#[cold]
fn refused() -> Error {
    Error::invalid(
        "the code of an orchestration called its engine, which a replay would do again; submit with `context.activity`, \
         `context.orchestration` or `context.detach`, wait with `context.event`, and do anything else in a `context.step` or an \
         activity",
    )
}

/// The store of an engine, which rejects calls from the code of an orchestration.
#[derive(Debug)]
pub(crate) struct GuardedStore(Arc<dyn Store>);

impl GuardedStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

/// Defines the methods that call the store.
impl GuardedStore {
    fn call<'a, T: Send + 'a>(&'a self, call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match check() {
            Ok(()) => call(&*self.0),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl Store for GuardedStore {
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.call(|store| store.apply(writes))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.call(|store| store.read(read))
    }

    fn changes(&self) -> Changes {
        self.0.changes()
    }

    fn notifications(&self) -> NotificationReceiver {
        self.0.notifications()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn claim_size(&self) -> usize {
        self.0.claim_size()
    }

    fn info(&self) -> StoreInfo {
        self.0.info()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.0.as_any()
    }
}
