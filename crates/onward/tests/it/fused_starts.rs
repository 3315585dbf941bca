//! Starts that are written with their claim, and the cases in which only the start is written.

use std::sync::{Arc, Mutex};

use onward::orchestration::{OrchestrationContext, OrchestrationOptions};
use onward::{Engine, TaskFilter, TaskId, TaskState};
use onward_store::{
    Name, OnDuplicate, Outcome, Scope, Store, StoreDecorator, StoreFuture, StoreReads, Tags, UniqueKey, Write,
};

use crate::fixture::{HOUR, SECOND, TestStore, start as run_engine, stop, task};

on_every_store! {
    a_start_shares_its_commit_with_the_claim,
    a_start_in_a_paused_kind_waits_until_it_is_resumed,
    a_start_in_the_queue_of_another_engine_is_written_alone,
    a_start_with_a_taken_key_finds_the_one_that_has_it,
    a_refused_start_leaves_the_others_of_its_commit,
    a_start_whose_commit_did_not_happen_reports_the_error_and_leaves_nothing,
    a_start_whose_reply_is_lost_runs_once,
    a_start_while_the_engine_stops_is_written,
}

/// The fate of the next start that is written with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    FailedBefore,
    FailedAfter,
}

/// A store that counts the starts that were written with a claim, and fails one of them.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn Store>,
    next: Mutex<Fate>,
    with_claim: Mutex<u64>,
}

impl Watched {
    fn of(store: &TestStore, next: Fate) -> Arc<Self> {
        Arc::new(Self { inner: store.shared(), next: Mutex::new(next), with_claim: Mutex::default() })
    }

    fn with_claim(&self) -> u64 {
        *self.with_claim.lock().unwrap()
    }
}

impl StoreDecorator for Watched {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(async move {
            let starts = writes.iter().filter(|write| matches!(write, Write::Submit(_))).count() as u64;
            let claims = writes.iter().any(|write| matches!(write, Write::Claim(_)));
            if starts == 0 || !claims {
                return self.inner.apply(writes).await;
            }
            let failed = || onward_store::Error::busy("another process has the store");
            let fate = std::mem::replace(&mut *self.next.lock().unwrap(), Fate::Written);
            match fate {
                Fate::FailedBefore => Err(failed()),
                Fate::FailedAfter => {
                    self.inner.apply(writes).await?;
                    Err(failed())
                }
                Fate::Written => {
                    *self.with_claim.lock().unwrap() += starts;
                    self.inner.apply(writes).await
                }
            }
        })
    }
}

const KIND: &str = "count";

/// Returns an engine that has a session and waits for work.
async fn engine_on(store: &TestStore, watched: &Arc<Watched>) -> (Engine, tokio::task::JoinHandle<()>) {
    let engine = store.builder().store(watched.clone()).queues(["default"]).lease(SECOND * 10).open().await.unwrap();
    let code = |_: serde_json::Value, _: OrchestrationContext| async { Ok(serde_json::json!(1)) };
    engine.orchestrate_json(KIND, OrchestrationOptions::default(), code);
    let run = run_engine(&engine);
    store.settled().await;
    (engine, run)
}

fn orchestration() -> onward::NewTask {
    let mut new = task(KIND);
    new.orchestration = true;
    new.payload = "null".into();
    new
}

async fn begin(engine: &Engine) -> onward::Result<TaskId> {
    Ok(engine.submit_task(orchestration()).await?.id())
}

async fn assert_completes(store: &TestStore, task: TaskId) {
    for _ in 0..100 {
        if store.task(task).await.unwrap().unwrap().state == TaskState::Completed {
            return;
        }
        store.advance(SECOND).await;
    }
    panic!("it has not completed: {:?}", store.task(task).await.unwrap());
}

/// Stops an engine, also if it waits to try a call again.
async fn end(store: &TestStore, engine: &Engine, run: tokio::task::JoinHandle<()>) {
    engine.stop();
    store.advance_until(SECOND, run).await;
}

/// Shows: D11
async fn a_start_shares_its_commit_with_the_claim(store: TestStore) {
    let watched = Watched::of(&store, Fate::Written);
    let (engine, run) = engine_on(&store, &watched).await;
    let task = begin(&engine).await.unwrap();
    engine.wait(task).await.unwrap();
    assert_eq!(watched.with_claim(), 1);
    stop(&engine, run).await;
}

/// Shows: D11
async fn a_start_in_a_paused_kind_waits_until_it_is_resumed(store: TestStore) {
    let watched = Watched::of(&store, Fate::Written);
    let (engine, run) = engine_on(&store, &watched).await;
    let scope = Scope::Kind(Name::new(KIND).unwrap());
    engine.pause(scope.clone()).await.unwrap();
    let task = begin(&engine).await.unwrap();
    store.settled().await;
    assert_eq!(store.task(task).await.unwrap().unwrap().state, TaskState::Waiting);
    engine.resume(scope).await.unwrap();
    assert_completes(&store, task).await;
    stop(&engine, run).await;
}

/// Shows: D11
async fn a_start_in_the_queue_of_another_engine_is_written_alone(store: TestStore) {
    let watched = Watched::of(&store, Fate::Written);
    let (engine, run) = engine_on(&store, &watched).await;
    let mut new = orchestration();
    new.queue = Name::new("other").unwrap();
    let task = engine.submit_task(new).await.unwrap().id();
    assert_eq!((watched.with_claim(), store.task(task).await.unwrap().unwrap().state), (0, TaskState::Waiting));
    stop(&engine, run).await;
}

/// Shows: D11
async fn a_start_with_a_taken_key_finds_the_one_that_has_it(store: TestStore) {
    let watched = Watched::of(&store, Fate::Written);
    let (engine, run) = engine_on(&store, &watched).await;
    let mut new = orchestration();
    new.unique = Some(UniqueKey { key: "42".into(), on_duplicate: OnDuplicate::Skip, keep_for: HOUR });
    let first = engine.submit_task(new.clone()).await.unwrap();
    engine.wait(first.id()).await.unwrap();
    let second = engine.submit_task(new).await.unwrap();
    assert_eq!((second.id(), second.is_new()), (first.id(), false));
    stop(&engine, run).await;
}

/// Shows: D11
async fn a_refused_start_leaves_the_others_of_its_commit(store: TestStore) {
    let watched = Watched::of(&store, Fate::Written);
    let (engine, run) = engine_on(&store, &watched).await;
    let mut bad = orchestration();
    bad.tags = (0..=onward_store::bounds::TAGS).map(|tag| (format!("tag{tag}"), "x")).collect::<Tags>();
    let (bad, good) = tokio::join!(engine.submit_task(bad), begin(&engine));
    assert!(bad.unwrap_err().is_invalid());
    assert_eq!(watched.with_claim(), 2);
    assert_completes(&store, good.unwrap()).await;
    stop(&engine, run).await;
}

/// Shows: D11
async fn a_start_whose_commit_did_not_happen_reports_the_error_and_leaves_nothing(store: TestStore) {
    let watched = Watched::of(&store, Fate::FailedBefore);
    let (engine, run) = engine_on(&store, &watched).await;
    assert!(begin(&engine).await.is_err());
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 0);
    let task = begin(&engine).await.unwrap();
    assert_completes(&store, task).await;
    end(&store, &engine, run).await;
}

/// Shows: D11
async fn a_start_whose_reply_is_lost_runs_once(store: TestStore) {
    let watched = Watched::of(&store, Fate::FailedAfter);
    let (engine, run) = engine_on(&store, &watched).await;
    assert!(begin(&engine).await.is_err());
    assert_completes(&store, TaskId(1)).await;
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 1);
    end(&store, &engine, run).await;
}

/// Shows: D11
async fn a_start_while_the_engine_stops_is_written(store: TestStore) {
    let watched = Watched::of(&store, Fate::Written);
    let (engine, run) = engine_on(&store, &watched).await;
    engine.stop();
    let (task, stopped) = tokio::join!(begin(&engine), run);
    stopped.unwrap();
    let state = store.task(task.unwrap()).await.unwrap().unwrap().state;
    assert!(matches!(state, TaskState::Waiting | TaskState::Completed), "{state}");
}
