//! Fixtures: the kinds of stores that the kit tests.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use onward_store::{Clock, CodecStore, ManualClock, MemoryStore, PayloadCodec, Result, Store, StoreReads, Write};

use crate::faulty_store::FaultyStore;

/// The conditions under which a case opens its store.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// The clock of the store.
    pub clock: Arc<ManualClock>,
    /// The store's limit on payloads and results, in bytes.
    pub payload_limit: usize,
}

impl Default for Conditions {
    /// Returns a manual clock and a limit on payloads of 64 KiB.
    fn default() -> Self {
        Self { clock: Arc::default(), payload_limit: 128 * 1024 }
    }
}

/// A kind of store. Each case gets a location of its own from it, so that cases can run at the same
/// time.
pub trait Fixture {
    /// Returns a new, empty location.
    fn location(&self) -> Box<dyn StoreLocation>;

    /// Returns the reason why no store of this kind can be tested here, for example that its server
    /// is missing. The kit runs nothing on such a fixture: each test prints the reason and passes.
    /// A fixture whose stores are required panics instead.
    fn missing(&self) -> Option<String> {
        None
    }
}

/// Returns true if no store can be tested, and prints the reason.
#[doc(hidden)]
#[must_use]
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
pub fn is_missing(fixture: &(impl Fixture + ?Sized)) -> bool {
    let missing = fixture.missing();
    if let Some(why) = &missing {
        println!("not tested: {why}");
    }
    missing.is_some()
}

/// The location of one store. Dropping it removes what it needs, such as a directory or a server.
pub trait StoreLocation: fmt::Debug + Send + Sync {
    /// Opens the store of this location. The first call opens an empty store; later calls open what
    /// the last store left, after that store was dropped. A store that does not survive closing
    /// returns the same store again, with its [sessions closed](close_sessions).
    fn open(&mut self, conditions: &Conditions) -> Opening<'_>;
}

/// The future of a store that is being opened. It panics with the reason if the store cannot be
/// opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + 'a>>;

/// A fixture of memory stores.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryFixture;

impl Fixture for MemoryFixture {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(MemoryLocation { store: None })
    }
}

#[derive(Debug)]
struct MemoryLocation {
    store: Option<Arc<MemoryStore>>,
}

impl StoreLocation for MemoryLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        if let Some(store) = &self.store {
            let store = Arc::clone(store);
            return Box::pin(async {
                close_sessions(&*store).await;
                store as Arc<dyn Store>
            });
        }
        let clock: Arc<dyn Clock> = conditions.clock.clone();
        let store = MemoryStore::with_clock(clock).with_payload_limit(conditions.payload_limit);
        let store = Arc::new(store.expect("the limit is at most the ceiling"));
        self.store = Some(Arc::clone(&store));
        Box::pin(ready(store as Arc<dyn Store>))
    }
}

/// Closes every open session, as a persistent store does when it is dropped.
///
/// # Panics
/// Panics if the store cannot be read or written.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
pub async fn close_sessions(store: &dyn Store) {
    let sessions = store.sessions().await.expect("the sessions can be read");
    let closes = sessions.into_iter().map(|session| Write::CloseSession { session: session.id }).collect();
    store.apply(closes).await.expect("sessions can be closed");
}

/// The stores of another fixture behind a [`FaultyStore`] without faults. It shows that the
/// decorator changes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultyFixture<F>(pub F);

impl<F: Fixture> Fixture for FaultyFixture<F> {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(FaultyLocation(self.0.location()))
    }
}

#[derive(Debug)]
struct FaultyLocation(Box<dyn StoreLocation>);

impl StoreLocation for FaultyLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let opening = self.0.open(conditions);
        Box::pin(async { Arc::new(FaultyStore::new(opening.await)) as Arc<dyn Store> })
    }
}

/// The stores of another fixture behind a codec that inverts every octet.
#[derive(Debug)]
pub struct CodecFixture<F>(pub F);

impl<F: Fixture> Fixture for CodecFixture<F> {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(CodecLocation(self.0.location()))
    }
}

#[derive(Debug)]
struct CodecLocation(Box<dyn StoreLocation>);

impl StoreLocation for CodecLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let opening = self.0.open(conditions);
        Box::pin(async { Arc::new(CodecStore::new(opening.await, Arc::new(Inverted))) as Arc<dyn Store> })
    }
}

/// A codec that inverts every octet. Nothing is readable without it, and lengths do not change.
#[derive(Debug)]
pub struct Inverted;

impl PayloadCodec for Inverted {
    fn encode(&self, payload: Bytes) -> Result<Bytes> {
        Ok(payload.iter().map(|octet| !octet).collect::<Vec<u8>>().into())
    }

    fn decode(&self, kept: Bytes) -> Result<Bytes> {
        self.encode(kept)
    }
}
