//! A statement that fails without a fault of the disk. SQLite then leaves the transaction open, but
//! the store must not.

use onward_store::{Durability, NewTask, Outcome, Result, SqliteStore, Store, StoreReads, TaskId, Write};
use rusqlite::Connection;

/// A neighbour's write in the same commit as the failing one takes effect. The failing write leaves
/// no trace.
///
/// Shows: B5
/// Beats: wedged-store
#[tokio::test]
async fn a_write_whose_statement_fails_disturbs_no_neighbour_and_leaves_no_trace() {
    let (store, _directory) = refusing_poison(Durability::Normal).await;
    let (before, poison, after) =
        tokio::join!(submit(&store, "mail"), submit(&store, "poison"), submit(&store, "mail"));
    assert_eq!((id(before), id(after)), (TaskId(1), TaskId(2)));
    assert!(poison.unwrap_err().to_string().contains("no poison here"));
    assert_eq!(store.task(TaskId(3)).await.unwrap(), None);
}

/// Shows: T21
/// Beats: wedged-store
#[tokio::test]
async fn the_store_goes_on_after_a_statement_that_failed() {
    for class in [Durability::Full, Durability::Normal] {
        let (store, _directory) = refusing_poison(class).await;
        for number in 1..=5 {
            submit(&store, "poison").await.unwrap_err();
            assert_eq!(id(submit(&store, "mail").await), TaskId(number), "{class}");
        }
        let report = store.check().await.unwrap();
        assert_eq!((report.integrity, report.consistency), (Vec::new(), Vec::new()));
    }
}

/// On a full disk SQLite rolls the transaction back by itself, including the savepoint of an `All`.
///
/// Shows: T21
#[tokio::test]
async fn an_all_whose_transaction_sqlite_rolled_back_returns_the_cause() {
    let (store, _directory) = refusing(Durability::Normal, "ROLLBACK").await;
    let all = Write::All(vec![Write::Sweep, submission("poison")]);
    let error = store.apply(vec![all]).await.unwrap_err();
    assert!(error.to_string().contains("no poison here"), "{error}");
}

/// A transaction that is too large for SQLite's memory is partly in the log before its end, while
/// its last pages are still gathered.
///
/// Shows: T21
#[tokio::test]
async fn nothing_of_a_transaction_that_was_taken_back_is_written_over_what_others_commit() {
    let (one, directory) = refusing(Durability::Normal, "ROLLBACK").await;
    let path = directory.path().join("onward.db");
    let open = || SqliteStore::options().durability(Durability::Normal).open(&path);
    let other = open().await.unwrap();
    // With all data in the database, a rollback reads nothing from the log, and so writes nothing
    // to it.
    Connection::open(&path).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let large = |letter: &str| submission(&letter.repeat(900_000));
    let taken_back = (0..12).map(|_| large("x")).chain([submission("poison")]).collect();
    one.apply(vec![Write::All(taken_back)]).await.unwrap_err();
    let mut kept = Vec::new();
    for _ in 0..10 {
        kept.push(id(other.apply(vec![large("y")]).await));
    }
    id(submit(&one, "mail").await);
    drop((one, other));
    let store = open().await.unwrap();
    let report = store.check().await.unwrap();
    assert_eq!((report.integrity, report.consistency), (Vec::new(), Vec::new()));
    for task in kept {
        let payload = store.task(task).await.unwrap().unwrap().payload.unwrap();
        assert!(payload.len() == 900_000 && payload.iter().all(|byte| *byte == b'y'), "task {task}");
    }
}

async fn refusing_poison(class: Durability) -> (SqliteStore, tempfile::TempDir) {
    refusing(class, "ABORT").await
}

/// Opens a store whose table rejects a task with the payload `poison`.
async fn refusing(class: Durability, how: &str) -> (SqliteStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    drop(SqliteStore::open(&path).await.unwrap());
    let refuse = format!(
        "CREATE TRIGGER refuse_poison BEFORE INSERT ON task WHEN new.payload = CAST('poison' AS BLOB) \
        BEGIN SELECT RAISE({how}, 'no poison here'); END"
    );
    Connection::open(&path).unwrap().execute_batch(&refuse).unwrap();
    (SqliteStore::options().durability(class).open(&path).await.unwrap(), directory)
}

async fn submit(store: &SqliteStore, payload: &str) -> Result<Vec<Outcome>> {
    store.apply(vec![submission(payload)]).await
}

fn submission(payload: &str) -> Write {
    Write::Submit(Box::new(NewTask { payload: payload.to_owned().into(), ..NewTask::new("mail").unwrap() }))
}

fn id(answer: Result<Vec<Outcome>>) -> TaskId {
    match answer.unwrap()[0] {
        Outcome::Submitted(submitted) => submitted.id(),
        ref other => panic!("a submit answered {other:?}"),
    }
}
