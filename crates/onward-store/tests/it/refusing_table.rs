//! A statement that fails where nothing is wrong with the disk: SQLite leaves the transaction open then, and the store must not.

use onward_store::{Durability, NewTask, Outcome, Result, SqliteStore, Store, TaskId, Write};
use rusqlite::Connection;

/// A neighbour's write in the same commit as the one that fails is done; the one that fails leaves no trace.
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

/// A store whose table refuses a task with the payload `poison`.
async fn refusing_poison(class: Durability) -> (SqliteStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    drop(SqliteStore::open(&path).await.unwrap());
    let refuse = "CREATE TRIGGER refuse_poison BEFORE INSERT ON task WHEN new.payload = CAST('poison' AS BLOB) \
        BEGIN SELECT RAISE(ABORT, 'no poison here'); END";
    Connection::open(&path).unwrap().execute_batch(refuse).unwrap();
    (SqliteStore::options().durability(class).open(&path).await.unwrap(), directory)
}

async fn submit(store: &SqliteStore, payload: &str) -> Result<Vec<Outcome>> {
    let task = NewTask { payload: payload.to_owned().into(), ..NewTask::new("mail").unwrap() };
    store.apply(vec![Write::Submit(Box::new(task))]).await
}

fn id(answer: Result<Vec<Outcome>>) -> TaskId {
    match answer.unwrap()[0] {
        Outcome::Submitted(submitted) => submitted.id(),
        ref other => panic!("a submit answered {other:?}"),
    }
}
