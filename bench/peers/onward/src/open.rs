//! Opens the store that a row asks for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use bench_protocol::{Class, CommitSizes, Request};
use onward::{Durability, Engine, Store};
use onward_store::{MemoryStore, PostgresStore, SqliteStore};
use tempfile::TempDir;

/// An open store, with what it depends on.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The place where other processes find the store. Not used for a store in memory.
    pub(crate) place: PathBuf,
    sqlite: Option<Arc<SqliteStore>>,
    _directory: Option<TempDir>,
}

impl Opened {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, place: PathBuf::new(), sqlite: None, _directory: None }
    }
}

/// Opens the store of a row's durability level and settings. A file is new and belongs to this run.
pub(crate) async fn open_store(request: &Request) -> Result<Opened> {
    if request.settings == "memory store" {
        ensure!(request.class == Class::Memory, "the memory store is of class memory");
        return Ok(Opened::new(Arc::new(MemoryStore::new())));
    }
    if request.row.postgres {
        let place = PathBuf::from(request.server()?);
        let store = open_place(&place, request.class).await?;
        return Ok(Opened { place, ..Opened::new(store) });
    }
    if request.class == Class::Memory {
        let sqlite = Arc::new(SqliteStore::options().open_in_memory().await?);
        return Ok(Opened { sqlite: Some(sqlite.clone()), ..Opened::new(sqlite) });
    }
    let directory = tempfile::tempdir_in(&request.directory)?;
    let place = directory.path().join("onward.db");
    let options = SqliteStore::options().durability(durability(request.class));
    let options = options.page_checksums(request.settings == "page checksums");
    let sqlite = Arc::new(options.open(&place).await?);
    Ok(Opened { place, sqlite: Some(sqlite.clone()), _directory: Some(directory), ..Opened::new(sqlite) })
}

/// Opens a file with a durability level.
pub(crate) async fn open_file(path: &Path, class: Class) -> Result<SqliteStore> {
    Ok(SqliteStore::options().durability(durability(class)).open(path).await?)
}

/// Opens a file, or a store on PostgreSQL if the place is a URL.
pub(crate) async fn open_place(place: &Path, class: Class) -> Result<Arc<dyn Store>> {
    match place.to_str().filter(|place| place.starts_with("postgres:")) {
        Some(url) => Ok(Arc::new(PostgresStore::options().durability(durability(class)).open(url).await?)),
        None => Ok(Arc::new(open_file(place, class).await?)),
    }
}

fn durability(class: Class) -> Durability {
    match class {
        Class::Memory => Durability::Memory,
        Class::Normal => Durability::Normal,
        Class::Full => Durability::Full,
    }
}

/// Opens an engine with `slots` slots on a store.
pub(crate) async fn engine(store: &Arc<dyn Store>, slots: usize) -> Result<Engine> {
    Ok(Engine::builder().store(store.clone()).concurrency(slots.max(1)).open().await?)
}

/// The commit counts of a store at one moment.
pub(crate) struct CommitsBefore(Option<onward_store::CommitCounts>);

impl Opened {
    pub(crate) fn commits(&self) -> CommitsBefore {
        CommitsBefore(self.sqlite.as_ref().map(|sqlite| sqlite.commit_counts()))
    }

    /// Returns the sizes of the commits since `before`, in which `lives` tasks ran.
    pub(crate) fn commit_sizes(&self, before: &CommitsBefore, lives: usize) -> Option<CommitSizes> {
        let (before, after) = (before.0?, self.sqlite.as_ref()?.commit_counts());
        let average = |total: u64, commits: u64| total as f64 / commits.max(1) as f64;
        Some(CommitSizes {
            commits: average((after.commits - before.commits) * 1000, lives as u64),
            submits: average(after.submitted - before.submitted, after.submitting - before.submitting),
            claims: average(after.claimed - before.claimed, after.claiming - before.claiming),
            completions: average(after.ended - before.ended, after.ending - before.ending),
        })
    }
}
