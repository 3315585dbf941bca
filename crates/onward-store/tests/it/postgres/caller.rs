//! Writes in transactions of the caller.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, Lease, ManualClock, NewTask, OpenSession, Outcome, PostgresStore, Refusal, Store, StoreReads, Submitted,
    TaskFilter, TaskId, TaskState, UniqueKey, Write,
};
use tokio_postgres::{Client, IsolationLevel, NoTls};

use super::fixture::options;
use super::server::{open, url};
use super::trouble::{connect, in_time};

/// Opens a connection of the caller, with a table of its own.
async fn caller(url: &str, store: &PostgresStore) -> (Client, String) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let table = format!("shop_{}", store.info().location.rsplit_once('#').unwrap().1);
    client.batch_execute(&format!("CREATE TABLE {table} (task bigint)")).await.unwrap();
    (client, table)
}

async fn rows(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

async fn count(store: &PostgresStore) -> u64 {
    store.count(TaskFilter::default()).await.unwrap()
}

fn mail() -> NewTask {
    NewTask::new("mail").unwrap()
}

async fn claimed(store: &PostgresStore, lease: Duration) -> Lease {
    let writes = vec![Write::Submit(Box::new(mail())), Write::OpenSession(OpenSession::new("worker", lease))];
    let Outcome::SessionOpened(session) = store.apply(writes).await.unwrap()[1] else { panic!("no session") };
    let claimed = store.apply(vec![Write::Claim(Claim::any(session, 1))]).await.unwrap().remove(0);
    let Outcome::Claimed(claimed) = claimed else { panic!("no claim") };
    claimed.tasks[0].lease
}

/// Shows: T1
#[tokio::test]
async fn tasks_and_rows_of_a_transaction_are_there_together_or_not_at_all() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let (mut client, table) = caller(&url, &store).await;
    for commits in [false, true] {
        let transaction = client.transaction().await.unwrap();
        transaction.execute(&format!("INSERT INTO {table} VALUES (1)"), &[]).await.unwrap();
        let submitted = store.submit_in(&transaction, vec![mail(), mail()]).await.unwrap();
        assert_eq!(submitted.submitted().count(), 2);
        if commits {
            transaction.commit().await.unwrap();
            submitted.committed();
        } else {
            transaction.rollback().await.unwrap();
        }
        let expected = if commits { (2, 1) } else { (0, 0) };
        assert_eq!((count(&store).await, rows(&client, &table).await), expected);
    }
}

/// Beats: reused-ids
#[tokio::test]
async fn numbers_of_tasks_whose_transaction_was_rolled_back_are_not_given_again() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let (mut client, _) = caller(&url, &store).await;
    let transaction = client.transaction().await.unwrap();
    let submitted = store.submit_in(&transaction, vec![mail()]).await.unwrap().submitted().next();
    let Some(Submitted::Inserted { id: gone }) = submitted else { panic!("{submitted:?}") };
    transaction.rollback().await.unwrap();
    let outcomes = store.apply(vec![Write::Submit(Box::new(mail()))]).await.unwrap();
    let Outcome::Submitted(Submitted::Inserted { id }) = outcomes[0] else { panic!("{outcomes:?}") };
    assert!(id > gone);
}

/// Shows: T22
#[tokio::test]
async fn a_task_ends_with_the_commit_of_what_was_written_for_it() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let (mut client, table) = caller(&url, &store).await;
    let lease = claimed(&store, Duration::from_secs(600)).await;
    let state = async || store.task(lease.task).await.unwrap().unwrap().state;
    for commits in [false, true] {
        let transaction = client.transaction().await.unwrap();
        transaction.execute(&format!("INSERT INTO {table} VALUES ($1)"), &[&lease.task.0]).await.unwrap();
        let finished = store.complete_in(&transaction, lease, Some("paid".into())).await.unwrap();
        assert_eq!(state().await, TaskState::Running, "it has not committed");
        if commits {
            transaction.commit().await.unwrap();
            assert_eq!(finished.committed(), [Outcome::Done]);
        } else {
            transaction.rollback().await.unwrap();
            assert_eq!(state().await, TaskState::Running);
        }
    }
    let task = store.task(lease.task).await.unwrap().unwrap();
    assert_eq!((task.state, task.result.as_deref()), (TaskState::Completed, Some(&b"paid"[..])));
    assert_eq!(rows(&client, &table).await, 1);
}

/// The lease is the fence. The caller may roll its transaction back, or continue it.
///
/// Shows: T22, B4
#[tokio::test]
async fn an_attempt_that_lost_its_lease_cannot_finish_in_its_transaction() {
    let Some(url) = url() else { return };
    let clock = Arc::new(ManualClock::default());
    let store = open(&url, options().clock(clock.clone())).await;
    let (mut client, table) = caller(&url, &store).await;
    let lease = claimed(&store, Duration::from_secs(2)).await;
    clock.advance(Duration::from_secs(3));
    store.apply(vec![Write::Sweep]).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.execute(&format!("INSERT INTO {table} VALUES (1)"), &[]).await.unwrap();
    let error = store.complete_in(&transaction, lease, None).await.unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::LeaseLost(_) | Refusal::SessionLost(_))), "{error:?}");
    let is_there: i64 = transaction.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0);
    assert_eq!(is_there, 1, "the transaction is as it was");
    transaction.rollback().await.unwrap();
    assert_eq!(store.task(lease.task).await.unwrap().unwrap().state, TaskState::Waiting);
}

/// Returns whether a connection waits for the lock of a store.
async fn waits_for_lock(client: &Client, store: &PostgresStore) -> bool {
    let text = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                AND (classid::bigint << 32) | objid::bigint = hashtextextended($1, 0))";
    let schema = store.info().location.rsplit_once('#').unwrap().1.to_owned();
    client.query_one(text, &[&format!("onward {schema}")]).await.unwrap().get(0)
}

/// A sweep that would take the lease away waits for the commit, and then finds the task ended.
///
/// Shows: T22
#[tokio::test]
async fn no_process_takes_a_lease_between_the_completion_and_its_commit() {
    let Some(url) = url() else { return };
    let clock = Arc::new(ManualClock::default());
    let store = Arc::new(open(&url, options().clock(clock.clone())).await);
    let (mut client, _) = caller(&url, &store).await;
    let lease = claimed(&store, Duration::from_secs(2)).await;
    let transaction = client.transaction().await.unwrap();
    let finished = store.complete_in(&transaction, lease, None).await.unwrap();
    clock.advance(Duration::from_secs(3));
    let sweeping = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.apply(vec![Write::Sweep]).await.unwrap() }
    });
    let other = connect(&url).await;
    in_time("the sweep waits for the lock", async { while !waits_for_lock(&other, &store).await {} }).await;
    transaction.commit().await.unwrap();
    finished.committed();
    let Outcome::Swept(swept) = sweeping.await.unwrap().remove(0) else { panic!("no sweep") };
    assert_eq!(swept.lost, 0);
    assert_eq!(store.task(lease.task).await.unwrap().unwrap().state, TaskState::Completed);
}

#[tokio::test]
async fn a_refused_write_leaves_the_transaction_as_it_was() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let (mut client, _) = caller(&url, &store).await;
    let transaction = client.transaction().await.unwrap();
    let writes = vec![Write::Submit(Box::new(mail())), Write::Cancel { task: TaskId(999) }];
    let error = store.apply_in(&transaction, writes).await.unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::InAll { index: 1, .. })), "{error:?}");
    let submitted = store.submit_in(&transaction, vec![mail()]).await.unwrap();
    transaction.commit().await.unwrap();
    submitted.committed();
    assert_eq!(count(&store).await, 1);
}

#[tokio::test]
async fn what_is_no_transaction_or_sees_an_old_picture_is_refused() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let (mut client, _) = caller(&url, &store).await;
    let error = store.submit_in(&client, vec![mail()]).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("begin one"), "{error}");
    let build = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let error = store.submit_in(&build.start().await.unwrap(), vec![mail()]).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("READ COMMITTED"), "{error}");
    let elsewhere = open(&url, options().schema(format!("{}x", super::schemas::new_name()))).await;
    let schema = elsewhere.info().location.rsplit_once('#').unwrap().1.to_owned();
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let error = elsewhere.submit_in(&transaction, vec![mail()]).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("store's schema"), "{error}");
    assert_eq!(count(&store).await, 0);
}

#[tokio::test]
async fn callers_and_the_store_itself_write_at_once_and_a_key_is_taken_once() {
    let Some(url) = url() else { return };
    let store = Arc::new(open(&url, options()).await);
    let keyed = |number: usize| {
        let unique =
            UniqueKey { key: format!("key {number}"), on_duplicate: Default::default(), keep_for: Duration::ZERO };
        NewTask { unique: Some(unique), ..mail() }
    };
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (store, url) = (Arc::clone(&store), url.clone());
        callers.spawn(async move {
            let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            for number in 0..20 {
                let transaction = client.transaction().await.unwrap();
                let submitted = store.submit_in(&transaction, vec![keyed(number)]).await.unwrap();
                transaction.commit().await.unwrap();
                submitted.committed();
                store.apply(vec![Write::Submit(Box::new(keyed(number)))]).await.unwrap();
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    assert_eq!(count(&store).await, 20);
}
