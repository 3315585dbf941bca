//! Opening stores: everything that knows that one is a SQLite file, or in a PostgreSQL database.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
#[cfg(feature = "postgres")]
use onward_store::PostgresStore;
use onward_store::{SqliteReader, SqliteStore, Store};

use crate::location::Location;
use crate::options::GlobalOptions;

/// What a command needs of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    /// Whether the store is made if it is missing.
    create: bool,
    /// Whether the command waits for what other processes write.
    stay: bool,
    /// The largest payload or result in bytes, if not the default.
    payload_limit: Option<usize>,
}

const BRIEF: Need = Need { create: false, stay: false, payload_limit: None };
const STAY: Need = Need { stay: true, ..BRIEF };

/// Opens the store for a command that adds or sets something: it is made if it is missing.
pub(crate) async fn open_or_create(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Need { create: true, ..BRIEF }).await
}

/// Opens the store for a command that submits tasks, and perhaps waits for their end.
pub(crate) async fn open_to_submit(options: &GlobalOptions, waits: bool) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Need { create: true, stay: waits, ..BRIEF }).await
}

/// Opens the store as [`open_or_create`] does, for a command that works on it.
pub(crate) async fn open_or_create_to_stay(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Need { create: true, ..STAY }).await
}

/// Opens the store as [`open_or_create_to_stay`] does, but lets it take payloads and results of up
/// to `bytes`.
pub(crate) async fn open_with_payload_limit(options: &GlobalOptions, bytes: usize) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Need { create: true, payload_limit: Some(bytes), ..STAY }).await
}

/// Opens the store for a command that changes what must be there already: a missing one is an
/// error.
pub(crate) async fn open_existing(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, BRIEF).await
}

/// Opens the store as [`open_existing`] does, for a command that waits for what other processes
/// write.
pub(crate) async fn open_to_stay(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, STAY).await
}

/// Opens the store for a command that only reads, and so waits for no writer and needs no room: a
/// missing one is an error.
pub(crate) async fn open_to_read(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    match &options.store {
        Location::File(path) => Ok(Arc::new(open_file_to_read(options, path).await?)),
        Location::Server(_) => open_existing(options).await,
    }
}

/// Opens the store of a file as [`open_to_read`] does.
pub(crate) async fn open_file_to_read(options: &GlobalOptions, path: &Path) -> anyhow::Result<SqliteReader> {
    let opening = SqliteStore::options().durability(options.durability.into());
    opening.open_to_read(path).await.context(CANNOT_OPEN)
}

async fn open(options: &GlobalOptions, need: Need) -> anyhow::Result<Arc<dyn Store>> {
    match &options.store {
        Location::File(path) => Ok(Arc::new(open_file(options, path, need).await?)),
        #[cfg(feature = "postgres")]
        Location::Server(url) => Ok(Arc::new(open_server(options, url, need).await?)),
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(not_built(&options.store)),
    }
}

/// Opens the store of a file as [`open_existing`] does, for the commands that work on the file.
pub(crate) async fn open_existing_file(options: &GlobalOptions, path: &Path) -> anyhow::Result<SqliteStore> {
    open_file(options, path, BRIEF).await
}

/// The error for a store on a server in a build without them, which does not accept its URL in the
/// first place.
#[cfg(not(feature = "postgres"))]
pub(crate) fn not_built(store: &Location) -> anyhow::Error {
    crate::exit_code::wrong_usage(format!("this build has no store for {store}; give a file, such as onward.db"))
}

async fn open_file(options: &GlobalOptions, path: &Path, need: Need) -> anyhow::Result<SqliteStore> {
    let opening = SqliteStore::options().durability(options.durability.into());
    let mut opening = opening.create(need.create).brief(!need.stay);
    if let Some(bytes) = need.payload_limit {
        opening = opening.payload_limit(bytes);
    }
    opening.open(path).await.context(CANNOT_OPEN)
}

/// As [`open_existing`], for a store in a database.
#[cfg(feature = "postgres")]
pub(crate) async fn open_existing_server(options: &GlobalOptions, url: &str) -> anyhow::Result<PostgresStore> {
    open_server(options, url, BRIEF).await
}

#[cfg(feature = "postgres")]
async fn open_server(options: &GlobalOptions, url: &str, need: Need) -> anyhow::Result<PostgresStore> {
    let mut opening = PostgresStore::options().durability(options.durability.into()).create(need.create);
    if let Some(bytes) = need.payload_limit {
        opening = opening.payload_limit(bytes);
    }
    opening.open(url).await.context(CANNOT_OPEN)
}

/// The store's own error names the file.
const CANNOT_OPEN: &str = "cannot open the store";

/// Puts a backup in the place of a store that does not exist yet. `progress` is told of pages
/// copied and pages in all.
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

/// Brings a store of an older version of Onward up to date; returns the number of its schema before
/// and after.
pub(crate) async fn migrate(path: &Path) -> anyhow::Result<(u32, u32)> {
    SqliteStore::migrate(path).await.context(CANNOT_OPEN)
}
