//! The bounds of runs, on every store.

use onward::workflow::template::TemplateFile;
use onward::workflow::{RunPhase, StepState};
use onward::{Engine, EngineBuilder, TaskState};
use onward_store::StoreReads;
use serde_json::{Value, json};

use crate::fixture::{TestStore, error, state};
use crate::workflow_runs::{engine, run, states};

on_every_store! {
    a_run_beyond_the_bound_of_its_history_is_dead_and_continues_under_a_higher_one,
    the_turn_that_ends_a_run_may_exceed_the_bound_of_its_history,
    a_message_to_a_run_whose_history_is_full_is_refused_to_its_sender,
    refused_signals_fill_the_history_up_to_their_bound_alone,
    signals_beyond_those_that_a_run_keeps_are_refused_to_the_sender,
    large_signals_that_no_step_takes_are_refused_at_a_number_of_bytes,
    a_step_with_too_many_items_fails_before_one_starts,
}

/// Two steps one after the other.
const CHAIN: &str = "
steps:
  one: {task: double, with: 5}
  two: {task: double, with: '${{ steps.one.result }}', depends_on: [one]}";

/// A run that waits for a signal.
const ASKS: &str = "steps: {ask: {signal: decision}}";

async fn limited(store: &TestStore, template: &str, limit: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
    let engine = limit(Engine::builder().store(store.shared())).open().await.unwrap();
    engine.add_workflow(TemplateFile::read("test.yaml", template).unwrap());
    engine.handle("double", |context: onward::Context| {
        let number: i64 = serde_json::from_slice(context.payload()).unwrap();
        async move { Ok((number * 2).to_string()) }
    });
    engine
}

/// Shows: W7
async fn a_run_beyond_the_bound_of_its_history_is_dead_and_continues_under_a_higher_one(store: TestStore) {
    let narrow = limited(&store, CHAIN, |builder| builder.run_history_events(4)).await;
    let run = run(&narrow, &Value::Null).await;
    assert_eq!(state(&store, run).await, TaskState::Dead);
    let said = error(&store, run).await;
    assert!(said.contains("may have 4 and") && said.contains("run_history_events"), "{said}");
    assert!(store.instance(run).await.unwrap().unwrap_or_default().length <= 4);
    drop(narrow);
    let wide = limited(&store, CHAIN, |builder| builder).await;
    wide.retry(run).await.unwrap();
    wide.run_until_idle().await.unwrap();
    assert_eq!(crate::workflow_runs::result(&store, run).await, json!(20));
}

/// Shows: W7
async fn the_turn_that_ends_a_run_may_exceed_the_bound_of_its_history(store: TestStore) {
    let template = "steps: {one: {value: 1}, two: {value: 2, depends_on: [one]}}";
    let engine = limited(&store, template, |builder| builder.run_history_bytes(1)).await;
    let run = run(&engine, &Value::Null).await;
    assert_eq!(state(&store, run).await, TaskState::Completed);
}

/// Shows: W7
async fn a_message_to_a_run_whose_history_is_full_is_refused_to_its_sender(store: TestStore) {
    let engine = limited(&store, ASKS, |builder| builder).await;
    let run = run(&engine, &Value::Null).await;
    let length = store.instance(run).await.unwrap().unwrap().length;
    drop(engine);
    let full = limited(&store, ASKS, |builder| builder.run_history_events(length)).await;
    let refused = full.signal_run(run, "decision", &json!(1)).await.unwrap_err();
    assert!(refused.is_invalid() && refused.to_string().contains("fork"), "{refused}");
    let skip = onward::workflow::RunAction::Skip { step: "ask".to_owned() };
    assert!(full.act_on_run(run, skip, None, None).await.unwrap_err().is_invalid());
    assert_eq!(store.instance(run).await.unwrap().unwrap().received, 0);
}

/// Shows: W7
async fn refused_signals_fill_the_history_up_to_their_bound_alone(store: TestStore) {
    let (engine, _) = engine(&store, ASKS).await;
    let run = run(&engine, &Value::Null).await;
    for _ in 0..1010 {
        engine.signal(run, "unknown", &json!(null)).await.unwrap();
    }
    engine.run_until_idle().await.unwrap();
    let mut history = engine.run_history(run).await.unwrap();
    let mut refused = 0;
    loop {
        let entries = history.next().await.unwrap();
        if entries.is_empty() {
            break;
        }
        refused += entries.iter().filter(|entry| entry.event == "refused").count();
    }
    assert_eq!(refused, 1000);
    engine.signal_run(run, "decision", &json!("yes")).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(crate::workflow_runs::result(&store, run).await, json!("yes"));
}

/// Shows: W5
async fn signals_beyond_those_that_a_run_keeps_are_refused_to_the_sender(store: TestStore) {
    let template = "steps: {pause: {wait: 1h}, ask: {signal: decision, depends_on: [pause]}}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    for number in 0..1000 {
        engine.signal(run, "decision", &json!(number)).await.unwrap();
    }
    engine.run_until_idle().await.unwrap();
    let refused = engine.signal_run(run, "decision", &json!(1000)).await.unwrap_err().to_string();
    assert!(refused.contains("keeps 1000 signals"), "{refused}");
}

/// Shows: W5
async fn large_signals_that_no_step_takes_are_refused_at_a_number_of_bytes(store: TestStore) {
    let template = "steps: {pause: {wait: 1h}, ask: {signal: decision, depends_on: [pause]}}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    let large = json!("x".repeat(1_000_000));
    for _ in 0..17 {
        engine.signal_run(run, "decision", &large).await.unwrap();
        engine.run_until_idle().await.unwrap();
    }
    let refused = engine.signal_run(run, "decision", &json!(1)).await.unwrap_err().to_string();
    assert!(refused.contains("17000034 bytes") && refused.contains("16777216"), "{refused}");
}

/// Shows: W4
async fn a_step_with_too_many_items_fails_before_one_starts(store: TestStore) {
    let template = "steps: {all: {task: double, each: {from: 0, to: 100001, by: 1}, with: 1}}";
    let (engine, seen) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    assert_eq!(states(&engine, run).await["all"], StepState::Failed);
    let view = engine.run_view(run).await.unwrap();
    assert_eq!((view.phase, seen.kinds().len()), (RunPhase::Failed, 0));
    let said = error(&store, run).await;
    assert!(said.contains("100001 items") && said.contains("at most 100000"), "{said}");
}
