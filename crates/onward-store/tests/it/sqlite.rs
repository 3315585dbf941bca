//! The SQLite store under the conformance suite, in memory, on a file, and behind a decorator.

use std::path::PathBuf;
use std::sync::Arc;

use onward_store::{Clock, Durability, SqliteStore, Store};
use onward_testkit::{Conditions, Fixture, Opening, Place, close_sessions};

/// Stores in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InMemory;

/// Stores in a file of a directory of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFile(pub(crate) Durability);

#[derive(Debug)]
struct MemoryPlace(Option<Arc<SqliteStore>>);

#[derive(Debug)]
struct FilePlace {
    directory: tempfile::TempDir,
    durability: Durability,
}

impl Fixture for InMemory {
    fn place(&self) -> Box<dyn Place> {
        Box::new(MemoryPlace(None))
    }
}

impl Fixture for InFile {
    fn place(&self) -> Box<dyn Place> {
        let directory = tempfile::tempdir().expect("a directory can be made");
        Box::new(FilePlace { directory, durability: self.0 })
    }
}

impl Place for MemoryPlace {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let clock: Arc<dyn Clock> = conditions.clock.clone();
        let options = SqliteStore::options().payload_limit(conditions.payload_limit).clock(clock);
        Box::pin(async move {
            if let Some(store) = &self.0 {
                close_sessions(&**store).await;
                return Arc::clone(store) as Arc<dyn Store>;
            }
            let store = Arc::new(options.open_in_memory().await.expect("a store in memory opens"));
            self.0 = Some(Arc::clone(&store));
            store
        })
    }
}

impl Place for FilePlace {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let clock: Arc<dyn Clock> = conditions.clock.clone();
        let path: PathBuf = self.directory.path().join("onward.db");
        let options =
            SqliteStore::options().durability(self.durability).payload_limit(conditions.payload_limit).clock(clock);
        Box::pin(async move { Arc::new(options.open(path).await.expect("a store opens")) as Arc<dyn Store> })
    }
}

mod in_memory {
    onward_testkit::conformance!(crate::sqlite::InMemory);
}

mod in_file {
    onward_testkit::conformance!(crate::sqlite::InFile(onward_store::Durability::Normal));
}

mod in_file_full {
    onward_testkit::conformance!(crate::sqlite::InFile(onward_store::Durability::Full));
}

mod behind_a_decorator {
    onward_testkit::conformance!(onward_testkit::FaultyFixture(crate::sqlite::InMemory));
}
