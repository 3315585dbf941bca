//! Runs below a run, and errors of its steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onward::workflow::template::TemplateFile;
use onward::workflow::{RunAction, RunPhase, StepState};
use onward::{Engine, Failure, StoreReads, TaskFilter, TaskId, TaskState};
use serde_json::{Value, json};

use crate::fixture::{SECOND, TestStore, record};
use crate::workflow_runs::{engine, result, run, states};

on_every_store! {
    a_run_below_is_tried_again_until_it_completes,
    a_run_below_that_takes_longer_than_its_step_allows_fails,
    no_attempt_starts_behind_the_deadline_of_a_step,
    a_run_below_is_undone_by_its_own_template,
    a_run_below_that_has_nothing_to_undo_is_undone_at_once,
    a_failed_undo_of_a_run_below_waits_for_a_person,
    an_environment_that_a_run_below_does_not_have_is_refused_at_the_start,
    the_steps_of_an_environment_decide_about_the_runs_below,
    an_error_of_an_expression_has_its_place_in_the_file,
    an_action_on_the_ended_run_of_a_step_names_the_run_above,
}

fn add(engine: &Engine, name: &str, text: &str) {
    engine.add_workflow(TemplateFile::read(&format!("{name}.yaml"), text).unwrap());
}

/// Returns the runs of a template, the oldest first.
async fn runs_of(store: &TestStore, name: &str) -> Vec<TaskId> {
    let filter = TaskFilter { kind: Some(format!("run:{name}").parse().unwrap()), ..TaskFilter::default() };
    let mut found: Vec<TaskId> =
        store.shared().tasks(filter, Default::default()).await.unwrap().tasks.iter().map(|task| task.id).collect();
    found.reverse();
    found
}

/// Shows: W5
async fn a_run_below_is_tried_again_until_it_completes(store: TestStore) {
    let template = "steps: {below: {workflow: flaky, with: 1, retry: {attempts: 3, backoff: constant, first: 10s}}}";
    let (engine, _) = engine(&store, template).await;
    add(&engine, "flaky", "steps: {a: {task: flaky}}");
    let tries = Arc::new(AtomicU32::new(0));
    engine.handle("flaky", move |_| {
        let tried = tries.fetch_add(1, Ordering::Relaxed);
        async move { if tried == 0 { Err(Failure::permanent("not yet")) } else { Ok("7") } }
    });
    let run = run(&engine, &Value::Null).await;
    assert_eq!(states(&engine, run).await["below"], StepState::Open);
    store.clock.advance(11 * SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(7));
    assert_eq!(runs_of(&store, "flaky").await.len(), 2);
}

/// Shows: W5
async fn a_run_below_that_takes_longer_than_its_step_allows_fails(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {below: {workflow: slow, timeout: 10s}}").await;
    add(&engine, "slow", "steps: {a: {wait: 1h}}");
    let run = run(&engine, &Value::Null).await;
    store.clock.advance(11 * SECOND);
    engine.run_until_idle().await.unwrap();
    let view = engine.run_view(run).await.unwrap();
    assert_eq!(view.phase, RunPhase::Failed);
    assert!(view.step("below").unwrap().reason.as_deref().unwrap().contains("`timeout` of its step"), "{view:?}");
}

/// Shows: W5
async fn no_attempt_starts_behind_the_deadline_of_a_step(store: TestStore) {
    let retry = "{attempts: 9, backoff: constant, first: 6s}";
    let template = format!("steps: {{below: {{workflow: bad, deadline: 10s, retry: {retry}}}}}");
    let (engine, _) = engine(&store, &template).await;
    add(&engine, "bad", "steps: {a: {task: fail}}");
    let run = run(&engine, &Value::Null).await;
    store.clock.advance(7 * SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(record(&store, run).await.state, TaskState::Failed);
    assert_eq!(runs_of(&store, "bad").await.len(), 2);
}

const BELOW: &str = r"
steps:
  reserve: {task: echo, with: '${{ run.id }}', undo: {task: undo, with: {run: '${{ run.id }}', by: '${{ steps.reserve.result }}'}}}
  mail: {task: echo, with: 2, depends_on: [reserve], undo: {task: undo, with: mailed}}";

const ABOVE: &str = r"
on_failure: undo
steps:
  order: {workflow: order, with: 1}
  ship: {task: fail, depends_on: [order]}";

/// Shows: W5
async fn a_run_below_is_undone_by_its_own_template(store: TestStore) {
    let (engine, seen) = engine(&store, ABOVE).await;
    add(&engine, "order", BELOW);
    let run = run(&engine, &Value::Null).await;
    assert_eq!(record(&store, run).await.state, TaskState::Failed, "{:?}", engine.run_view(run).await);
    let undone = seen.payloads("undo");
    let order = runs_of(&store, "order").await[0];
    assert_eq!(undone, [json!("mailed"), json!({"run": order.0, "by": order.0})]);
    let view = engine.run_view(run).await.unwrap();
    assert_eq!((view.phase, view.step("order").unwrap().undo), (RunPhase::Failed, Some("completed")));
}

/// Shows: W5
async fn a_run_below_that_has_nothing_to_undo_is_undone_at_once(store: TestStore) {
    let (engine, seen) = engine(&store, ABOVE).await;
    add(&engine, "order", "steps: {a: {task: echo, with: 1}}");
    let run = run(&engine, &Value::Null).await;
    assert_eq!(record(&store, run).await.state, TaskState::Failed);
    assert_eq!(seen.kinds(), ["echo", "fail"]);
}

/// Shows: W5, W7
async fn a_failed_undo_of_a_run_below_waits_for_a_person(store: TestStore) {
    let (engine, _) = engine(&store, ABOVE).await;
    add(&engine, "order", "steps: {a: {task: echo, with: 1, undo: {task: fail}}}");
    let run = run(&engine, &Value::Null).await;
    assert_eq!(engine.run_view(run).await.unwrap().phase, RunPhase::Undoing);
    let undo = runs_of(&store, "order").await[1];
    assert_eq!(engine.run_view(undo).await.unwrap().phase, RunPhase::Held);
    engine.act_on_run(undo, RunAction::Resolve { step: "a".into() }, None, None).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(record(&store, run).await.state, TaskState::Failed);
}

/// Shows: W5
async fn an_environment_that_a_run_below_does_not_have_is_refused_at_the_start(store: TestStore) {
    let template = "environments: {test: {vars: {a: 1}}}\nvars: {a: 2}\nsteps: {below: {workflow: plain}}";
    let (engine, _) = engine(&store, template).await;
    add(&engine, "plain", "steps: {a: {value: 1}}");
    let error = engine.start_run("test").environment("test").await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("`plain`"), "{error}");
    assert!(engine.tasks().count().await.unwrap() == 0);
}

/// Shows: W5
async fn the_steps_of_an_environment_decide_about_the_runs_below(store: TestStore) {
    let template =
        "environments: {test: {steps: {below: {workflow: other}}}}\nsteps: {below: {workflow: missing, with: 1}}";
    let (engine, _) = engine(&store, template).await;
    add(&engine, "other", "environments: {test: {vars: {a: 1}}}\nvars: {a: 2}\nsteps: {a: {value: '${{ vars.a }}'}}");
    let run = engine.start_run("test").environment("test").await.unwrap().id;
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(1));
}

/// Shows: W1
async fn an_error_of_an_expression_has_its_place_in_the_file(store: TestStore) {
    let template = "steps:\n  mail:\n    task: echo\n    with:\n      to: ${{ input.adress }}\n";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &json!({"address": "a@b.c", "amount": 3})).await;
    let reason = engine.run_view(run).await.unwrap().step("mail").unwrap().reason.clone().unwrap();
    assert!(reason.contains("no field `adress`") && reason.ends_with("In with.to, test.yaml:5:11"), "{reason}");
}

/// Shows: W7
async fn an_action_on_the_ended_run_of_a_step_names_the_run_above(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {below: {workflow: bad}}").await;
    add(&engine, "bad", "steps: {a: {task: fail}}");
    let run = run(&engine, &Value::Null).await;
    let below = runs_of(&store, "bad").await[0];
    let error = engine.act_on_run(below, RunAction::Retry { steps: vec![] }, None, None).await.unwrap_err();
    assert!(error.to_string().contains(&format!("onward workflow retry {run}")), "{error}");
}
