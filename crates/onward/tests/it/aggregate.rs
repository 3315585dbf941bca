//! Batches: tasks that are collected and run as one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::task::Aggregate;
use onward::{Context, Engine, Failure, NewTask, Task, TaskId, TaskState};
use serde::{Deserialize, Serialize};

use crate::fixture::{SECOND, TestStore, error, record, start, start_drain, state, stop, task};

on_every_store! {
    a_handler_is_called_once_with_the_items_in_their_order,
    a_handler_of_its_own_finds_payloads_and_numbers,
    an_idle_engine_wakes_when_it_is_time,
    a_drain_waits_for_what_is_collected,
    a_run_until_idle_leaves_what_is_collected,
    a_further_attempt_gets_the_same_items,
    a_payload_that_is_not_what_the_type_expects_is_named,
    a_handler_of_single_tasks_fails_a_batch_with_the_remedy,
    a_handler_of_batches_gets_a_single_task_as_the_only_item,
}

#[derive(Debug, Serialize, Deserialize)]
struct Notice(String);

impl Task for Notice {
    const KIND: &'static str = "notice";
    type Output = String;

    fn aggregate(&self) -> Option<Aggregate> {
        Some(up_to(3))
    }
}

fn up_to(size: u32) -> Aggregate {
    Aggregate { size, delay: SECOND * 60, grace: SECOND * 10 }
}

/// Registers a handler that returns the texts of a batch, joined.
fn join(engine: &Engine) {
    engine.register_batches(|notices: Vec<Notice>, _| async move {
        Ok(notices.into_iter().map(|Notice(text)| text).collect::<Vec<_>>().join("+"))
    });
}

async fn collect(engine: &Engine, kind: &str, payload: &str, size: u32) -> TaskId {
    let aggregate = Some(up_to(size));
    let new = NewTask { payload: payload.to_owned().into(), aggregate, ..task(kind) };
    engine.submit_task(new).await.unwrap().id()
}

async fn batch_of(store: &TestStore, item: TaskId) -> TaskId {
    record(store, item).await.batch.unwrap()
}

/// Shows: Q9
async fn a_handler_is_called_once_with_the_items_in_their_order(store: TestStore) {
    let engine = store.engine().await;
    join(&engine);
    let mut handles = Vec::new();
    for text in ["a", "b", "c"] {
        handles.push(engine.submit(Notice(text.into())).await.unwrap());
    }
    let summary = engine.drain().await.unwrap();
    assert_eq!(summary.completed, 1);
    for handle in handles {
        assert_eq!(handle.wait().await.unwrap(), "a+b+c");
    }
}

/// Shows: Q9
async fn a_handler_of_its_own_finds_payloads_and_numbers(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("k", |context: Context| async move {
        assert_eq!((context.item_count(), context.payload().len()), (2, 0));
        let items = context.items().await?;
        let said = items.iter().map(|item| {
            format!("{}:{}", item.id, String::from_utf8_lossy(item.payload.as_deref().unwrap_or_default()))
        });
        Ok(said.collect::<Vec<_>>().join(" "))
    });
    let (first, second) = (collect(&engine, "k", "x", 2).await, collect(&engine, "k", "y", 2).await);
    engine.drain().await.unwrap();
    let result = record(&store, batch_of(&store, first).await).await.result.into_bytes().unwrap();
    assert_eq!(result, format!("{first}:x {second}:y").as_bytes());
}

/// Shows: Q9
async fn an_idle_engine_wakes_when_it_is_time(store: TestStore) {
    let engine = store.engine().await;
    join(&engine);
    let run = start(&engine);
    let handle = engine.submit(Notice("alone".into())).await.unwrap();
    let reported = store.advance_until(SECOND, tokio::spawn(async move { handle.wait().await })).await;
    assert_eq!(reported.unwrap(), "alone");
    stop(&engine, run).await;
}

/// Shows: Q9
async fn a_drain_waits_for_what_is_collected(store: TestStore) {
    let engine = store.engine().await;
    join(&engine);
    let handle = engine.submit(Notice("alone".into())).await.unwrap();
    let summary = store.advance_until(SECOND, start_drain(&engine)).await;
    assert_eq!((summary.completed, state(&store, handle.id()).await), (1, TaskState::Completed));
}

/// Shows: Q9
async fn a_run_until_idle_leaves_what_is_collected(store: TestStore) {
    let engine = store.engine().await;
    join(&engine);
    let handle = engine.submit(Notice("alone".into())).await.unwrap();
    assert_eq!(engine.run_until_idle().await.unwrap().completed, 0);
    assert_eq!(state(&store, handle.id()).await, TaskState::Blocked);
}

/// Shows: Q9
async fn a_further_attempt_gets_the_same_items(store: TestStore) {
    let policy = onward::RetryPolicy { attempts: 2, backoff: onward::Backoff::Constant { delay: Duration::ZERO } };
    let engine = store.builder().retry(policy).open().await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let attempts = Arc::clone(&seen);
    engine.handle("k", move |context: Context| {
        let attempts = Arc::clone(&attempts);
        async move {
            let items: Vec<TaskId> = context.items().await?.iter().map(|item| item.id).collect();
            attempts.lock().unwrap().push(items);
            if context.attempt() == 1 { Err(Failure::retryable("not yet")) } else { Ok(()) }
        }
    });
    let items = vec![collect(&engine, "k", "x", 2).await, collect(&engine, "k", "y", 2).await];
    engine.drain().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [items.clone(), items.clone()]);
    assert_eq!(state(&store, items[1]).await, TaskState::Completed);
}

/// Shows: Q9
async fn a_payload_that_is_not_what_the_type_expects_is_named(store: TestStore) {
    let engine = store.engine().await;
    join(&engine);
    let (good, bad) = (collect(&engine, "notice", "\"x\"", 2).await, collect(&engine, "notice", "no JSON", 2).await);
    engine.drain().await.unwrap();
    let said = error(&store, batch_of(&store, good).await).await;
    assert!(said.contains(&format!("item {bad}")), "{said}");
    assert_eq!(state(&store, good).await, TaskState::Failed);
}

/// Shows: Q9
async fn a_handler_of_single_tasks_fails_a_batch_with_the_remedy(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|Notice(text): Notice, _| async move { Ok(text) });
    let item = collect(&engine, "notice", "\"x\"", 1).await;
    engine.drain().await.unwrap();
    let said = error(&store, item).await;
    assert!(said.contains("register_batches"), "{said}");
}

/// Shows: Q9
async fn a_handler_of_batches_gets_a_single_task_as_the_only_item(store: TestStore) {
    let engine = store.engine().await;
    join(&engine);
    let id = engine.submit_task(NewTask { payload: "\"x\"".into(), ..task("notice") }).await.unwrap().id();
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.as_deref(), Some(b"\"x\"".as_slice()));
}
