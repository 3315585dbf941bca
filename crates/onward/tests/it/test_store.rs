//! The stores on which the cases run. Their clock stands still until a test moves it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use onward::testing::ManualClock;
use onward::{Engine, EngineBuilder, RetryPolicy, Store};
use onward_store::{Durability, MemoryStore, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::calls_under_way::{CallsUnderWay, Watched};
use crate::fixture::HOUR;

/// A kind of store that every case runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// The specification.
    Memory,
    /// SQLite in a file.
    Sqlite,
    /// A schema of its own on the server of `ONWARD_POSTGRES_URL`.
    #[cfg(feature = "postgres")]
    Postgres,
}

/// An empty store of one kind, and its clock. It dereferences to the store.
#[derive(Debug)]
pub(crate) struct TestStore {
    store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) kind: StoreKind,
    calls: CallsUnderWay,
    /// The path or address of the store; empty for one in memory.
    place: String,
    /// The directory of the store's file, kept until the test ends.
    _directory: Option<TempDir>,
}

impl Deref for TestStore {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl TestStore {
    /// Opens an empty store. If its server is missing and not required, prints the reason and
    /// returns `None`.
    pub(crate) async fn open(kind: StoreKind) -> Option<Self> {
        let clock = Arc::new(ManualClock::default());
        match kind {
            StoreKind::Memory => {
                Some(Self::new(kind, MemoryStore::with_clock(clock.clone()), clock, (String::new(), None)))
            }
            StoreKind::Sqlite => {
                let directory = tempfile::tempdir().unwrap();
                let place = directory.path().join("onward.db").to_str().unwrap().to_owned();
                let store = sqlite_options(clock.clone()).open(&place).await.unwrap();
                Some(Self::new(kind, store, clock, (place, Some(directory))))
            }
            #[cfg(feature = "postgres")]
            StoreKind::Postgres => {
                let url = crate::postgres::new_schema()?;
                let store = postgres_options(clock.clone()).open(&url).await.unwrap();
                Some(Self::new(kind, store, clock, (url, None)))
            }
        }
    }

    fn new(
        kind: StoreKind,
        store: impl Store,
        clock: Arc<ManualClock>,
        (place, directory): (String, Option<TempDir>),
    ) -> Self {
        let calls = CallsUnderWay::default();
        let store = Arc::new(Watched { inner: store, calls: calls.clone() });
        Self { store, clock, kind, calls, place, _directory: directory }
    }

    /// Opens the store once more, as another process does. A store in memory has no other process.
    pub(crate) async fn opened_again(&self) -> Arc<dyn Store> {
        match self.kind {
            StoreKind::Memory => self.shared(),
            StoreKind::Sqlite => Arc::new(sqlite_options(self.clock.clone()).open(&self.place).await.unwrap()),
            #[cfg(feature = "postgres")]
            StoreKind::Postgres => Arc::new(postgres_options(self.clock.clone()).open(&self.place).await.unwrap()),
        }
    }

    /// Opens another empty store of this kind.
    pub(crate) async fn fresh(&self) -> Self {
        Self::open(self.kind).await.unwrap()
    }

    /// Returns whether the store is on a server, where each call takes milliseconds.
    pub(crate) fn is_on_server(&self) -> bool {
        !matches!(self.kind, StoreKind::Memory | StoreKind::Sqlite)
    }

    /// Returns a handle on the store, for an engine or a store in front of it.
    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Returns a builder with the options that engines have here unless a test sets others.
    pub(crate) fn builder(&self) -> EngineBuilder {
        Engine::builder().store(self.shared()).concurrency(8).lease(HOUR).retry(RetryPolicy::NEVER)
    }

    pub(crate) async fn engine(&self) -> Engine {
        self.builder().open().await.unwrap()
    }

    /// Waits until no call of the store is under way and every task of the runtime has run.
    pub(crate) async fn settled(&self) {
        self.calls.settled().await;
    }

    /// Moves the clock by one step. Before and after it waits until the engine has done all that it
    /// can do.
    pub(crate) async fn advance(&self, step: Duration) {
        self.settled().await;
        self.clock.advance(step);
        self.settled().await;
    }

    /// Moves the clock in steps until `what` has ended.
    ///
    /// The clock stands still while a call is under way. A server takes milliseconds for what
    /// memory does at once, and leases would lapse between two of its replies.
    pub(crate) async fn advance_until<T: Send + 'static>(&self, step: Duration, what: JoinHandle<T>) -> T {
        loop {
            self.settled().await;
            if what.is_finished() {
                return what.await.unwrap();
            }
            self.clock.advance(step);
        }
    }
}

fn sqlite_options(clock: Arc<ManualClock>) -> onward_store::SqliteOptions {
    SqliteStore::options().clock(clock).durability(Durability::Normal)
}

/// The connections of each store. Hundreds of tests run on one server, eight or more at once.
#[cfg(feature = "postgres")]
const READERS: usize = 2;

#[cfg(feature = "postgres")]
fn postgres_options(clock: Arc<ManualClock>) -> onward::store::PostgresOptions {
    let options = onward::store::PostgresStore::options().clock(clock).readers(READERS);
    // A test must not wait for long if a notification is lost.
    options.poll(Duration::from_millis(100)).durability(Durability::Normal)
}
