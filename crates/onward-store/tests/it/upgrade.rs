//! Stores of earlier schemas: they open, keep every task, and are as good as new.

use std::path::{Path, PathBuf};
use std::time::Duration;

use onward_store::{
    Claim, NewTask, OpenSession, Outcome, Prune, QueueMode, SetQueue, SqliteStore, Store, Submitted, TaskId, TaskState,
    UniqueKey, Write,
};
use rusqlite::Connection;

/// Each released schema's script and a store of it, oldest first. Never changed; a released schema adds one.
const SCHEMA_1: [&str; 2] =
    [include_str!("../../src/sqlite/migrations/0001.sql"), include_str!("fixtures/schema_1.sql")];

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn a_store_of_schema_1_opens_and_every_task_is_as_it_was() {
    let old = Old::schema_1();
    let store = SqliteStore::open(&old.path).await.unwrap();
    let expected = [
        (1, TaskState::Completed, "first", None, 0),
        (2, TaskState::Dead, "second", Some("ada"), 2),
        (3, TaskState::Waiting, "third", Some("grace"), 0),
        (4, TaskState::Scheduled, "fourth", None, 0),
    ];
    for (id, state, payload, key, errors) in expected {
        let task = store.task(TaskId(id)).await.unwrap().unwrap();
        assert_eq!((task.id.0, task.state, task.key.as_deref(), task.errors.len()), (id, state, key, errors));
        assert_eq!(task.payload.as_deref(), Some(payload.as_bytes()));
    }
    let result = store.task(TaskId(1)).await.unwrap().unwrap().result;
    assert_eq!(result.as_deref(), Some(&b"sent"[..]));
}

/// Shows: T21, B4
/// Beats: lost-upgrade
#[tokio::test]
async fn what_was_waiting_or_running_in_a_store_of_schema_1_is_claimed_and_completed() {
    let old = Old::schema_1();
    let store = SqliteStore::open(&old.path).await.unwrap();
    let open = OpenSession::new("new", Duration::from_secs(10));
    let Outcome::SessionOpened(session) = apply(&store, Write::OpenSession(open)).await else { panic!("no session") };
    let claim = Claim::any(session, 10);
    let Outcome::Claimed(claimed) = apply(&store, Write::Claim(claim)).await else { panic!("no claim") };
    let tasks: Vec<i64> = claimed.tasks.iter().map(|task| task.lease.task.0).collect();
    assert_eq!(tasks, [3, 5], "the urgent one first, and the one whose process is gone");
    for task in claimed.tasks {
        assert_eq!(apply(&store, Write::Complete { lease: task.lease, result: None }).await, Outcome::Done);
    }
    let report = store.check().await.unwrap();
    assert_eq!((report.integrity, report.consistency), (Vec::new(), Vec::new()));
}

/// Shows: Q6
#[tokio::test]
async fn what_had_ended_in_a_store_of_schema_1_is_pruned_and_what_says_how_long_it_is_kept_is_not() {
    let old = Old::schema_1();
    let store = SqliteStore::open(&old.path).await.unwrap();
    let kept = NewTask { retention: Some(Duration::from_secs(3600)), ..NewTask::new("mail").unwrap() };
    let Outcome::Submitted(kept) = apply(&store, Write::Submit(Box::new(kept))).await else { panic!("no task") };
    apply(&store, Write::Cancel { task: kept.id() }).await;
    let prune = Prune { older_than: None, keep: Some(0), limit: 10 };
    assert_eq!(apply(&store, Write::Prune(prune)).await, Outcome::Removed { tasks: 2, more: false });
    assert_eq!(store.task(kept.id()).await.unwrap().unwrap().retention, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn keys_and_numbers_of_a_store_of_schema_1_stay_taken() {
    let old = Old::schema_1();
    let store = SqliteStore::open(&old.path).await.unwrap();
    let mut again = NewTask::new("mail").unwrap();
    again.unique = Some(UniqueKey { key: "grace".into(), on_duplicate: Default::default(), keep_for: Duration::ZERO });
    let taken = apply(&store, Write::Submit(Box::new(again))).await;
    assert_eq!(taken, Outcome::Submitted(Submitted::Duplicate { id: TaskId(3) }));
    let new = apply(&store, Write::Submit(Box::new(NewTask::new("mail").unwrap()))).await;
    assert_eq!(new, Outcome::Submitted(Submitted::Inserted { id: TaskId(6) }));
}

#[tokio::test]
async fn the_events_of_a_store_of_schema_1_are_read_from_the_start() {
    let old = Old::schema_1();
    let store = SqliteStore::open(&old.path).await.unwrap();
    let events = store.events(Default::default(), 1000).await.unwrap().events;
    let mut submitted: Vec<i64> = Vec::new();
    let mut others: Vec<(i64, String)> = Vec::new();
    for event in events {
        match event.change {
            onward_store::Change::Submitted => submitted.push(event.task.0),
            change => others.push((event.task.0, format!("{change:?}"))),
        }
    }
    assert_eq!(submitted, [1, 2, 3, 4, 5]);
    assert_eq!(others[..2], [(1, "Completed".to_owned()), (2, "Dead".to_owned())]);
}

/// Shows: Q4
#[tokio::test]
async fn queues_of_a_store_of_schema_1_are_worked_off_by_default_and_can_be_set() {
    let old = Old::schema_1();
    let store = SqliteStore::open(&old.path).await.unwrap();
    let before = store.queues().await.unwrap().remove(0);
    assert_eq!((before.weight, before.concurrency), (1, None));
    assert_eq!(store.queue_mode().await.unwrap(), QueueMode::Strict);
    apply(&store, Write::SetQueue(SetQueue::new(before.name).weight(3).concurrency(2))).await;
    let after = store.queues().await.unwrap().remove(0);
    assert_eq!((after.weight, after.concurrency), (3, Some(2)));
}

#[tokio::test]
async fn migrating_a_second_time_changes_nothing() {
    let old = Old::schema_1();
    assert_eq!(SqliteStore::migrate(&old.path).await.unwrap(), (1, SqliteStore::schema()));
    let once = std::fs::read(&old.path).unwrap();
    assert_eq!(SqliteStore::migrate(&old.path).await.unwrap(), (SqliteStore::schema(), SqliteStore::schema()));
    assert!(std::fs::read(&old.path).unwrap() == once, "the file was changed");
}

#[tokio::test]
async fn an_upgraded_store_has_the_tables_of_a_new_one() {
    let old = Old::schema_1();
    SqliteStore::migrate(&old.path).await.unwrap();
    let new = old.path.with_file_name("new.db");
    drop(SqliteStore::open(&new).await.unwrap());
    assert_eq!(tables(&old.path), tables(&new));
}

/// A store of an old schema in a directory of its own.
struct Old {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Old {
    fn schema_1() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
        SCHEMA_1.iter().for_each(|script| connection.execute_batch(script).unwrap());
        connection.close().unwrap();
        Self { path, _directory: directory }
    }
}

async fn apply(store: &SqliteStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

/// The definitions of a file's tables and indexes, as SQLite keeps them.
fn tables(path: &Path) -> Vec<(String, Option<String>)> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}
