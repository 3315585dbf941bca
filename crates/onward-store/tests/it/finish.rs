//! Tasks that are completed in transactions of the caller.

use std::time::Duration;

use onward_store::rusqlite::{Connection, Transaction, TransactionBehavior};
use onward_store::{
    AfterFailure, Claim, Dependencies, Durability, Error, Lease, NewTask, Notification, OpenSession, Outcome, Refusal,
    SqliteStore, Store, StoreReads, TaskId, TaskState, Write,
};
use onward_testkit::task;
use tokio::time::timeout;

/// The time limit of a wait. A longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store, and a shop that keeps its payments in the same file.
struct Shop {
    directory: tempfile::TempDir,
    store: SqliteStore,
    connection: Connection,
}

impl Shop {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        let connection = store.connect().unwrap();
        connection.execute_batch("CREATE TABLE shop_payment (task INTEGER NOT NULL)").unwrap();
        Self { directory, store, connection }
    }

    /// Drops the store and the shop's connection without closing them, as a crash would, and opens
    /// both again.
    async fn crash(self) -> Self {
        drop(self.connection);
        drop(self.store);
        let store = open(&self.directory).await;
        let connection = store.connect().unwrap();
        Self { directory: self.directory, store, connection }
    }

    fn begin(&mut self) -> (&SqliteStore, Transaction<'_>) {
        (&self.store, self.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap())
    }

    async fn write(&self, write: Write) -> Outcome {
        self.store.apply(vec![write]).await.unwrap().remove(0)
    }

    async fn submit(&self, new: NewTask) -> TaskId {
        match self.write(Write::Submit(Box::new(new))).await {
            Outcome::Submitted(submitted) => submitted.id(),
            other => panic!("it should have been accepted: {other:?}"),
        }
    }

    async fn claim(&self) -> Lease {
        let open = OpenSession::new("shop", Duration::from_secs(3600));
        let Outcome::SessionOpened(session) = self.write(Write::OpenSession(open)).await else { panic!("no session") };
        let Outcome::Claimed(claimed) = self.write(Write::Claim(Claim::any(session, 1))).await else {
            panic!("no claim")
        };
        claimed.tasks[0].lease
    }

    async fn running(&self) -> Lease {
        self.submit(task("pay")).await;
        self.claim().await
    }

    async fn state(&self, task: TaskId) -> TaskState {
        self.store.task(task).await.unwrap().unwrap().state
    }

    fn payments(&self) -> usize {
        self.connection.query_row("SELECT count(*) FROM shop_payment", [], |row| row.get(0)).unwrap()
    }
}

async fn open(directory: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::options().durability(Durability::Normal).open(directory.path().join("shop.db")).await.unwrap()
}

fn pay(transaction: &Transaction<'_>, lease: Lease) {
    transaction.execute("INSERT INTO shop_payment VALUES (?)", [lease.task.0]).unwrap();
}

/// Inserts a payment and completes the task in one transaction.
fn finish(shop: &mut Shop, lease: Lease) -> Result<(), Error> {
    let (store, transaction) = shop.begin();
    pay(&transaction, lease);
    let finished = store.complete_in(&transaction, lease, Some("paid".into()))?;
    transaction.commit().unwrap();
    finished.committed();
    Ok(())
}

fn is_lease_lost(error: &Error) -> bool {
    matches!(error.refusal(), Some(Refusal::LeaseLost(_)))
}

/// Shows: T22
#[tokio::test]
async fn the_end_of_a_task_is_committed_with_the_callers_rows() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    finish(&mut shop, lease).unwrap();
    let record = shop.store.task(lease.task).await.unwrap().unwrap();
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(b"paid".as_slice())));
    assert_eq!((shop.payments(), shop.store.statistics().await.unwrap()[0].ended.completed), (1, 1));
}

/// Shows: T22
#[tokio::test]
async fn a_rollback_leaves_neither_the_effect_nor_the_end_and_the_lease_still_holds() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let (store, transaction) = shop.begin();
    pay(&transaction, lease);
    drop(store.complete_in(&transaction, lease, None).unwrap());
    transaction.rollback().unwrap();
    assert_eq!((shop.payments(), shop.state(lease.task).await), (0, TaskState::Running));
    finish(&mut shop, lease).unwrap();
    assert_eq!(shop.payments(), 1);
}

/// Shows: T22
#[tokio::test]
async fn a_lost_lease_is_refused_and_what_was_written_can_be_rolled_back() {
    let mut shop = Shop::open().await;
    let lost = shop.running().await;
    shop.write(Write::CloseSession { session: lost.session }).await;
    let lease = shop.claim().await;
    assert!(matches!(finish(&mut shop, lost).unwrap_err().refusal(), Some(Refusal::SessionLost(_))));
    finish(&mut shop, lease).unwrap();
    assert!(is_lease_lost(&finish(&mut shop, lease).unwrap_err()));
    assert_eq!(shop.payments(), 1);
}

/// The connection and the store are dropped at points where a process could die. The effect exists
/// if, and only if, the task has ended.
///
/// Shows: T22
#[tokio::test]
async fn a_crash_anywhere_leaves_the_effect_exactly_once() {
    for died_at in ["effect", "end", "commit"] {
        let mut shop = Shop::open().await;
        let lease = shop.running().await;
        let (store, transaction) = shop.begin();
        pay(&transaction, lease);
        if died_at != "effect" {
            let finished = store.complete_in(&transaction, lease, None).unwrap();
            if died_at == "commit" {
                transaction.commit().unwrap();
            } else {
                drop(transaction);
            }
            std::mem::forget(finished);
        } else {
            drop(transaction);
        }
        let mut shop = shop.crash().await;
        if died_at == "commit" {
            assert_eq!((shop.payments(), shop.state(lease.task).await), (1, TaskState::Completed), "{died_at}");
            continue;
        }
        assert_eq!((shop.payments(), shop.state(lease.task).await), (0, TaskState::Waiting), "{died_at}");
        let next = shop.claim().await;
        finish(&mut shop, next).unwrap();
        assert_eq!((shop.payments(), shop.state(lease.task).await), (1, TaskState::Completed), "{died_at}");
    }
}

/// Shows: T22, T12
#[tokio::test]
async fn what_depends_on_the_task_goes_on_when_the_caller_commits() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let next = shop.submit(NewTask { depends_on: Dependencies::on([lease.task]), ..task("ship") }).await;
    finish(&mut shop, lease).unwrap();
    assert_eq!(shop.state(next).await, TaskState::Waiting);
}

/// Shows: T22
#[tokio::test]
async fn a_waiter_is_notified_when_the_caller_reports_its_commit() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let mut notifications = shop.store.notifications();
    finish(&mut shop, lease).unwrap();
    assert_eq!(timeout(PATIENCE, notifications.next()).await, Ok(Some(Notification::Missed)));
}

/// Shows: T22
#[tokio::test]
async fn an_end_without_a_notification_is_noticed() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let mut notifications = shop.store.notifications();
    let (store, transaction) = shop.begin();
    drop(store.complete_in(&transaction, lease, None).unwrap());
    transaction.commit().unwrap();
    assert_eq!(timeout(PATIENCE, notifications.next()).await, Ok(Some(Notification::Missed)));
}

/// Shows: T22
#[tokio::test]
async fn a_failure_can_be_written_with_what_the_caller_knows_of_it() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let (store, transaction) = shop.begin();
    pay(&transaction, lease);
    let next = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let failed = store.fail_in(&transaction, lease, "declined", next).unwrap();
    transaction.commit().unwrap();
    assert!(matches!(failed.committed()[..], [Outcome::Failed(failed)] if failed.lease.is_none()));
    let record = shop.store.task(lease.task).await.unwrap().unwrap();
    assert_eq!((record.state, &*record.errors[0].message), (TaskState::Waiting, "declined"));
    assert_eq!(shop.payments(), 1);
}

/// Shows: T22
#[tokio::test]
async fn what_a_task_leaves_is_submitted_with_its_end_or_not_at_all() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let writes = |lease| {
        let child = NewTask { parent: Some(lease_task(lease)), ..task("ship") };
        vec![Write::Submit(Box::new(child)), Write::Complete { lease, result: None }]
    };
    let lost = Lease { claim: lease.claim + 1, ..lease };
    let (store, transaction) = shop.begin();
    let refusal = store.apply_in(&transaction, writes(lost)).unwrap_err();
    assert!(matches!(refusal.refusal(), Some(Refusal::InAll { index: 1, .. })), "{refusal:?}");
    drop(store.apply_in(&transaction, writes(lease)).unwrap());
    transaction.commit().unwrap();
    assert_eq!((shop.state(TaskId(2)).await, shop.store.task(TaskId(3)).await.unwrap()), (TaskState::Waiting, None));
}

fn lease_task(lease: Lease) -> TaskId {
    lease.task
}

#[tokio::test]
async fn a_claim_in_a_callers_transaction_is_refused() {
    let mut shop = Shop::open().await;
    let lease = shop.running().await;
    let (store, transaction) = shop.begin();
    let claims = vec![Write::All(vec![Write::Claim(Claim::any(lease.session, 1))])];
    assert!(store.apply_in(&transaction, claims).unwrap_err().is_invalid());
}
