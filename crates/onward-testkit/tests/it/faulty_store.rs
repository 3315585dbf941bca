//! Tests of the store whose calls fail on purpose.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{ManualClock, MemoryStore, Outcome, Store, StoreReads, TaskId, Write};
use onward_testkit::{Fault, FaultyStore, Side, TIMEOUT, task};

fn faulty() -> FaultyStore {
    FaultyStore::new(Arc::new(MemoryStore::new()))
}

async fn submit(store: &FaultyStore) -> onward_store::Result<Vec<Outcome>> {
    store.apply(vec![Write::Submit(Box::new(task("k")))]).await
}

#[tokio::test]
async fn a_fault_before_leaves_nothing() {
    let store = faulty();
    store.fail_once(1, Side::Before, Fault::Io);
    assert!(submit(&store).await.unwrap_err().is_transient());
    assert_eq!(store.task(TaskId(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_fault_after_leaves_what_was_written() {
    let store = faulty();
    store.fail_once(1, Side::After, Fault::Io);
    submit(&store).await.unwrap_err();
    assert!(store.task(TaskId(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn only_the_call_that_was_named_fails() {
    let store = faulty();
    store.fail_once(2, Side::Before, Fault::Io);
    let failed = [submit(&store).await.is_err(), submit(&store).await.is_err(), submit(&store).await.is_err()];
    assert_eq!((failed, store.calls()), ([false, true, false], 3));
}

#[tokio::test]
async fn only_the_read_that_was_named_fails() {
    let store = faulty();
    submit(&store).await.unwrap();
    store.fail_read_once(2, Fault::Busy);
    let mut failed = Vec::new();
    for _ in 0..3 {
        failed.push(store.task(TaskId(1)).await.is_err());
    }
    assert_eq!((failed, store.reads()), (vec![false, true, false], 3));
}

#[tokio::test]
async fn a_lasting_fault_ends_when_it_is_healed() {
    let store = faulty();
    store.fail_from(1, Side::Before, Fault::Io);
    assert!(submit(&store).await.is_err() && submit(&store).await.is_err());
    store.heal();
    assert!(submit(&store).await.is_ok());
}

#[tokio::test]
async fn a_fault_reports_its_kind() {
    let store = faulty();
    store.fail_once(1, Side::Before, Fault::Full);
    let full = submit(&store).await.unwrap_err();
    store.fail_once(2, Side::Before, Fault::Busy);
    let busy = submit(&store).await.unwrap_err();
    assert!(full.is_full() && busy.is_transient() && !busy.is_full(), "{full:?} {busy:?}");
}

#[tokio::test]
async fn a_timeout_keeps_its_caller_waiting_by_the_stores_clock() {
    let clock = Arc::new(ManualClock::default());
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::with_clock(clock.clone()))));
    store.fail_once(1, Side::Before, Fault::Timeout);
    let call = tokio::spawn({
        let store = Arc::clone(&store);
        async move { submit(&store).await }
    });
    while store.calls() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(TIMEOUT - Duration::from_micros(1));
    tokio::task::yield_now().await;
    assert!(!call.is_finished());
    clock.advance(Duration::from_micros(1));
    call.await.unwrap().unwrap_err();
}
