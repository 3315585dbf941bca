//! Submits in transactions of the caller.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use onward_store::rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use onward_store::{
    Durability, Name, NewTask, Notification, OnDuplicate, Outcome, Result, Scope, SqliteStore, Store, StoreReads,
    Submitted, Tags, TaskFilter, TaskId, TaskState, Write, bounds,
};
use onward_testkit::{keyed, task};
use tokio::time::timeout;

/// The time limit of a wait. A longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store, and a connection of a caller that has a table in the same file.
struct Shop {
    store: SqliteStore,
    connection: Connection,
    directory: tempfile::TempDir,
}

impl Shop {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = open_store(directory.path().join("shop.db")).await;
        let connection = Connection::open(directory.path().join("shop.db")).unwrap();
        connection.execute_batch("CREATE TABLE shop_order (item TEXT)").unwrap();
        Self { store, connection, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("shop.db")
    }

    /// Opens another store on the same file, as another process would.
    async fn other_store(&self) -> SqliteStore {
        open_store(self.path()).await
    }

    /// Inserts an order and submits tasks in one transaction, then ends it with `end`.
    fn order(&mut self, tasks: &[NewTask], end: impl FnOnce(Transaction<'_>)) -> Result<Vec<Submitted>> {
        let transaction = begin(&mut self.connection);
        order(&transaction);
        let submitted = self.store.submit_in(&transaction, tasks)?;
        end(transaction);
        Ok(submitted.committed())
    }

    fn submit(&mut self, task: NewTask) -> Submitted {
        self.order(&[task], commit).unwrap().remove(0)
    }

    fn orders(&self) -> usize {
        self.connection.query_row("SELECT count(*) FROM shop_order", [], |row| row.get(0)).unwrap()
    }

    async fn state(&self, task: TaskId) -> Option<TaskState> {
        self.store.task(task).await.unwrap().map(|task| task.state)
    }
}

/// Begins a transaction of the caller.
fn begin(connection: &mut Connection) -> Transaction<'_> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap()
}

fn order(transaction: &Connection) {
    transaction.execute("INSERT INTO shop_order VALUES ('tea')", []).unwrap();
}

async fn open_store(path: PathBuf) -> SqliteStore {
    SqliteStore::options().durability(Durability::Normal).open(path).await.unwrap()
}

fn commit(transaction: Transaction<'_>) {
    transaction.commit().unwrap();
}

fn roll_back(transaction: Transaction<'_>) {
    transaction.rollback().unwrap();
}

async fn apply(store: &SqliteStore, new: NewTask) -> Submitted {
    match store.apply(vec![Write::Submit(Box::new(new))]).await.unwrap().remove(0) {
        Outcome::Submitted(submitted) => submitted,
        other => panic!("it should have been accepted: {other:?}"),
    }
}

fn unique() -> NewTask {
    keyed("a", OnDuplicate::Skip)
}

fn too_large() -> NewTask {
    NewTask { payload: vec![0; 2 * 1024 * 1024].into(), ..task("large") }
}

/// Returns the error text of a rejected submit on a connection.
fn refusal(store: &SqliteStore, connection: &Connection) -> String {
    let error = store.submit_in(connection, &[task("mail")]).unwrap_err();
    assert!(error.is_invalid(), "{error:?}");
    error.to_string()
}

/// Shows: T1
#[tokio::test]
async fn tasks_are_committed_with_the_callers_rows() {
    let mut shop = Shop::open().await;
    let submitted = shop.order(&[task("mail"), task("parcel")], commit).unwrap();
    assert_eq!(submitted, [1, 2].map(|id| Submitted::Inserted { id: TaskId(id) }));
    assert_eq!(shop.orders(), 1);
    assert_eq!(shop.state(TaskId(2)).await, Some(TaskState::Waiting));
}

/// Shows: T1
#[tokio::test]
async fn a_rollback_leaves_neither_rows_nor_tasks() {
    let mut shop = Shop::open().await;
    shop.order(&[task("mail")], roll_back).unwrap();
    assert_eq!((shop.orders(), shop.state(TaskId(1)).await), (0, None));
    assert_eq!(shop.store.queues().await.unwrap(), []);
}

/// Shows: T1
#[tokio::test]
async fn a_task_is_not_seen_before_its_transaction_commits() {
    let mut shop = Shop::open().await;
    let transaction = begin(&mut shop.connection);
    let submitted = shop.store.submit_in(&transaction, &[task("mail")]).unwrap();
    let id = submitted.submitted()[0].id();
    assert_eq!(shop.store.task(id).await.unwrap(), None);
    transaction.commit().unwrap();
    assert!(shop.store.task(id).await.unwrap().is_some());
    submitted.committed();
}

/// Shows: T1
#[tokio::test]
async fn numbers_stay_unique_when_the_store_and_callers_submit_in_turn() {
    let mut shop = Shop::open().await;
    let mut ids = Vec::new();
    for round in 0..20 {
        ids.push(apply(&shop.store, task("mail")).await.id());
        if round % 3 == 0 {
            shop.order(&[task("mail"), task("mail")], roll_back).unwrap();
        }
        ids.push(shop.submit(task("mail")).id());
    }
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
}

/// Shows: T1
#[tokio::test]
async fn two_submits_in_one_transaction_see_one_another() {
    let mut shop = Shop::open().await;
    let transaction = begin(&mut shop.connection);
    let first = shop.store.submit_in(&transaction, &[unique()]).unwrap();
    let second = shop.store.submit_in(&transaction, &[unique(), task("mail")]).unwrap();
    transaction.commit().unwrap();
    let expected = [Submitted::Duplicate { id: TaskId(1) }, Submitted::Inserted { id: TaskId(2) }];
    assert_eq!((first.committed().len(), second.committed()), (1, expected.to_vec()));
}

/// Shows: T1, T3
#[tokio::test]
async fn a_caller_sees_the_key_of_a_task_that_waits_in_the_stores_memory() {
    let mut shop = Shop::open().await;
    let id = apply(&shop.store, unique()).await.id();
    assert_eq!(shop.submit(unique()), Submitted::Duplicate { id });
}

/// Shows: T1, T3
#[tokio::test]
async fn a_caller_sees_the_key_of_a_task_that_is_in_the_tables() {
    let mut shop = Shop::open().await;
    let _makes_it_shared = shop.other_store().await;
    let id = apply(&shop.store, unique()).await.id();
    assert_eq!(shop.submit(unique()), Submitted::Duplicate { id });
}

/// Shows: T1, T3
#[tokio::test]
async fn the_store_sees_the_key_of_a_callers_task() {
    let mut shop = Shop::open().await;
    let id = shop.submit(unique()).id();
    assert_eq!(apply(&shop.store, unique()).await, Submitted::Duplicate { id });
}

/// Shows: T1, T3
#[tokio::test]
async fn a_stranger_to_the_process_sees_the_key_of_a_callers_task() {
    let mut shop = Shop::open().await;
    let other = shop.other_store().await;
    let id = shop.submit(unique()).id();
    assert_eq!(apply(&other, unique()).await, Submitted::Duplicate { id });
}

/// Shows: T1, T3
#[tokio::test]
async fn a_callers_task_supersedes_one_of_the_store() {
    let mut shop = Shop::open().await;
    let old = apply(&shop.store, unique()).await.id();
    let mut notifications = shop.store.notifications();
    let new = shop.submit(keyed("a", OnDuplicate::Supersede));
    assert_eq!(new, Submitted::Superseded { id: TaskId(2), old });
    assert_eq!(shop.state(old).await, Some(TaskState::Cancelled));
    assert_eq!(timeout(PATIENCE, notifications.next()).await, Ok(Some(Notification::Missed)));
}

/// Shows: T1
#[tokio::test]
async fn a_caller_that_says_it_has_committed_wakes_workers() {
    let mut shop = Shop::open().await;
    let mut changes = shop.store.changes();
    let before = changes.hint();
    shop.submit(task("mail"));
    assert!(changes.hint().work > before.work);
}

/// Shows: T1, B4
#[tokio::test]
async fn a_caller_that_says_it_has_committed_wakes_other_processes() {
    let mut shop = Shop::open().await;
    let other = shop.other_store().await;
    let mut changes = other.changes();
    shop.submit(task("mail"));
    while other.task(TaskId(1)).await.unwrap().is_none() {
        timeout(PATIENCE, changes.changed()).await.expect("it is woken");
    }
}

/// Shows: T1
#[tokio::test]
async fn a_commit_without_a_notification_is_noticed() {
    let mut shop = Shop::open().await;
    let mut changes = shop.store.changes();
    changes.hint();
    let transaction = begin(&mut shop.connection);
    drop(shop.store.submit_in(&transaction, &[task("mail")]).unwrap());
    transaction.commit().unwrap();
    timeout(PATIENCE, changes.changed()).await.expect("it is noticed");
}

#[tokio::test]
async fn a_connection_without_a_transaction_is_refused() {
    let shop = Shop::open().await;
    assert!(refusal(&shop.store, &shop.connection).contains("BEGIN IMMEDIATE"));
}

#[tokio::test]
async fn a_connection_on_another_file_is_refused() {
    let shop = Shop::open().await;
    let mut elsewhere = Shop::open().await;
    assert!(refusal(&shop.store, &begin(&mut elsewhere.connection)).contains("the store's file"));
}

#[tokio::test]
async fn a_connection_on_no_file_is_refused() {
    let shop = Shop::open().await;
    let mut connection = Connection::open_in_memory().unwrap();
    assert!(refusal(&shop.store, &connection.transaction().unwrap()).contains("on no file"));
}

#[tokio::test]
async fn a_store_in_memory_is_refused() {
    let mut shop = Shop::open().await;
    let store = SqliteStore::options().open_in_memory().await.unwrap();
    assert!(refusal(&store, &begin(&mut shop.connection)).contains("in memory"));
}

#[tokio::test]
async fn a_connection_that_only_reads_is_refused() {
    let shop = Shop::open().await;
    let mut connection = Connection::open_with_flags(shop.path(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let transaction = connection.transaction().unwrap();
    let error = shop.store.submit_in(&transaction, &[task("mail")]).unwrap_err();
    assert!(error.is_read_only(), "{error:?}");
}

/// Without this check the task would be written to the temporary table and be lost.
#[tokio::test]
async fn a_connection_that_hides_a_table_of_the_store_is_refused() {
    let mut shop = Shop::open().await;
    shop.connection.execute_batch("CREATE TEMP TABLE Task AS SELECT * FROM main.task").unwrap();
    assert!(refusal(&shop.store, &begin(&mut shop.connection)).contains("`Task`"));
}

#[tokio::test]
async fn a_connection_may_reach_the_file_by_another_name() {
    let shop = Shop::open().await;
    let other_name = shop.directory.path().join("link.db");
    std::os::unix::fs::symlink(shop.path(), &other_name).unwrap();
    let mut connection = Connection::open(other_name).unwrap();
    let transaction = begin(&mut connection);
    let submitted = shop.store.submit_in(&transaction, &[task("mail")]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(shop.state(submitted.committed()[0].id()).await, Some(TaskState::Waiting));
}

/// Shows: T1
#[tokio::test]
async fn a_refused_task_among_several_leaves_no_trace() {
    let mut shop = Shop::open().await;
    let transaction = begin(&mut shop.connection);
    let elsewhere = NewTask { queue: Name::new("elsewhere").unwrap(), ..task("mail") };
    let error = shop.store.submit_in(&transaction, &[elsewhere, too_large()]).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("number 1"), "{error}");
    transaction.commit().unwrap();
    assert_eq!(shop.store.queues().await.unwrap(), []);
}

/// Each of the two queues could be added alone, but not both.
#[tokio::test]
async fn a_task_refused_after_others_were_written_leaves_no_trace() {
    let mut shop = Shop::open().await;
    let queue = |number: usize| Name::new(format!("q{number}")).unwrap();
    let pause = |number| Write::Pause { scope: Scope::Queue(queue(number)), until: None };
    shop.store.apply((1..bounds::QUEUES).map(pause).collect()).await.unwrap();
    let tasks = [bounds::QUEUES, bounds::QUEUES + 1].map(|number| NewTask { queue: queue(number), ..task("mail") });
    let transaction = begin(&mut shop.connection);
    assert!(shop.store.submit_in(&transaction, &tasks).unwrap_err().is_invalid());
    transaction.commit().unwrap();
    assert_eq!(shop.store.queues().await.unwrap().len(), bounds::QUEUES - 1);
}

/// Shows: T1
#[tokio::test]
async fn the_callers_transaction_goes_on_after_a_refusal() {
    let mut shop = Shop::open().await;
    let transaction = begin(&mut shop.connection);
    order(&transaction);
    assert!(shop.store.submit_in(&transaction, &[too_large()]).is_err());
    let submitted = shop.store.submit_in(&transaction, &[task("mail")]).unwrap();
    transaction.commit().unwrap();
    assert_eq!((shop.orders(), submitted.committed()), (1, vec![Submitted::Inserted { id: TaskId(1) }]));
}

/// Shows: T1
#[tokio::test]
async fn the_callers_transaction_goes_on_after_a_submit_that_failed_half_way() {
    let mut shop = Shop::open().await;
    let trigger = "CREATE TEMP TRIGGER no_more AFTER INSERT ON main.task WHEN new.id = 2 \
        BEGIN SELECT RAISE(ABORT, 'no more'); END";
    shop.connection.execute_batch(trigger).unwrap();
    let transaction = begin(&mut shop.connection);
    order(&transaction);
    let error = shop.store.submit_in(&transaction, &[task("mail"), task("mail")]).unwrap_err();
    assert!(error.to_string().contains("no more"), "{error}");
    transaction.commit().unwrap();
    assert_eq!((shop.orders(), shop.state(TaskId(1)).await), (1, None));
}

/// SQLite rolls the transaction back, which cannot be prevented. The caller must not take it for a
/// transaction that is still open.
///
/// Shows: T1
#[tokio::test]
async fn a_submit_that_finds_no_room_says_that_the_transaction_is_rolled_back() {
    let mut shop = Shop::open().await;
    let pages: i64 = shop.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    shop.connection.pragma_update(None, "max_page_count", pages + 100).unwrap();
    let transaction = begin(&mut shop.connection);
    order(&transaction);
    let large = NewTask { payload: vec![0; 300 * 1024].into(), ..task("large") };
    let error = shop.store.submit_in(&transaction, &[task("mail"), large.clone(), large]).unwrap_err();
    assert!(error.is_full() && error.to_string().contains("rolled back as a whole"), "{error:?}");
    drop(transaction);
    assert_eq!((shop.orders(), shop.state(TaskId(1)).await), (0, None));
}

/// Shows: T1
#[tokio::test]
async fn a_transaction_that_read_before_another_wrote_must_start_again() {
    let mut shop = Shop::open().await;
    let transaction = shop.connection.transaction().unwrap();
    transaction.query_row("SELECT count(*) FROM shop_order", [], |_| Ok(())).unwrap();
    apply(&shop.store, task("mail")).await;
    let error = shop.store.submit_in(&transaction, &[task("mail")]).unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("BEGIN IMMEDIATE"), "{error:?}");
}

#[tokio::test]
async fn a_file_that_stays_locked_is_an_error_that_may_pass() {
    let mut shop = Shop::open().await;
    let mut other = Connection::open(shop.path()).unwrap();
    shop.connection.busy_timeout(Duration::ZERO).unwrap();
    let transaction = shop.connection.transaction().unwrap();
    let lock = begin(&mut other);
    assert!(shop.store.submit_in(&transaction, &[task("mail")]).unwrap_err().is_transient());
    drop(lock);
    let submitted = shop.store.submit_in(&transaction, &[task("mail")]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(submitted.committed().len(), 1);
}

/// The store's writer holds its own locks while it waits for the transaction. The transaction must
/// not wait for the writer in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_does_not_wait_for_a_store_that_waits_for_the_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(open_store(directory.path().join("shop.db")).await);
    let mut connection = Connection::open(directory.path().join("shop.db")).unwrap();
    let transaction = begin(&mut connection);
    let waits = tokio::spawn({
        let store = Arc::clone(&store);
        async move { apply(&store, task("other")).await }
    });
    let submitted = (0..100).map(|_| store.submit_in(&transaction, &[task("mail")]).unwrap()).collect::<Vec<_>>();
    transaction.commit().unwrap();
    submitted.into_iter().for_each(|submitted| drop(submitted.committed()));
    assert_eq!(timeout(PATIENCE, waits).await.unwrap().unwrap(), Submitted::Inserted { id: TaskId(101) });
}

/// The filter finds tasks that the store has not written to its tables yet, and tasks of a caller
/// that writes without the store.
#[tokio::test]
async fn tasks_are_found_by_their_tags_whichever_process_submitted_them() {
    let mut shop = Shop::open().await;
    let tags: Tags = [("customer", "ada")].into_iter().collect();
    let tagged = NewTask { tags: tags.clone(), ..task("mail") };
    shop.store.apply(vec![Write::Submit(Box::new(tagged.clone()))]).await.unwrap();
    shop.submit(tagged);
    assert_eq!(shop.store.count(TaskFilter { tags, ..TaskFilter::default() }).await.unwrap(), 2);
}
