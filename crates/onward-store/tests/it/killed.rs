//! Compares stores whose process is killed instead of closed with the specification.
//!
//! A killed process leaves its files as they are. So the test copies them while the store is open,
//! and the next store opens the copy. The copy lacks the data that was only in memory, or that
//! closing would have written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onward_store::{
    Changes, Clock, Durability, NotificationReceiver, SessionId, SqliteStore, Store, StoreDecorator, StoreInfo, Write,
};
use onward_testkit::{Conditions, Fixture, MemoryFixture, Opening, StoreLocation, model_based};

use crate::model_based::SOME;

/// The number of tasks that wait in memory.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    Many,
    Few,
}

#[derive(Debug)]
struct KilledLocation {
    waiting: Waiting,
    directory: tempfile::TempDir,
    /// The number of stores so far.
    stores: usize,
}

/// A store that leaves its files as they are when it is dropped.
#[derive(Debug)]
struct Killed {
    store: SqliteStore,
    path: PathBuf,
    next: PathBuf,
}

impl Fixture for Waiting {
    fn location(&self) -> Box<dyn StoreLocation> {
        let directory = tempfile::tempdir().expect("a directory can be made");
        Box::new(KilledLocation { waiting: *self, directory, stores: 0 })
    }
}

impl StoreLocation for KilledLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let file = |number: usize| self.directory.path().join(format!("{number}.db"));
        let (path, next) = (file(self.stores), file(self.stores + 1));
        self.stores += 1;
        let options = SqliteStore::options().durability(Durability::Normal).payload_limit(conditions.payload_limit);
        let options = match self.waiting {
            Waiting::Many => options,
            Waiting::Few => options.memory_tasks(2),
        };
        let options = options.clock(conditions.clock.clone());
        Box::pin(async move {
            let store = options.open(&path).await.expect("a store opens");
            store.apply(ends_of_sessions(&path)).await.expect("sessions can be closed");
            Arc::new(Killed { store, path, next }) as Arc<dyn Store>
        })
    }
}

/// Returns the ends of the sessions of the killed process, in the order of their numbers. The next
/// process writes them when it notices the death, but does not list these sessions any more.
fn ends_of_sessions(path: &Path) -> Vec<Write> {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    let mut numbers = connection.prepare("SELECT id FROM session ORDER BY id").expect("there are sessions");
    let numbers = numbers.query_map([], |row| row.get(0)).expect("they can be read");
    numbers.map(|number| Write::CloseSession { session: SessionId(number.expect("a number")) }).collect()
}

impl Drop for Killed {
    fn drop(&mut self) {
        for end in ["", "-wal"] {
            let with_end = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
            if with_end(&self.path).exists() {
                std::fs::copy(with_end(&self.path), with_end(&self.next)).expect("the files can be copied");
            }
        }
    }
}

impl StoreDecorator for Killed {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn changes(&self) -> Changes {
        self.store.changes()
    }

    fn notifications(&self) -> NotificationReceiver {
        self.store.notifications()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.store.clock()
    }

    fn info(&self) -> StoreInfo {
        self.store.info()
    }
}

/// Shows: T21
#[test]
fn sqlite_whose_process_is_killed_agrees_with_the_specification() {
    model_based::run(&MemoryFixture, &Waiting::Many, SOME);
}

/// Shows: T21
#[test]
fn sqlite_with_few_tasks_in_memory_whose_process_is_killed_agrees_with_the_specification() {
    model_based::run(&MemoryFixture, &Waiting::Few, SOME);
}
