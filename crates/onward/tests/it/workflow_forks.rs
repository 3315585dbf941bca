//! Runs that begin with the results of another run, on every store.

use onward::TaskId;
use onward::workflow::template::TemplateFile;
use onward::workflow::{RunPhase, StepState};
use serde_json::json;

use crate::fixture::TestStore;
use crate::workflow_runs::{engine, result, run, states};

on_every_store! {
    a_fork_repeats_no_step_before_the_one_that_it_begins_with,
    a_result_that_the_history_does_not_keep_is_read_with_the_task_of_the_forked_run,
    the_items_of_a_batch_are_taken_over,
    steps_that_were_taken_over_are_not_undone,
    a_choice_that_was_taken_over_still_chooses,
    a_fork_by_another_template_runs_the_steps_that_are_new,
    a_run_that_is_under_way_is_not_forked,
}

async fn fork(engine: &onward::Engine, run: TaskId, step: &str) -> TaskId {
    let fork = engine.fork_run(run, [step]).await.unwrap();
    engine.run_until_idle().await.unwrap();
    fork.id
}

/// Shows: W7
async fn a_fork_repeats_no_step_before_the_one_that_it_begins_with(store: TestStore) {
    let text = "steps:
  one: {task: double, with: '${{ input }}'}
  two: {task: double, with: '${{ steps.one.result }}', depends_on: [one]}
  three: {task: echo, with: '${{ steps.two.result + 1 }}', depends_on: [two]}";
    let (engine, seen) = engine(&store, text).await;
    let first = run(&engine, &json!(3)).await;
    let second = fork(&engine, first, "two").await;
    assert_eq!(
        (result(&store, second).await, seen.kinds()),
        (json!(13), ["double", "double", "echo", "double", "echo"].map(str::to_owned).to_vec())
    );
    let view = engine.run_view(second).await.unwrap();
    assert_eq!(view.step("one").unwrap().reason.as_deref(), Some("taken over from the run that was forked"));
}

/// Shows: W7
async fn a_result_that_the_history_does_not_keep_is_read_with_the_task_of_the_forked_run(store: TestStore) {
    let text = "steps:
  one: {task: large, with: 1}
  two: {value: '${{ size(steps.one.result) }}', depends_on: [one]}";
    let (engine, seen) = engine(&store, text).await;
    let first = run(&engine, &json!(null)).await;
    let second = fork(&engine, first, "two").await;
    assert_eq!((result(&store, second).await, seen.kinds().len()), (json!(100_000), 1));
    assert!(!engine.compare_runs(first, second).await.unwrap().steps.iter().any(|step| step.differs));
}

/// Shows: W7
async fn the_items_of_a_batch_are_taken_over(store: TestStore) {
    let text = "steps:
  all: {task: double, each: input, with: '${{ item }}'}
  sum: {value: '${{ [steps.all.result, steps.all.count] }}', depends_on: [all]}";
    let (engine, seen) = engine(&store, text).await;
    let first = run(&engine, &json!([1, 2])).await;
    let second = fork(&engine, first, "sum").await;
    assert_eq!((result(&store, second).await, seen.kinds().len()), (json!([[2, 4], 2]), 2));
}

/// Shows: W5, W7
async fn steps_that_were_taken_over_are_not_undone(store: TestStore) {
    let text = "on_failure: undo
steps:
  one: {task: echo, with: 1, undo: {task: undo, with: one}}
  two: {task: echo, with: 2, depends_on: [one], undo: {task: undo, with: two}}
  three: {task: fail, with: 3, depends_on: [two]}";
    let (engine, seen) = engine(&store, text).await;
    let first = run(&engine, &json!(null)).await;
    assert_eq!(seen.kinds().iter().filter(|kind| *kind == "undo").count(), 2);
    let second = fork(&engine, first, "two").await;
    assert_eq!(engine.run_view(second).await.unwrap().phase, RunPhase::Failed);
    assert_eq!(seen.kinds().iter().filter(|kind| *kind == "undo").count(), 3);
}

/// Shows: W3, W7
async fn a_choice_that_was_taken_over_still_chooses(store: TestStore) {
    let text = "steps:
  pick: {task: echo, with: left, chooses: [left, right]}
  left: {task: echo, with: 1}
  right: {task: echo, with: 2}
  end: {value: '${{ [steps.left.state, steps.right.state] }}', depends_on: [left, right]}";
    let (engine, seen) = engine(&store, text).await;
    let first = run(&engine, &json!(null)).await;
    let second = fork(&engine, first, "left").await;
    assert_eq!((result(&store, second).await, seen.kinds().len()), (json!(["completed", "skipped"]), 3));
}

/// Shows: W7
async fn a_fork_by_another_template_runs_the_steps_that_are_new(store: TestStore) {
    let (engine, seen) =
        engine(&store, "steps: {one: {task: echo, with: 1}, two: {task: fail, with: 2, depends_on: [one]}}").await;
    let first = run(&engine, &json!(null)).await;
    let edited = "steps: {one: {task: echo, with: 1}, new: {task: echo, with: 5}, two: {task: echo, with: '${{ steps.new.result + steps.one.result }}', depends_on: [one, new]}}";
    engine.add_workflow(TemplateFile::read("test.yaml", edited).unwrap());
    let second = engine.start_run("test").from_run(first, ["two"]).await.unwrap().id;
    engine.run_until_idle().await.unwrap();
    assert_eq!((result(&store, second).await, seen.kinds().len()), (json!(6), 4));
    assert_eq!(states(&engine, second).await["one"], StepState::Completed);
}

/// Shows: W7
async fn a_run_that_is_under_way_is_not_forked(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {one: {signal: go}}").await;
    let first = run(&engine, &json!(null)).await;
    let error = engine.fork_run(first, ["one"]).await.unwrap_err().to_string();
    assert!(error.contains("is running") && error.contains("onward workflow cancel"), "{error}");
    assert!(engine.fork_run(first, ["two"]).await.is_err());
}
