//! Opening the store that a row asks for.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bench_protocol::{Class, CommitSizes, Request};
use onward::{Durability, Engine, Store};
use onward_store::{MemoryStore, SqliteStore};
use tempfile::TempDir;

/// An open store, with the directory of its file and the SQLite store behind it, where there are such.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    sqlite: Option<Arc<SqliteStore>>,
    _directory: Option<TempDir>,
}

/// Opens the store of a row's class and settings; a file is new and its own.
pub(crate) async fn open_store(request: &Request) -> Result<Opened> {
    if request.settings == "memory store" {
        ensure!(request.class == Class::Memory, "the memory store is of class memory");
        return Ok(Opened { store: Arc::new(MemoryStore::new()), sqlite: None, _directory: None });
    }
    if request.class == Class::Memory {
        let sqlite = Arc::new(SqliteStore::options().open_in_memory().await?);
        return Ok(Opened { store: sqlite.clone(), sqlite: Some(sqlite), _directory: None });
    }
    let directory = tempfile::tempdir_in(&request.directory)?;
    let sqlite = Arc::new(open_file(&directory.path().join("onward.db"), request.class).await?);
    Ok(Opened { store: sqlite.clone(), sqlite: Some(sqlite), _directory: Some(directory) })
}

/// Opens a file in a class.
pub(crate) async fn open_file(path: &Path, class: Class) -> Result<SqliteStore> {
    let durability = match class {
        Class::Memory => Durability::Memory,
        Class::Normal => Durability::Normal,
        Class::Full => Durability::Full,
    };
    Ok(SqliteStore::options().durability(durability).open(path).await?)
}

/// An engine with so many slots on a store.
pub(crate) async fn engine(store: &Arc<dyn Store>, slots: usize) -> Result<Engine> {
    Ok(Engine::builder().store(store.clone()).concurrency(slots.max(1)).open().await?)
}

/// Where the commits of a store stood.
pub(crate) struct CommitsBefore(Option<onward_store::CommitCounts>);

impl Opened {
    pub(crate) fn commits(&self) -> CommitsBefore {
        CommitsBefore(self.sqlite.as_ref().map(|sqlite| sqlite.commit_counts()))
    }

    /// The sizes of the commits since `before`, in which `lives` tasks lived.
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
