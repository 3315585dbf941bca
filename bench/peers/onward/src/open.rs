//! Opens the store that a row asks for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use bench_protocol::{CommitSizes, DurabilityLevel, Request};
use onward::store::Durability;
use onward::{Engine, Store};
use onward_store::{MemoryStore, PostgresStore, SqliteStore};
use tempfile::TempDir;

/// An open store, with what it depends on.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The location at which other processes find the store. Not used for a store in memory.
    pub(crate) location: PathBuf,
    sqlite: Option<Arc<SqliteStore>>,
    _directory: Option<TempDir>,
}

impl Opened {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, location: PathBuf::new(), sqlite: None, _directory: None }
    }
}

/// Opens the store of a row's durability level and settings. A file is new and belongs to this run.
pub(crate) async fn open_store(request: &Request) -> Result<Opened> {
    if request.settings == "memory store" {
        ensure!(request.durability == DurabilityLevel::Memory, "the memory store is of durability memory");
        return Ok(Opened::new(Arc::new(MemoryStore::new())));
    }
    if request.row.postgres {
        let location = PathBuf::from(request.server()?);
        let store = open_location(&location, request.durability).await?;
        return Ok(Opened { location, ..Opened::new(store) });
    }
    if request.durability == DurabilityLevel::Memory {
        let sqlite = Arc::new(SqliteStore::options().open_in_memory().await?);
        return Ok(Opened { sqlite: Some(sqlite.clone()), ..Opened::new(sqlite) });
    }
    let directory = tempfile::tempdir_in(&request.directory)?;
    let location = directory.path().join("onward.db");
    let options = SqliteStore::options().durability(store_durability(request.durability));
    let options = options.page_checksums(request.settings == "page checksums");
    let sqlite = Arc::new(options.open(&location).await?);
    Ok(Opened { location, sqlite: Some(sqlite.clone()), _directory: Some(directory), ..Opened::new(sqlite) })
}

/// Opens a file with a durability level.
pub(crate) async fn open_file(path: &Path, durability: DurabilityLevel) -> Result<SqliteStore> {
    Ok(SqliteStore::options().durability(store_durability(durability)).open(path).await?)
}

/// Opens a file, or a store on PostgreSQL if the location is a URL.
pub(crate) async fn open_location(location: &Path, durability: DurabilityLevel) -> Result<Arc<dyn Store>> {
    match location.to_str().filter(|location| location.starts_with("postgres:")) {
        Some(url) => Ok(Arc::new(PostgresStore::options().durability(store_durability(durability)).open(url).await?)),
        None => Ok(Arc::new(open_file(location, durability).await?)),
    }
}

fn store_durability(durability: DurabilityLevel) -> Durability {
    match durability {
        DurabilityLevel::Memory => Durability::Memory,
        DurabilityLevel::Normal => Durability::Normal,
        DurabilityLevel::Full => Durability::Full,
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

    /// Returns the sizes of the commits since `before`, in which `tasks` tasks ran.
    pub(crate) fn commit_sizes(&self, before: &CommitsBefore, tasks: usize) -> Option<CommitSizes> {
        let (before, after) = (before.0?, self.sqlite.as_ref()?.commit_counts());
        let average = |total: u64, commits: u64| total as f64 / commits.max(1) as f64;
        Some(CommitSizes {
            commits: average((after.commits - before.commits) * 1000, tasks as u64),
            submits: average(after.submitted - before.submitted, after.submitting - before.submitting),
            claims: average(after.claimed - before.claimed, after.claiming - before.claiming),
            completions: average(after.ended - before.ended, after.ending - before.ending),
        })
    }
}
