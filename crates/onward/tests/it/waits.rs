//! Awaiting the end of tasks and typed results.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use onward::{Failure, Task, TaskError, TaskState};
use serde::{Deserialize, Serialize};

use crate::fixture::{Gate, TestStore, start, start_drain, stop, submit};

on_every_store! {
    a_typed_result_can_be_awaited,
    a_typed_result_can_be_awaited_after_the_end,
    a_handle_of_a_task_that_is_tried_again_waits_for_its_second_end,
    awaiting_a_dead_letter_returns_its_last_error,
    a_payload_of_another_type_is_a_permanent_failure,
    a_task_that_another_engine_runs_can_be_awaited,
    a_thousand_tasks_can_be_awaited_at_once,
    a_cancellation_ends_the_wait_for_a_task,
    awaiting_an_unknown_task_is_an_error,
    no_waiter_keeps_a_drain_from_ending,
}

#[derive(Serialize, Deserialize)]
struct Sum {
    numbers: Vec<u64>,
}

impl Task for Sum {
    const KIND: &'static str = "sum";
    type Output = u64;
}

fn sum() -> Sum {
    Sum { numbers: vec![1, 2, 3] }
}

/// Shows: T20
async fn a_typed_result_can_be_awaited(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|sum: Sum, _| async move { Ok(sum.numbers.iter().sum()) });
    let run = start(&engine);
    let handle = engine.submit(sum()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), 6);
    stop(&engine, run).await;
}

/// Shows: T20
async fn a_typed_result_can_be_awaited_after_the_end(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|sum: Sum, _| async move { Ok(sum.numbers.iter().sum()) });
    let handle = engine.submit(sum()).await.unwrap();
    engine.drain().await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), 6);
}

/// Shows: T20, T8
async fn a_handle_of_a_task_that_is_tried_again_waits_for_its_second_end(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|sum: Sum, context: onward::Context| async move {
        if !context.state::<AtomicBool>().unwrap().swap(true, SeqCst) {
            return Err(Failure::permanent("not yet"));
        }
        Ok(sum.numbers.iter().sum())
    });
    engine.state(AtomicBool::new(false));
    let handle = engine.submit(sum()).await.unwrap();
    engine.drain().await.unwrap();
    engine.retry(handle.id()).await.unwrap();
    let waiting = tokio::spawn(async move { handle.wait().await.unwrap() });
    engine.drain().await.unwrap();
    assert_eq!(waiting.await.unwrap(), 6);
}

/// Shows: T20, T8
async fn awaiting_a_dead_letter_returns_its_last_error(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|_: Sum, _| async { Err(Failure::retryable("too many")) });
    let handle = engine.submit(sum()).await.unwrap();
    engine.drain().await.unwrap();
    let error = handle.wait().await.unwrap_err();
    assert!(matches!(&error, TaskError::Dead { error, .. } if error == "too many"), "{error}");
}

/// Shows: T20
async fn a_payload_of_another_type_is_a_permanent_failure(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|sum: Sum, _| async move { Ok(sum.numbers.iter().sum()) });
    let id = submit(&engine, "sum").await;
    engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!(record.state, TaskState::Failed);
    assert!(record.errors[0].message.contains("does not match the kind `sum`"));
}

/// Shows: Q5
async fn a_task_that_another_engine_runs_can_be_awaited(store: TestStore) {
    let (submits, runs) = (store.engine().await, store.engine().await);
    let gate = Gate::new();
    runs.handle("far", gate.handler());
    let run = start(&runs);
    let id = submit(&submits, "far").await;
    let waiting = tokio::spawn(async move { submits.wait(id).await.unwrap() });
    gate.entered(1).await;
    gate.open(1);
    assert_eq!(waiting.await.unwrap().state, TaskState::Completed);
    stop(&runs, run).await;
}

/// Shows: Q5
async fn a_thousand_tasks_can_be_awaited_at_once(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("many", |_| async { Ok::<(), Failure>(()) });
    let mut waiting = Vec::new();
    for _ in 0..1000 {
        let id = submit(&engine, "many").await;
        let engine = engine.clone();
        waiting.push(tokio::spawn(async move { engine.wait(id).await.unwrap().state }));
    }
    engine.drain().await.unwrap();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), TaskState::Completed);
    }
}

/// Shows: T13
async fn a_cancellation_ends_the_wait_for_a_task(store: TestStore) {
    let engine = store.engine().await;
    let id = submit(&engine, "never").await;
    let waits = engine.clone();
    let waiting = tokio::spawn(async move { waits.wait(id).await.unwrap() });
    store.settled().await;
    engine.cancel(id).await.unwrap();
    assert_eq!(waiting.await.unwrap().state, TaskState::Cancelled);
}

async fn awaiting_an_unknown_task_is_an_error(store: TestStore) {
    let engine = store.engine().await;
    let error = engine.wait(onward::TaskId(99)).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

async fn no_waiter_keeps_a_drain_from_ending(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("done", |_| async { Ok::<(), Failure>(()) });
    let other = submit(&engine, "other").await;
    let waits = engine.clone();
    let waiting = tokio::spawn(async move { waits.wait(other).await });
    start_drain(&engine).await.unwrap();
    waiting.abort();
}
