//! Numbers that JSON does not have. The call rejects them with the path of the field, before
//! anything is stored.

use onward::orchestration::{HistoryEvent, OrchestrationContext};
use onward::{Context, Failure, Output, Task, TaskFilter, TaskState};
use onward_store::StoreReads;
use serde::{Deserialize, Serialize};

use crate::fixture::{TestStore, error, state};
use crate::orchestrations::{Work, engine, finish, start};

on_every_store! {
    a_payload_with_a_number_that_json_lacks_is_refused,
    a_result_with_a_number_that_json_lacks_is_a_failure,
    a_checkpoint_with_a_number_that_json_lacks_is_refused,
    an_event_with_a_number_that_json_lacks_is_refused,
    an_update_with_a_number_that_json_lacks_is_refused,
    a_step_with_a_number_that_json_lacks_has_failed,
    what_an_orchestration_shows_has_the_numbers_of_json,
    an_activity_with_a_number_that_json_lacks_is_refused,
    an_orchestration_continues_as_new_with_the_numbers_of_json,
    the_result_of_an_orchestration_has_the_numbers_of_json,
    an_answer_with_a_number_that_json_lacks_is_refused,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Measured {
    place: Option<String>,
    values: Vec<f64>,
}

impl Task for Measured {
    const KIND: &'static str = "measured";
    type Output = Measured;
}

fn broken() -> Measured {
    Measured { place: None, values: vec![1.0, f64::NAN] }
}

fn assert_named(reported: &str) {
    assert!(reported.contains("`values[1]` is NaN, and JSON has no such number"), "{reported}");
}

/// Shows: T1
async fn a_payload_with_a_number_that_json_lacks_is_refused(store: TestStore) {
    let engine = store.engine().await;
    let refused = engine.submit(broken()).await.unwrap_err();
    assert!(refused.is_invalid());
    assert_named(&refused.to_string());
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 0);
}

/// Shows: T1
async fn a_result_with_a_number_that_json_lacks_is_a_failure(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|_: Measured, _| async { Ok(broken()) });
    engine.handle("by-hand", |_| async { Output::json(&broken()) });
    let typed = engine.submit(Measured::default()).await.unwrap().id();
    let by_hand = crate::fixture::submit(&engine, "by-hand").await;
    engine.run_until_idle().await.unwrap();
    for task in [typed, by_hand] {
        assert_eq!(state(&store, task).await, TaskState::Failed);
        assert_named(&error(&store, task).await);
    }
}

/// Shows: T1
async fn a_checkpoint_with_a_number_that_json_lacks_is_refused(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("copy", |context: Context| async move { Ok(context.checkpoint(&broken()).await?) });
    let task = crate::fixture::submit(&engine, "copy").await;
    engine.run_until_idle().await.unwrap();
    assert_named(&error(&store, task).await);
}

async fn listening(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    context.on_query("measured", |(): ()| Ok(broken()));
    context.event::<Measured>("measured")?.await?;
    Ok(String::new())
}

/// Shows: D3
async fn an_event_with_a_number_that_json_lacks_is_refused(store: TestStore) {
    let engine = engine(&store, listening).await;
    let task = start(&engine).await;
    assert_named(&engine.signal(task, "measured", &broken()).await.unwrap_err().to_string());
    assert_eq!(store.instance(task).await.unwrap().unwrap().received, 0);
}

/// Shows: D3
async fn an_update_with_a_number_that_json_lacks_is_refused(store: TestStore) {
    let engine = engine(&store, listening).await;
    let task = start(&engine).await;
    assert_named(&engine.update::<_, ()>(task, "measured", &broken()).await.unwrap_err().to_string());
    assert_eq!(store.instance(task).await.unwrap().unwrap().received, 0);
}

/// Shows: D1
async fn a_step_with_a_number_that_json_lacks_has_failed(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let failed = context.step("measure", || async { Ok(broken()) }).await.unwrap_err();
        Ok(failed.message().to_owned())
    })
    .await;
    let task = start(&engine).await;
    assert_named(&finish(&engine, task).await.unwrap());
    let history = engine.orchestration_history(task).await.unwrap();
    assert!(history.iter().any(|event| matches!(event, HistoryEvent::StepEnded { .. })));
}

/// Shows: D10
async fn what_an_orchestration_shows_has_the_numbers_of_json(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let status = context.set_status(&broken()).unwrap_err();
        let value = context.set_value("measured", &broken()).unwrap_err();
        Ok(format!("{status}\n{value}"))
    })
    .await;
    let task = start(&engine).await;
    let reported = finish(&engine, task).await.unwrap();
    reported.lines().for_each(assert_named);
    let record = store.instance(task).await.unwrap().unwrap();
    assert!(record.status.is_none() && record.values.is_empty());
}

/// Shows: D2
async fn an_activity_with_a_number_that_json_lacks_is_refused(store: TestStore) {
    let engine =
        engine(&store, |_, context| async move { Ok(context.activity(broken()).await.unwrap_err().to_string()) }).await;
    let task = start(&engine).await;
    assert_named(&finish(&engine, task).await.unwrap());
}

/// Shows: D8
async fn an_orchestration_continues_as_new_with_the_numbers_of_json(store: TestStore) {
    let engine = engine(&store, |_, context| async move { Err(context.continue_as_new(&broken())) }).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Failed);
    assert_named(&error(&store, task).await);
}

#[derive(Serialize, Deserialize)]
struct Survey;

impl Task for Survey {
    const KIND: &'static str = "survey";
    const ORCHESTRATION: bool = true;
    type Output = Measured;
}

/// Shows: D1
async fn the_result_of_an_orchestration_has_the_numbers_of_json(store: TestStore) {
    let engine = store.engine().await;
    engine.orchestrate(|_: Survey, _| async { Ok(broken()) });
    let task = engine.submit(Survey).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Failed);
    assert_named(&error(&store, task).await);
}

/// Shows: D10
async fn an_answer_with_a_number_that_json_lacks_is_refused(store: TestStore) {
    let engine = engine(&store, listening).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    assert_named(&engine.query::<_, Measured>(task, "measured", &()).await.unwrap_err().to_string());
}
