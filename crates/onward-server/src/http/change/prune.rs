//! Pruning of records whose time is over.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use onward_store::{DocumentQuery, DocumentSelection, Error, ExpectedVersion, Name, Store, StoreReads, Write};

use super::audit::{COLLECTION, time_key};
use super::idempotency::COLLECTION_PREFIX;
use crate::http::bounds;
use crate::http::hooks::DELIVERY_COLLECTION_PREFIX;

/// The time between two looks for records whose time is over.
const INTERVAL: Duration = Duration::from_secs(10);

/// The number of collections: sixteen of idempotency keys, that of the audit records, and sixteen
/// of deliveries to hooks.
const SHARDS: u32 = 33;

/// The position of the collection of the audit records.
const AUDIT: u32 = 16;

/// Prunes old records in passing: a server without requests reads and writes nothing.
#[derive(Debug, Default)]
pub(crate) struct Pruner(Mutex<Turn>);

#[derive(Debug, Default)]
struct Turn {
    last: Option<Duration>,
    shard: u32,
}

impl Pruner {
    /// Returns the collection to prune next, if it is time.
    fn turn(&self, now: Duration) -> Option<u32> {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.last.is_some_and(|last| now < last.saturating_add(INTERVAL)) {
            return None;
        }
        turn.last = Some(now);
        turn.shard = (turn.shard + 1) % SHARDS;
        Some(turn.shard)
    }

    /// Deletes some expired records, if it is time.
    ///
    /// # Errors
    /// Returns the store's error.
    pub(crate) async fn prune(&self, store: &dyn Store) -> Result<(), Error> {
        let clock = store.clock();
        let Some(shard) = self.turn(clock.steady()) else { return Ok(()) };
        let (collection, kept) = match shard {
            AUDIT => (COLLECTION.to_owned(), bounds::AUDIT_KEPT),
            shard if shard < AUDIT => (format!("{COLLECTION_PREFIX}{shard:x}"), bounds::IDEMPOTENCY_KEPT),
            shard => {
                let collection = format!("{DELIVERY_COLLECTION_PREFIX}{:x}", shard - AUDIT - 1);
                (collection, bounds::HOOK_DELIVERIES_KEPT)
            }
        };
        let collection = Name::new(collection)?;
        let oldest_kept = time_key(clock.now().minus(kept));
        let old = oldest(store, &collection, shard, &oldest_kept).await?;
        let delete = |key| Write::DeleteDocument { collection: collection.clone(), key, expect: ExpectedVersion::Any };
        let writes: Vec<Write> = old.into_iter().map(delete).collect();
        if !writes.is_empty() {
            store.apply(writes).await?;
        }
        Ok(())
    }
}

/// Returns the keys of the oldest documents whose time is before a moment.
async fn oldest(store: &dyn Store, collection: &Name, shard: u32, before: &str) -> Result<Vec<String>, Error> {
    let by_key = shard == AUDIT;
    let selection = match by_key {
        true => DocumentSelection::KeyPrefix(String::new()),
        false => DocumentSelection::IndexPrefix { index: 0, prefix: String::new() },
    };
    let limit = bounds::PRUNED_IN_PASSING;
    let query = DocumentQuery { selection, limit, ..DocumentQuery::new(collection.clone()) };
    let page = store.documents(query).await?;
    let time = |key: &str, index: &[String]| match by_key {
        true => key.to_owned(),
        false => index.first().cloned().unwrap_or_default(),
    };
    let is_old = |key: &str, index: &[String]| time(key, index).as_str() < before;
    Ok(page.documents.into_iter().filter(|it| is_old(&it.key, &it.index)).map(|it| it.key).collect())
}
