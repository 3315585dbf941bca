//! The reasons why orchestrations wait, as engines and their code come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward::orchestration::{OrchestrationContext, OrchestrationOptions};
use onward::task::WaitReason;
use onward::{Engine, Failure, TaskId, TaskState};
use onward_store::{NewTask, Outcome, Store, StoreDecorator, StoreFuture, Write};
use tokio::task::JoinHandle;

use crate::fixture::{SECOND, TestStore, start as start_run, state, stop};
use crate::orchestrations::{Work, engine, start};

on_every_store! {
    a_live_orchestration_waits_for_its_event_alone,
    a_paused_orchestration_waits_for_nothing_that_has_come,
    an_orchestration_whose_code_is_missing_says_so_first,
    an_engine_for_every_kind_leaves_orchestrations_to_those_that_have_their_code,
    many_orchestrations_of_others_cost_an_idle_engine_no_write,
}

/// Waits for an event.
async fn until_ordered(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    context.event::<String>("go")?.await
}

async fn parked(store: &TestStore) -> (Engine, JoinHandle<()>, TaskId) {
    let engine = engine(store, until_ordered).await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    store.settled().await;
    (engine, run, task)
}

fn awaited() -> WaitReason {
    WaitReason::Parked { until: None, events: vec!["go".parse().unwrap()], tasks: Vec::new() }
}

/// Shows: B6, D10
async fn a_live_orchestration_waits_for_its_event_alone(store: TestStore) {
    let (engine, run, task) = parked(&store).await;
    assert_eq!(engine.why(task).await.unwrap(), [awaited()]);
    assert_eq!(engine.serving(task).await.unwrap().len(), 1);
    stop(&engine, run).await;
    assert_eq!(engine.why(task).await.unwrap(), [awaited(), WaitReason::NoWorker]);
}

/// Shows: B6, D8
async fn a_paused_orchestration_waits_for_nothing_that_has_come(store: TestStore) {
    let (engine, run, task) = parked(&store).await;
    let paused = WaitReason::OrchestrationPaused { task };
    engine.pause_orchestration(task).await.unwrap();
    assert_eq!(engine.why(task).await.unwrap(), [paused.clone(), awaited()]);
    engine.signal(task, "go", &"on").await.unwrap();
    assert_eq!(engine.why(task).await.unwrap(), [paused]);
    engine.resume_orchestration(task).await.unwrap();
    assert_eq!(engine.wait(task).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: B6, D5
async fn an_orchestration_whose_code_is_missing_says_so_first(store: TestStore) {
    let first = store.engine().await;
    first.orchestrate_with(OrchestrationOptions::new().version(1), until_ordered);
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let reported = async |engine: &Engine| {
        let run = start_run(engine);
        store.settled().await;
        let reasons = engine.why(task).await.unwrap();
        let served = engine.serving(task).await.unwrap().len();
        stop(engine, run).await;
        (reasons, served)
    };
    let of_tasks = store.engine().await;
    of_tasks.handle_any(|_| async { Ok::<_, Failure>(()) });
    let (reasons, served) = reported(&of_tasks).await;
    assert!(
        matches!(&reasons[..], [WaitReason::NoCode { version: Some(1), versions, .. }, waits] if versions.is_empty() && *waits == awaited()),
        "{reasons:?}"
    );
    assert_eq!(served, 0);
    let newer = store.engine().await;
    newer.orchestrate_with(OrchestrationOptions::new().version(2), until_ordered);
    let (reasons, _) = reported(&newer).await;
    let text = reasons[0].to_string();
    assert!(
        text.contains("version 1 of the orchestration `work` began it") && text.contains("workers have version 2"),
        "{text}"
    );
    let goes_on = store.engine().await;
    goes_on.orchestrate_with(OrchestrationOptions::new().version(3).since(1), until_ordered);
    assert_eq!(reported(&goes_on).await, (vec![awaited()], 1));
}

/// Shows: D9
async fn an_engine_for_every_kind_leaves_orchestrations_to_those_that_have_their_code(store: TestStore) {
    let any = store.engine().await;
    any.handle_any(|_| async { Ok::<_, Failure>(()) });
    let orchestration = any.submit(Work(1)).await.unwrap().id();
    let plain = any.submit_task(NewTask::new("work").unwrap()).await.unwrap().id();
    any.drain().await.unwrap();
    assert_eq!(
        (state(&store, plain).await, state(&store, orchestration).await),
        (TaskState::Completed, TaskState::Waiting)
    );
    let with_code = engine(&store, |_, _| async { Ok("done".to_owned()) }).await;
    with_code.run_until_idle().await.unwrap();
    assert_eq!(state(&store, orchestration).await, TaskState::Completed);
}

/// A store that counts writes.
#[derive(Debug)]
struct Writes {
    inner: Arc<dyn Store>,
    writes: AtomicUsize,
}

impl StoreDecorator for Writes {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.writes.fetch_add(writes.len(), Ordering::Relaxed);
        self.inner.apply(writes)
    }
}

/// Shows: D9
async fn many_orchestrations_of_others_cost_an_idle_engine_no_write(store: TestStore) {
    let counted = Arc::new(Writes { inner: store.shared(), writes: AtomicUsize::new(0) });
    let engine = store.builder().store(counted.clone()).open().await.unwrap();
    engine.handle_any(|_| async { Ok::<_, Failure>(()) });
    let foreign = NewTask { orchestration: true, ..NewTask::new("work").unwrap() };
    engine.submit_all(vec![foreign; 2000]).await.unwrap();
    let run = start_run(&engine);
    store.settled().await;
    let before = counted.writes.load(Ordering::Relaxed);
    for _ in 0..100 {
        store.advance(SECOND).await;
    }
    assert_eq!(counted.writes.load(Ordering::Relaxed), before, "it has nothing to write");
    stop(&engine, run).await;
}
