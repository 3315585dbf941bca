//! The code of orchestrations must not call an engine. Every store rejects such a call before it
//! has an effect.

use onward_store::StoreReads;
use std::sync::Arc;

use onward::orchestration::OrchestrationContext;
use onward::queues::Scope;
use onward::{Engine, Handle, TaskFilter, TaskId, TaskState};
use tokio::sync::Mutex;

use crate::fixture::{TestStore, state, task as plain};
use crate::orchestrations::{Double, Work, engine, finish, start};

on_every_store! {
    code_that_submits_by_the_engine_is_refused,
    code_that_sends_by_the_engine_is_refused,
    code_that_cancels_by_the_engine_is_refused,
    code_that_waits_by_the_engine_is_refused,
    code_that_asks_the_store_of_the_engine_is_refused,
    code_that_controls_by_the_engine_is_refused,
    code_that_runs_the_engine_is_refused,
    a_step_may_call_the_engine,
}

/// Returns the error of `call` within the code of an orchestration.
async fn reported<F, A, T, E>(store: &TestStore, call: F) -> String
where
    F: Fn(Engine) -> A + Send + Sync + Clone + 'static,
    A: Future<Output = Result<T, E>> + Send + 'static,
    T: Send,
    E: std::fmt::Display + Send,
{
    let other = store.engine().await;
    let engine = engine(store, move |_: Work, _: OrchestrationContext| {
        let called = call(other.clone());
        async move {
            Ok(match called.await {
                Ok(_) => "it went well".to_owned(),
                Err(error) => error.to_string(),
            })
        }
    })
    .await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap()
}

fn assert_refused(reported: &str) {
    assert!(
        reported.contains("the code of an orchestration called its engine") && reported.contains("`context.step`"),
        "{reported}"
    );
}

/// Shows: D9
async fn code_that_submits_by_the_engine_is_refused(store: TestStore) {
    assert_refused(&reported(&store, |engine| async move { engine.submit(Double(2)).await }).await);
    assert_refused(&reported(&store, |engine| async move { engine.submit_task(plain("other")).await }).await);
    assert_refused(&reported(&store, |engine| async move { engine.submit_all(vec![plain("other")]).await }).await);
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 3, "something was submitted");
}

/// Shows: D9
async fn code_that_sends_by_the_engine_is_refused(store: TestStore) {
    let waiting = engine(&store, |_, context| async move { context.event::<String>("go")?.await }).await;
    let task = start(&waiting).await;
    waiting.run_until_idle().await.unwrap();
    assert_refused(&reported(&store, move |engine| async move { engine.signal(task, "go", &"now").await }).await);
    let update = move |engine: Engine| async move { engine.update::<_, String>(task, "go", &"now").await };
    assert_refused(&reported(&store, update).await);
    assert_eq!(store.instance(task).await.unwrap().unwrap().received, 0);
}

/// Shows: D9
async fn code_that_cancels_by_the_engine_is_refused(store: TestStore) {
    let task = crate::fixture::submit(&store.engine().await, "other").await;
    assert_refused(&reported(&store, move |engine| async move { engine.cancel(task).await }).await);
    assert_eq!(state(&store, task).await, TaskState::Waiting);
}

/// Shows: D9
async fn code_that_waits_by_the_engine_is_refused(store: TestStore) {
    let other = store.engine().await;
    let handle: Arc<Mutex<Option<Handle<u32>>>> = Arc::default();
    *handle.lock().await = Some(other.submit(Double(2)).await.unwrap());
    let task = handle.lock().await.as_ref().unwrap().id();
    assert_refused(&reported(&store, move |engine| async move { engine.wait(task).await }).await);
    let waits = move |_| {
        let handle = Arc::clone(&handle);
        async move { handle.lock().await.as_ref().unwrap().wait().await }
    };
    assert_refused(&reported(&store, waits).await);
}

/// Shows: D9
async fn code_that_asks_the_store_of_the_engine_is_refused(store: TestStore) {
    assert_refused(&reported(&store, |engine| async move { engine.store().task(TaskId(1)).await }).await);
    assert_refused(&reported(&store, |engine| async move { engine.orchestration_status(TaskId(1)).await }).await);
}

/// Shows: D9
async fn code_that_controls_by_the_engine_is_refused(store: TestStore) {
    assert_refused(&reported(&store, |engine| async move { engine.pause(Scope::All).await }).await);
    assert!(store.pauses().await.unwrap().is_empty());
}

/// Shows: D9
async fn code_that_runs_the_engine_is_refused(store: TestStore) {
    assert_refused(&reported(&store, |engine| async move { engine.run_until_idle().await }).await);
}

/// Shows: D1, D9
async fn a_step_may_call_the_engine(store: TestStore) {
    let other = store.engine().await;
    let engine = engine(&store, move |_, context| {
        let other = other.clone();
        async move {
            let step =
                context.step("submit", move || async move { Ok(other.submit_task(plain("other")).await?.id().0) });
            Ok(step.await?.to_string())
        }
    })
    .await;
    let task = start(&engine).await;
    let submitted = TaskId(finish(&engine, task).await.unwrap().parse().unwrap());
    assert_eq!(state(&store, submitted).await, TaskState::Waiting);
}
