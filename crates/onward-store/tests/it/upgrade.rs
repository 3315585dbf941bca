//! Stores of earlier schemas are upgraded in place, and unsupported schemas are rejected.
//!
//! There is one schema so far. The later version is made up: this version with one more script.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onward_store::{
    ManualClock, Outcome, SqliteOptions, SqliteStore, Store, StoreReads, Submitted, TaskId, Timestamp, Write,
};
use rusqlite::Connection;

use crate::child::{self, Process};
use crate::old_store::{LEASE, apply, fill, key, new, submit, tasks, work_off};

/// The changes of the later version.
const LATER: &[&str] = &["ALTER TABLE task ADD COLUMN remark TEXT; \
     CREATE TABLE remarked (task INTEGER PRIMARY KEY) STRICT; \
     INSERT INTO remarked SELECT id FROM task UNION ALL SELECT id FROM history"];

/// An upgrade that fails after its first changes.
const MISTAKEN: &[&str] =
    &["ALTER TABLE task ADD COLUMN remark TEXT; DELETE FROM history; INSERT INTO nowhere VALUES (1)"];

/// An upgrade that changes more than fits in memory, and then never ends.
const ENDLESS: &[&str] = &["DELETE FROM history; CREATE TABLE large (filling BLOB); \
     INSERT INTO large WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT zeroblob(100000) FROM n; \
     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"];

/// The bytes that an [`ENDLESS`] upgrade has written into the log before its end.
const WRITTEN: u64 = 4 * 1024 * 1024;

/// Marks and schemas of development versions.
const DEVELOPMENT: [(i32, u32); 2] = [(0x4f6e_5764, 1), (0x4f6e_5764, 21)];

const PATH: &str = "ONWARD_UPGRADE_PATH";

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn an_upgraded_store_has_every_task_as_it_was() {
    let old = Old::new().await;
    let before = tasks(&old.open().await).await;
    let store = old.upgrade().await;
    assert_eq!(store.info().schema, SqliteStore::schema() + 1);
    assert_eq!(tasks(&store).await, before);
    assert_eq!(store.pauses().await.unwrap().len(), 1);
    assert_eq!(old.remarked(), 6, "the script found every task");
}

/// Shows: T21, B4
/// Beats: lost-upgrade
#[tokio::test]
async fn what_waited_or_ran_before_an_upgrade_is_claimed_and_completed_after_it() {
    let old = Old::new().await;
    let store = old.upgrade().await;
    old.clock.advance(LEASE * 2);
    apply(&store, Write::Sweep).await;
    assert_eq!(work_off(&store).await, [4, 3, 6]);
    let report = store.check().await.unwrap();
    assert_eq!((report.integrity, report.consistency), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn keys_and_numbers_stay_taken_after_an_upgrade() {
    let old = Old::new().await;
    let store = old.upgrade().await;
    let mut again = new("again");
    again.unique = Some(key("grace"));
    assert_eq!(submit(&store, again).await, Outcome::Submitted(Submitted::Duplicate { id: TaskId(4) }));
    assert_eq!(submit(&store, new("seventh")).await, Outcome::Submitted(Submitted::Inserted { id: TaskId(7) }));
}

#[tokio::test]
async fn an_upgraded_store_has_the_tables_of_a_new_one() {
    let old = Old::new().await;
    drop(old.upgrade().await);
    let new = old.path.with_file_name("new.db");
    drop(SqliteStore::options().added_migrations(LATER).open(&new).await.unwrap());
    assert_eq!(tables(&old.path), tables(&new));
}

#[tokio::test]
async fn a_second_migration_finds_nothing_to_do() {
    let old = Old::new().await;
    let schema = SqliteStore::schema();
    assert_eq!(SqliteStore::migrate(&old.path).await.unwrap(), (schema, schema));
    let once = std::fs::read(&old.path).unwrap();
    assert_eq!(SqliteStore::migrate(&old.path).await.unwrap(), (schema, schema));
    assert!(std::fs::read(&old.path).unwrap() == once, "the file was changed");
}

#[tokio::test]
async fn a_look_at_the_schema_of_an_older_store_does_not_migrate_it() {
    let old = Old::new().await;
    let before = std::fs::read(&old.path).unwrap();
    assert_eq!(SqliteStore::schema_of(&old.path).unwrap(), 1);
    assert!(std::fs::read(&old.path).unwrap() == before, "the file was changed");
}

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn an_upgrade_that_fails_half_way_leaves_the_store_as_it_was() {
    let old = Old::new().await;
    let before = tasks(&old.open().await).await;
    old.options().added_migrations(MISTAKEN).open(&old.path).await.unwrap_err();
    assert_eq!(tasks(&old.open().await).await, before);
    drop(old.upgrade().await);
}

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn an_upgrade_killed_half_way_leaves_the_store_as_it_was() {
    let old = Old::new().await;
    let before = tasks(&old.open().await).await;
    let variables = [(PATH, old.path.display().to_string())];
    let (mut process, _speech) = Process::start("upgrade::come_to_no_end", &variables);
    let log = old.path.with_file_name("onward.db-wal");
    while std::fs::metadata(&log).map_or(0, |log| log.len()) < WRITTEN {
        std::thread::yield_now();
    }
    process.kill();
    assert_eq!(tasks(&old.open().await).await, before);
    drop(old.upgrade().await);
}

/// Not a test: a process that begins an upgrade.
#[tokio::test]
#[ignore = "a process started by the tests of `upgrade`"]
async fn come_to_no_end() {
    child::begin();
    let path = std::env::var(PATH).unwrap();
    drop(SqliteStore::options().added_migrations(ENDLESS).open(path).await);
}

/// Shows: T21
#[tokio::test]
async fn two_processes_that_upgrade_a_store_at_once_do_it_once() {
    let old = Old::new().await;
    let path = old.path.display().to_string();
    let (mut one, first) = Process::start("upgrade::upgrade_on_order", &[(PATH, path.clone())]);
    let (mut other, second) = Process::start("upgrade::upgrade_on_order", &[(PATH, path)]);
    one.send("go");
    other.send("go");
    for mut speech in [first, second] {
        assert_eq!(speech.next().as_deref(), Some("has schema 2 and 6 tasks"));
    }
    assert_eq!(old.remarked(), 6);
}

/// Not a test: a process that upgrades the store.
#[tokio::test]
#[ignore = "a process started by the tests of `upgrade`"]
async fn upgrade_on_order() {
    child::begin();
    let path = std::env::var(PATH).unwrap();
    child::receive();
    let store = SqliteStore::options().added_migrations(LATER).open(path).await.unwrap();
    child::say(&format!("has schema {} and {} tasks", store.info().schema, tasks(&store).await.len()));
    // The process waits until the other process also has the store open.
    child::receive();
}

/// Shows: T21
#[tokio::test]
async fn a_store_of_a_later_schema_is_refused_untouched() {
    let old = Old::new().await;
    drop(old.upgrade().await);
    let before = std::fs::read(&old.path).unwrap();
    let schema = SqliteStore::schema();
    let expected = format!("has schema {} and this program supports", schema + 1);
    for error in [old.options().open(&old.path).await.unwrap_err(), SqliteStore::migrate(&old.path).await.unwrap_err()]
    {
        assert!(error.is_version() && error.to_string().contains(&expected), "{error}");
    }
    assert!(std::fs::read(&old.path).unwrap() == before, "the file was changed");
}

/// Shows: T21
#[tokio::test]
async fn a_store_of_a_development_version_is_refused_untouched_whatever_its_number() {
    for (application, schema) in DEVELOPMENT {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        make_development_store(&path, application, schema);
        let before = std::fs::read(&path).unwrap();
        let expected = format!("has schema {schema} of a development version of Onward");
        for error in [
            SqliteStore::open(&path).await.unwrap_err(),
            SqliteStore::migrate(&path).await.unwrap_err(),
            SqliteStore::schema_of(&path).unwrap_err(),
            SqliteStore::restore(&path, directory.path().join("copy.db"), |_, _| {}).await.unwrap_err(),
            SqliteStore::rebuild(&path, directory.path().join("copy.db"), false).await.unwrap_err(),
        ] {
            assert!(error.is_version() && error.to_string().contains(&expected), "{error}");
            assert!(error.to_string().contains("start a new store"), "{error}");
        }
        assert!(std::fs::read(&path).unwrap() == before, "the file was changed");
    }
}

fn make_development_store(path: &Path, application: i32, schema: u32) {
    let connection = Connection::open(path).unwrap();
    let text = format!(
        "PRAGMA journal_mode = WAL; CREATE TABLE task (id INTEGER PRIMARY KEY) STRICT; \
         PRAGMA application_id = {application}; PRAGMA user_version = {schema}"
    );
    connection.execute_batch(&text).unwrap();
    connection.close().unwrap();
}

/// A closed store that this version made, in a directory of its own.
struct Old {
    path: PathBuf,
    clock: Arc<ManualClock>,
    _directory: tempfile::TempDir,
}

impl Old {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let clock = Arc::new(ManualClock::starting_at(Timestamp::from_microseconds(1_700_000_000_000_000)));
        let old = Self { path, clock, _directory: directory };
        fill(&old.open().await).await;
        old
    }

    fn options(&self) -> SqliteOptions {
        SqliteStore::options().clock(Arc::clone(&self.clock) as _)
    }

    async fn open(&self) -> SqliteStore {
        self.options().open(&self.path).await.unwrap()
    }

    /// Opens the store with the later version.
    async fn upgrade(&self) -> SqliteStore {
        self.options().added_migrations(LATER).open(&self.path).await.unwrap()
    }

    /// Returns the number of tasks that the later version's script found.
    fn remarked(&self) -> i64 {
        let connection = Connection::open(&self.path).unwrap();
        connection.query_row("SELECT count(*) FROM remarked", [], |row| row.get(0)).unwrap()
    }
}

/// Returns the definitions of a file's tables and indexes, as SQLite keeps them.
fn tables(path: &Path) -> Vec<(String, Option<String>)> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}
