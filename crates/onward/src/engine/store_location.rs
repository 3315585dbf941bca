//! Locates and opens the store of an engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onward_store::{Clock, Durability, MemoryStore, SqliteStore, Store, SystemClock, bounds as store_bounds};

use crate::error::{Error, Result};

/// The store settings of the builder.
#[derive(Debug, Default)]
pub(crate) struct StoreLocation {
    pub(crate) path: Option<PathBuf>,
    pub(crate) url: Option<String>,
    pub(crate) memory: bool,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) durability: Option<Durability>,
    pub(crate) payload_limit: Option<usize>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

/// The one store that was named.
enum NamedStore {
    File(PathBuf),
    Server(String),
    Memory,
    Open(Arc<dyn Store>),
}

impl StoreLocation {
    /// Sets the location from a path or a URL.
    pub(crate) fn set(&mut self, location: &Path) {
        match location.to_str() {
            Some(url) if is_server(url) => self.url = Some(url.to_owned()),
            _ => self.path = Some(location.to_owned()),
        }
    }

    /// Opens the one store that was named.
    pub(crate) async fn open(mut self) -> Result<Arc<dyn Store>> {
        match self.named()? {
            NamedStore::File(path) => self.open_sqlite(&path).await,
            #[cfg(feature = "postgres")]
            NamedStore::Server(url) => self.open_postgres(&url).await,
            // The URL is not in the error because it may contain a password.
            #[cfg(not(feature = "postgres"))]
            NamedStore::Server(url) => {
                drop(url);
                Err(Error::invalid(
                    "this program was built without PostgreSQL; build onward with its feature `postgres`",
                ))
            }
            _ if self.durability.is_some() => Err(misplaced("a durability level", "`sqlite` and `postgres`")),
            NamedStore::Memory => {
                Ok(Arc::new(MemoryStore::with_clock(self.clock()).with_payload_limit(self.payload_limit())?))
            }
            NamedStore::Open(_) if self.clock.is_some() || self.payload_limit.is_some() => {
                Err(misplaced("a clock or a payload limit", "`sqlite`, `postgres` and `memory`"))
            }
            NamedStore::Open(store) => Ok(store),
        }
    }

    fn named(&mut self) -> Result<NamedStore> {
        let file = self.path.take().map(NamedStore::File);
        let server = self.url.take().map(NamedStore::Server);
        let memory = self.memory.then_some(NamedStore::Memory);
        let mut named = file.into_iter().chain(server).chain(memory).chain(self.store.take().map(NamedStore::Open));
        match (named.next(), named.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => {
                Err(Error::invalid("the engine has no store; set one with `sqlite`, `postgres`, `memory` or `store`"))
            }
            _ => Err(Error::invalid(
                "the engine has several stores; set only one of `sqlite`, `postgres`, `memory` and `store`",
            )),
        }
    }

    fn clock(&mut self) -> Arc<dyn Clock> {
        self.clock.take().unwrap_or_else(|| Arc::new(SystemClock))
    }

    fn payload_limit(&self) -> usize {
        self.payload_limit.unwrap_or(store_bounds::PAYLOAD_BYTES)
    }

    async fn open_sqlite(mut self, path: &Path) -> Result<Arc<dyn Store>> {
        let options = SqliteStore::options().durability(self.durability.unwrap_or_default());
        let options = options.payload_limit(self.payload_limit()).clock(self.clock());
        Ok(Arc::new(options.open(path).await?))
    }

    #[cfg(feature = "postgres")]
    async fn open_postgres(self, url: &str) -> Result<Arc<dyn Store>> {
        let options = onward_store::PostgresStore::options().durability(self.durability.unwrap_or_default());
        let mut options = options.payload_limit(self.payload_limit());
        // The default is the server's clock.
        if let Some(clock) = self.clock {
            options = options.clock(clock);
        }
        Ok(Arc::new(options.open(url).await?))
    }
}

fn is_server(location: &str) -> bool {
    location.starts_with("postgres://") || location.starts_with("postgresql://")
}

#[cold]
fn misplaced(what: &str, belongs: &str) -> Error {
    Error::invalid(format!("{what} was set on an engine whose store has its own; set it only with {belongs}"))
}
