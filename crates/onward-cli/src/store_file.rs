//! Opening stores. Only this module distinguishes a SQLite file from a PostgreSQL database and from
//! a server.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
#[cfg(feature = "postgres")]
use onward_store::PostgresStore;
use onward_store::{SqliteReader, SqliteStore, Store};

use crate::guards::GuardingStore;
use crate::location::Location;
use crate::options::GlobalOptions;
#[cfg(feature = "client")]
use crate::remote::RemoteStore;

/// The requirements of a command on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Requirements {
    /// True to create the store if it is missing.
    create: bool,
    /// True if the command waits for what other processes write.
    stay: bool,
    /// The largest payload or result in bytes, if not the default.
    payload_limit: Option<usize>,
}

const BRIEF: Requirements = Requirements { create: false, stay: false, payload_limit: None };
const STAY: Requirements = Requirements { stay: true, ..BRIEF };

/// Opens the store for a command that adds or sets something. Creates it if it is missing.
pub(crate) async fn open_or_create(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Requirements { create: true, ..BRIEF }).await
}

/// Opens the store for a command that edits limits, queues or schedules: each change carries its
/// guard. Creates the store if it is missing and `create` says so.
pub(crate) async fn open_to_edit(options: &GlobalOptions, create: bool) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(GuardingStore(open(options, Requirements { create, ..BRIEF }).await?)))
}

/// Opens the store for a command that submits tasks and, with `waits`, waits until they have ended.
pub(crate) async fn open_to_submit(options: &GlobalOptions, waits: bool) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Requirements { create: true, stay: waits, ..BRIEF }).await
}

/// Opens the store like [`open_or_create`], for a command that keeps working on it.
pub(crate) async fn open_or_create_to_stay(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Requirements { create: true, ..STAY }).await
}

/// Opens the store like [`open_or_create_to_stay`], but accepts payloads and results of up to
/// `bytes`.
pub(crate) async fn open_with_payload_limit(options: &GlobalOptions, bytes: usize) -> anyhow::Result<Arc<dyn Store>> {
    open(options, Requirements { create: true, payload_limit: Some(bytes), ..STAY }).await
}

/// Opens the store for a command that changes what exists already. A missing store is an error.
pub(crate) async fn open_existing(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, BRIEF).await
}

/// Opens the store like [`open_existing`], for a command that waits for what other processes write.
pub(crate) async fn open_to_stay(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    open(options, STAY).await
}

/// Opens the store for a command that only reads. Such a command waits for no writer and needs no
/// disk space. A missing store is an error.
pub(crate) async fn open_to_read(options: &GlobalOptions) -> anyhow::Result<Arc<dyn Store>> {
    match &options.store {
        Location::File(path) => Ok(Arc::new(open_file_to_read(options, path).await?)),
        Location::Server(_) | Location::Http(_) => open_existing(options).await,
    }
}

/// Opens the store of a file like [`open_to_read`].
pub(crate) async fn open_file_to_read(options: &GlobalOptions, path: &Path) -> anyhow::Result<SqliteReader> {
    let opening = SqliteStore::options().durability(options.durability.into());
    opening.open_to_read(path).await.context(CANNOT_OPEN)
}

async fn open(options: &GlobalOptions, requirements: Requirements) -> anyhow::Result<Arc<dyn Store>> {
    match &options.store {
        Location::File(path) => Ok(Arc::new(open_file(options, path, requirements).await?)),
        #[cfg(feature = "postgres")]
        Location::Server(url) => Ok(Arc::new(open_server(options, url, requirements).await?)),
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(not_built(&options.store)),
        #[cfg(feature = "client")]
        Location::Http(url) => Ok(Arc::new(RemoteStore::open(url).await.context(CANNOT_OPEN)?)),
        #[cfg(not(feature = "client"))]
        Location::Http(_) => Err(not_built(&options.store)),
    }
}

/// Opens the store of a file like [`open_existing`], for commands that work only on a file.
pub(crate) async fn open_existing_file(options: &GlobalOptions, path: &Path) -> anyhow::Result<SqliteStore> {
    open_file(options, path, BRIEF).await
}

/// Returns the error for a store for which this build has no code. Such a build rejects the URL
/// earlier.
pub(crate) fn not_built(store: &Location) -> anyhow::Error {
    crate::exit_code::wrong_usage(format!("this build has no store for {store}; give a file, such as onward.db"))
}

async fn open_file(options: &GlobalOptions, path: &Path, requirements: Requirements) -> anyhow::Result<SqliteStore> {
    let opening = SqliteStore::options().durability(options.durability.into());
    let mut opening = opening.create(requirements.create).brief(!requirements.stay);
    if let Some(bytes) = requirements.payload_limit {
        opening = opening.payload_limit(bytes);
    }
    opening.open(path).await.context(CANNOT_OPEN)
}

/// Opens a store in a database like [`open_existing`].
#[cfg(feature = "postgres")]
pub(crate) async fn open_existing_server(options: &GlobalOptions, url: &str) -> anyhow::Result<PostgresStore> {
    open_server(options, url, BRIEF).await
}

#[cfg(feature = "postgres")]
async fn open_server(options: &GlobalOptions, url: &str, requirements: Requirements) -> anyhow::Result<PostgresStore> {
    let mut opening = PostgresStore::options().durability(options.durability.into()).create(requirements.create);
    if let Some(bytes) = requirements.payload_limit {
        opening = opening.payload_limit(bytes);
    }
    opening.open(url).await.context(CANNOT_OPEN)
}

/// The context of the store's own error, which names the file.
const CANNOT_OPEN: &str = "cannot open the store";

/// Restores a backup to a store that does not exist yet. Calls `progress` with the pages copied and
/// the pages in total.
pub(crate) async fn restore(backup: &Path, to: &Path, progress: impl FnMut(u64, u64)) -> anyhow::Result<()> {
    Ok(SqliteStore::restore(backup, to, progress).await?)
}

/// Creates an empty store.
pub(crate) async fn create(options: &GlobalOptions, path: &Path, page_checksums: bool) -> anyhow::Result<()> {
    let making = SqliteStore::options().durability(options.durability.into()).page_checksums(page_checksums);
    making.open(path).await.map(drop).context("cannot create the store")
}

/// Writes the content of a store to a new file, which must not exist yet.
pub(crate) async fn rebuild(from: &Path, to: &Path, page_checksums: bool) -> anyhow::Result<()> {
    Ok(SqliteStore::rebuild(from, to, page_checksums).await?)
}

/// Migrates a store of an older version of Onward. Returns the number of its schema before and
/// after.
pub(crate) async fn migrate(path: &Path) -> anyhow::Result<(u32, u32)> {
    SqliteStore::migrate(path).await.context(CANNOT_OPEN)
}
