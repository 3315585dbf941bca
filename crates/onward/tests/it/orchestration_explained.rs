//! Why orchestrations wait, as engines and their code come and go.

use onward::orchestration::{OrchestrationContext, OrchestrationOptions};
use onward::{Engine, Failure, TaskId, TaskState, WaitReason};
use tokio::task::JoinHandle;

use crate::fixture::{TestStore, start as start_run, stop};
use crate::orchestrations::{Work, engine, start};

on_every_store! {
    a_live_orchestration_waits_for_its_event_alone,
    a_paused_orchestration_waits_for_nothing_that_has_come,
    an_orchestration_whose_code_is_missing_says_so_first,
}

/// The code of orchestrations that wait for an event.
async fn until_told(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    context.event::<String>("go")?.await
}

async fn parked(store: &TestStore) -> (Engine, JoinHandle<()>, TaskId) {
    let engine = engine(store, until_told).await;
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
    first.orchestrate_with(OrchestrationOptions::new().version(1), until_told);
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let told = async |engine: &Engine| {
        let run = start_run(engine);
        store.settled().await;
        let reasons = engine.why(task).await.unwrap();
        let served = engine.serving(task).await.unwrap().len();
        stop(engine, run).await;
        (reasons, served)
    };
    let of_tasks = store.engine().await;
    of_tasks.handle_any(|_| async { Ok::<_, Failure>(()) });
    let (reasons, served) = told(&of_tasks).await;
    assert!(
        matches!(&reasons[..], [WaitReason::NoCode { version: Some(1), versions, .. }, waits] if versions.is_empty() && *waits == awaited()),
        "{reasons:?}"
    );
    assert_eq!(served, 0);
    let newer = store.engine().await;
    newer.orchestrate_with(OrchestrationOptions::new().version(2), until_told);
    let (reasons, _) = told(&newer).await;
    let text = reasons[0].to_string();
    assert!(
        text.contains("version 1 of the orchestration `work` began it") && text.contains("workers have version 2"),
        "{text}"
    );
    let goes_on = store.engine().await;
    goes_on.orchestrate_with(OrchestrationOptions::new().version(3).since(1), until_told);
    assert_eq!(told(&goes_on).await, (vec![awaited()], 1));
}
