//! Opening stores: everything that knows that one is a SQLite file, or in a PostgreSQL database.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
#[cfg(feature = "postgres")]
use onward_store::PostgresStore;
use onward_store::{SqliteStore, Store};

use crate::location::Location;
use crate::options::GlobalOptions;

/// Opens the store for a command that adds or sets something: it is made if it is missing.
pub(crate) async fn open_or_create(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, true, None).await
}

/// Opens the store as [`open_or_create`] does, but lets it take payloads and results of up to `bytes`.
pub(crate) async fn open_with_payload_limit(options: &GlobalOptions, bytes: usize) -> anyhow::Result<Arc<dyn Store>> {
    open(options, true, Some(bytes)).await
}

/// Opens the store for a command that reads, or changes what must be there already: a missing one is an error.
pub(crate) async fn open_existing(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, false, None).await
}

async fn open(options: &GlobalOptions, create: bool, payload_limit: Option<usize>) -> anyhow::Result<Arc<dyn Store>> {
    match &options.store {
        Location::File(path) => Ok(Arc::new(open_file(options, path, create, payload_limit).await?)),
        #[cfg(feature = "postgres")]
        Location::Server(url) => Ok(Arc::new(open_server(options, url, create, payload_limit).await?)),
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(not_built(&options.store)),
    }
}

/// Opens the store of a file as [`open_existing`] does, for the commands that work on the file.
pub(crate) async fn open_existing_file(options: &GlobalOptions, path: &Path) -> anyhow::Result<SqliteStore> {
    open_file(options, path, false, None).await
}

/// The error for a store on a server in a build without them, which does not accept its URL in the first place.
#[cfg(not(feature = "postgres"))]
pub(crate) fn not_built(store: &Location) -> anyhow::Error {
    crate::exit_code::wrong_usage(format!("this build has no store for {store}; give a file, such as onward.db"))
}

async fn open_file(
    options: &GlobalOptions,
    path: &Path,
    create: bool,
    payload_limit: Option<usize>,
) -> anyhow::Result<SqliteStore> {
    let mut opening = SqliteStore::options().durability(options.durability.into()).create(create);
    if let Some(bytes) = payload_limit {
        opening = opening.payload_limit(bytes);
    }
    opening.open(path).await.context(CANNOT_OPEN)
}

/// As [`open_existing`], for a store in a database.
#[cfg(feature = "postgres")]
pub(crate) async fn open_existing_server(options: &GlobalOptions, url: &str) -> anyhow::Result<PostgresStore> {
    open_server(options, url, false, None).await
}

#[cfg(feature = "postgres")]
async fn open_server(
    options: &GlobalOptions,
    url: &str,
    create: bool,
    payload_limit: Option<usize>,
) -> anyhow::Result<PostgresStore> {
    let mut opening = PostgresStore::options().durability(options.durability.into()).create(create);
    if let Some(bytes) = payload_limit {
        opening = opening.payload_limit(bytes);
    }
    opening.open(url).await.context(CANNOT_OPEN)
}

/// The store's own error names the file.
const CANNOT_OPEN: &str = "cannot open the store";

/// Puts a backup in the place of a store that does not exist yet. `progress` is told of pages copied and pages in all.
pub(crate) async fn restore(backup: &Path, to: &Path, progress: impl FnMut(u64, u64)) -> anyhow::Result<()> {
    Ok(SqliteStore::restore(backup, to, progress).await?)
}

/// Makes an empty store.
pub(crate) async fn create(options: &GlobalOptions, path: &Path, page_checksums: bool) -> anyhow::Result<()> {
    let making = SqliteStore::options().durability(options.durability.into()).page_checksums(page_checksums);
    making.open(path).await.map(drop).context("cannot make the store")
}

/// Writes a store anew into a file that does not exist yet.
pub(crate) async fn rebuild(from: &Path, to: &Path, page_checksums: bool) -> anyhow::Result<()> {
    Ok(SqliteStore::rebuild(from, to, page_checksums).await?)
}

/// Brings a store of an older version of Onward up to date; returns the number of its schema before and after.
pub(crate) async fn migrate(path: &Path) -> anyhow::Result<(u32, u32)> {
    SqliteStore::migrate(path).await.context(CANNOT_OPEN)
}
