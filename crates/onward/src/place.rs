//! Where an engine's work is kept, and how that is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onward_store::{Clock, Durability, MemoryStore, SqliteStore, Store, SystemClock, limits as store_limits};

use crate::error::{Error, Result};

/// What the builder was told about the store.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) path: Option<PathBuf>,
    pub(crate) memory: bool,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) durability: Option<Durability>,
    pub(crate) payload_limit: Option<usize>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl Place {
    /// Opens the one store that was named.
    pub(crate) async fn open(self) -> Result<Arc<dyn Store>> {
        let has_options = self.clock.is_some() || self.payload_limit.is_some();
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let payload_limit = self.payload_limit.unwrap_or(store_limits::PAYLOAD_BYTES);
        match (self.path, self.memory, self.store) {
            (Some(path), false, None) => {
                open_sqlite(&path, self.durability.unwrap_or_default(), payload_limit, clock).await
            }
            (None, _, _) if self.durability.is_some() => Err(misplaced("a durability class", "`sqlite`")),
            (None, true, None) => Ok(Arc::new(MemoryStore::with_clock(clock).with_payload_limit(payload_limit))),
            (None, false, Some(_)) if has_options => {
                Err(misplaced("a clock or a payload limit", "`sqlite` and `memory`"))
            }
            (None, false, Some(store)) => Ok(store),
            (None, false, None) => {
                Err(Error::invalid("the engine was not told where to keep its work; say `sqlite`, `memory` or `store`"))
            }
            _ => Err(Error::invalid(
                "the engine was told several places to keep its work; say one of `sqlite`, `memory` and `store`",
            )),
        }
    }
}

#[cold]
fn misplaced(what: &str, belongs: &str) -> Error {
    Error::invalid(format!("{what} was given to an engine whose store has its own; it is for {belongs}"))
}

/// Opens a SQLite file.
async fn open_sqlite(
    path: &Path,
    durability: Durability,
    payload_limit: usize,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>> {
    let options = SqliteStore::options().durability(durability).payload_limit(payload_limit).clock(clock);
    Ok(Arc::new(options.open(path).await?))
}
