//! Runs of workflows on the engine: steps are tasks, and each arrival is one turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::workflow::template::TemplateFile;
use onward::workflow::{RunAction, RunPhase, RunQuery, RunView, StepState};
use onward::{Context, Engine, Failure, TaskId, TaskState};
use serde_json::{Value, json};

use crate::fixture::{HOUR, SECOND, TestStore, record, start, stop};

on_every_store! {
    a_chain_passes_results_on_and_returns_the_last,
    branches_run_at_once_and_join,
    a_step_whose_condition_is_false_is_skipped,
    a_failure_leaves_what_is_behind_it_unreached,
    a_run_continues_in_another_engine_where_it_stopped,
    an_engine_without_the_template_reads_it_from_the_store,
    a_wait_ends_when_its_time_has_come,
    a_signal_that_came_early_is_kept,
    a_choice_runs_the_chosen_step_alone,
    a_batch_works_through_its_items_in_order_of_the_results,
    a_run_below_is_a_child_and_its_result_that_of_the_step,
    an_orchestration_is_a_step,
    a_failed_saga_is_undone_in_reverse_order,
    a_cancelled_run_cancels_what_is_open,
    a_retried_run_repeats_no_completed_step,
    a_second_start_with_the_key_finds_the_run,
    a_start_with_input_that_does_not_fit_writes_nothing,
    a_result_that_the_history_does_not_keep_is_read_with_its_task,
    a_run_that_takes_too_long_fails_and_cancels_what_runs,
    a_stored_template_is_started_by_its_name,
    a_workflow_that_runs_itself_ends_at_the_bound,
    the_input_of_a_run_below_is_checked_and_gets_its_defaults,
    a_step_that_was_withdrawn_before_it_started_is_not_undone,
    a_step_that_runs_goes_on_while_the_run_stops,
    a_run_that_was_cancelled_before_its_first_turn_is_retried_as_a_whole,
    runs_are_listed_in_pages_the_newest_first,
    the_history_of_a_run_has_its_events_in_order,
}

/// The payloads that handlers got, by kind, in the order of their starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(String, Value)>>>);

impl Seen {
    fn add(&self, kind: &str, payload: Value) {
        self.0.lock().unwrap().push((kind.to_owned(), payload));
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(kind, _)| kind.clone()).collect()
    }

    /// Returns the payloads of a kind, in order.
    pub(crate) fn payloads(&self, kind: &str) -> Vec<Value> {
        self.0.lock().unwrap().iter().filter(|(seen, _)| seen == kind).map(|(_, payload)| payload.clone()).collect()
    }

    pub(crate) fn payload(&self, kind: &str) -> Value {
        self.0.lock().unwrap().iter().find(|(seen, _)| seen == kind).unwrap().1.clone()
    }
}

/// Opens an engine with a template. Its handlers record what they get: `double` doubles its
/// payload, `echo` returns it, `fail` fails, and `large` returns more than a history keeps.
pub(crate) async fn engine(store: &TestStore, template: &str) -> (Engine, Seen) {
    let engine = Engine::builder().store(store.shared()).open().await.unwrap();
    engine.add_workflow(TemplateFile::read("test.yaml", template).unwrap());
    let seen = Seen::default();
    for kind in ["double", "echo", "fail", "large", "undo"] {
        let seen = seen.clone();
        engine.handle(kind, move |context: Context| {
            let payload: Value = serde_json::from_slice(context.payload()).unwrap();
            seen.add(kind, payload.clone());
            async move {
                match kind {
                    "double" => Ok(json!(payload.as_i64().unwrap() * 2).to_string()),
                    "fail" => Err(Failure::permanent("no such account")),
                    "large" => Ok(json!("x".repeat(100_000)).to_string()),
                    _ => Ok(payload.to_string()),
                }
            }
        });
    }
    (engine, seen)
}

/// Starts a run and works until nothing is due.
pub(crate) async fn run(engine: &Engine, input: &Value) -> TaskId {
    let started = engine.start_run("test").input(input).await.unwrap();
    engine.run_until_idle().await.unwrap();
    started.id
}

pub(crate) async fn result(store: &TestStore, run: TaskId) -> Value {
    let record = record(store, run).await;
    assert_eq!(record.state, TaskState::Completed, "{:?}", record.errors);
    serde_json::from_slice(record.result.bytes().unwrap()).unwrap()
}

pub(crate) async fn states(engine: &Engine, run: TaskId) -> BTreeMap<String, StepState> {
    let view = engine.run_view(run).await.unwrap();
    view.steps.into_iter().map(|step| (step.name, step.state)).collect()
}

pub(crate) fn step(view: &RunView, name: &str) -> StepState {
    view.step(name).unwrap().state
}

/// Shows: W2
async fn a_chain_passes_results_on_and_returns_the_last(store: TestStore) {
    let template = r"
steps:
  one: {task: double, with: '${{ input.number }}'}
  two: {task: double, with: '${{ steps.one.result }}', depends_on: [one]}
  three: {value: {sum: '${{ steps.one.result + steps.two.result }}'}, depends_on: [two]}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &json!({"number": 5})).await;
    assert_eq!(result(&store, run).await, json!({"sum": 30}));
}

/// Shows: W2
async fn branches_run_at_once_and_join(store: TestStore) {
    let template = r"
steps:
  left: {task: double, with: 1}
  right: {task: double, with: 2}
  join: {task: echo, depends_on: [left, right]}";
    let (engine, seen) = engine(&store, template).await;
    run(&engine, &Value::Null).await;
    assert_eq!(seen.payload("echo"), json!({"input": null, "results": {"left": 2, "right": 4}}));
}

/// Shows: W2
async fn a_step_whose_condition_is_false_is_skipped(store: TestStore) {
    let template = r"
steps:
  one: {value: 1}
  two: {task: echo, if: steps.one.result > 1, depends_on: [one]}";
    let (engine, seen) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    assert_eq!((states(&engine, run).await["two"], seen.kinds().len()), (StepState::Skipped, 0));
}

/// Shows: W7
async fn a_failure_leaves_what_is_behind_it_unreached(store: TestStore) {
    let template = r"
steps:
  one: {task: fail}
  two: {task: echo, depends_on: [one]}
  alarm: {task: double, with: 4, depends_on: [{one: failed}]}";
    let (engine, seen) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    let states = states(&engine, run).await;
    assert_eq!(
        (states["one"], states["two"], states["alarm"]),
        (StepState::Failed, StepState::Unreached, StepState::Completed)
    );
    assert_eq!(seen.kinds(), ["fail", "double"]);
    let error = record(&store, run).await.errors.pop().unwrap().message;
    assert!(error.contains("`one`") && error.contains("no such account"), "{error}");
}

/// Shows: W7
async fn a_run_continues_in_another_engine_where_it_stopped(store: TestStore) {
    let template = r"
steps:
  one: {task: double, with: 5}
  pause: {wait: 1h, depends_on: [one]}
  two: {task: double, with: '${{ steps.one.result }}', depends_on: [pause]}";
    let (first, seen) = engine(&store, template).await;
    let run = run(&first, &Value::Null).await;
    drop(first);
    store.clock.advance(HOUR);
    let (second, seen_later) = engine(&store, template).await;
    second.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(20));
    assert_eq!((seen.kinds().len(), seen_later.kinds().len()), (1, 1));
}

/// Shows: W1
async fn an_engine_without_the_template_reads_it_from_the_store(store: TestStore) {
    let (first, _) = engine(&store, "steps: {pause: {wait: 1h}, end: {value: 7, depends_on: [pause]}}").await;
    let run = run(&first, &Value::Null).await;
    drop(first);
    store.clock.advance(HOUR);
    let second = Engine::builder().store(store.shared()).runs_workflows().open().await.unwrap();
    second.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(7));
}

/// Shows: W5
async fn a_wait_ends_when_its_time_has_come(store: TestStore) {
    let template = "steps: {pause: {wait: 90s}, end: {value: 1, depends_on: [pause]}}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    store.clock.advance(89 * SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(states(&engine, run).await["pause"], StepState::Waiting);
    store.clock.advance(2 * SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(1));
}

/// Shows: W5
async fn a_signal_that_came_early_is_kept(store: TestStore) {
    let template = r"
steps:
  pause: {wait: 1s}
  approve: {signal: approval, depends_on: [pause]}
  end: {value: '${{ steps.approve.result.by }}', depends_on: [approve]}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    engine.signal(run, "approval", &json!({"by": "Ada"})).await.unwrap();
    engine.run_until_idle().await.unwrap();
    store.clock.advance(2 * SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!("Ada"));
}

/// Shows: W3
async fn a_choice_runs_the_chosen_step_alone(store: TestStore) {
    let template = r#"
steps:
  route: {value: '${{ input.amount < 10 ? "small" : "large" }}', chooses: [small, large]}
  small: {task: double, with: 1}
  large: {task: double, with: 2}
  end: {value: '${{ steps.small.state }} ${{ steps.large.state }}', depends_on: [small, large]}"#;
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &json!({"amount": 7})).await;
    assert_eq!(result(&store, run).await, json!("completed skipped"));
}

/// Shows: W4
async fn a_batch_works_through_its_items_in_order_of_the_results(store: TestStore) {
    let template = r"
steps:
  all: {task: double, each: '${{ input.numbers }}', parallel: 2, with: '${{ item }}'}
  count: {value: {all: '${{ steps.all.result }}', count: '${{ steps.all.count }}'}, depends_on: [all]}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &json!({"numbers": [1, 2, 3, 4, 5]})).await;
    assert_eq!(result(&store, run).await, json!({"all": [2, 4, 6, 8, 10], "count": 5}));
}

/// Shows: W5
async fn a_run_below_is_a_child_and_its_result_that_of_the_step(store: TestStore) {
    let template = "steps: {inner: {workflow: twice, with: {number: '${{ input }}'}}}";
    let (engine, _) = engine(&store, template).await;
    let below = "name: twice\nsteps: {a: {task: double, with: '${{ input.number }}'}}";
    engine.add_workflow(TemplateFile::read("twice.yaml", below).unwrap());
    let run = run(&engine, &json!(21)).await;
    assert_eq!(result(&store, run).await, json!(42));
}

/// Shows: W5, B1
async fn an_orchestration_is_a_step(store: TestStore) {
    let template = "steps: {code: {orchestration: rollout, with: {image: '${{ input }}'}}}";
    let (engine, _) = engine(&store, template).await;
    let options = onward::orchestration::OrchestrationOptions::new();
    engine.orchestrate_json("rollout", options, |payload, context| async move {
        Ok(context.activity_by_name("echo", &payload["image"]).await?)
    });
    let run = run(&engine, &json!("v2")).await;
    assert_eq!(result(&store, run).await, json!("v2"));
}

/// Shows: W5
async fn a_failed_saga_is_undone_in_reverse_order(store: TestStore) {
    let template = r"
on_failure: undo
steps:
  one: {task: echo, with: 1, undo: {task: undo, with: '${{ steps.one.result }}'}}
  two: {task: echo, with: 2, depends_on: [one], undo: {task: undo, with: '${{ steps.two.result }}'}}
  three: {task: fail, depends_on: [two]}";
    let (engine, seen) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    assert_eq!(record(&store, run).await.state, TaskState::Failed);
    assert_eq!(seen.kinds(), ["echo", "echo", "fail", "undo", "undo"]);
    let undone: Vec<Value> = seen.0.lock().unwrap()[3..].iter().map(|(_, payload)| payload.clone()).collect();
    assert_eq!(undone, [json!(2), json!(1)]);
}

/// Shows: W7
async fn a_cancelled_run_cancels_what_is_open(store: TestStore) {
    let template = "steps: {one: {task: elsewhere}, two: {wait: 1d}}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    engine.cancel(run).await.unwrap();
    engine.run_until_idle().await.unwrap();
    let states = states(&engine, run).await;
    assert_eq!((states["one"], states["two"]), (StepState::Cancelled, StepState::Cancelled));
    assert_eq!(record(&store, run).await.state, TaskState::Cancelled);
}

/// Shows: W7
async fn a_retried_run_repeats_no_completed_step(store: TestStore) {
    let template = "steps: {one: {task: echo, with: 1}, two: {task: fail, depends_on: [one]}}";
    let (first, _) = engine(&store, template).await;
    let run = run(&first, &Value::Null).await;
    drop(first);
    let mended = Engine::builder().store(store.shared()).open().await.unwrap();
    mended.add_workflow(TemplateFile::read("test.yaml", template).unwrap());
    mended.handle("fail", |_| async { Ok("2") });
    mended.act_on_run(run, RunAction::Retry { steps: vec![] }, Some("ada"), None).await.unwrap();
    mended.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(2));
}

/// Shows: W6
async fn a_second_start_with_the_key_finds_the_run(store: TestStore) {
    let template = "key: day-${{ input.day }}\nkeep_for: 30d\nsteps: {one: {value: 1}}";
    let (engine, _) = engine(&store, template).await;
    let first = run(&engine, &json!({"day": 1})).await;
    let same = engine.start_run("test").input(&json!({"day": 1})).await.unwrap();
    let other = engine.start_run("test").input(&json!({"day": 1, "page": 2})).await.unwrap();
    assert_eq!((same.id, same.is_new, same.has_other_input), (first, false, false));
    assert_eq!((other.id, other.has_other_input), (first, true));
}

/// Shows: W1
async fn a_start_with_input_that_does_not_fit_writes_nothing(store: TestStore) {
    let template = "input_schema: {type: object, required: [day]}\nsteps: {one: {value: 1}}";
    let (engine, _) = engine(&store, template).await;
    let error = engine.start_run("test").input(&json!({})).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("day"), "{error}");
    assert!(engine.tasks().count().await.unwrap() == 0);
}

/// Shows: W2
async fn a_result_that_the_history_does_not_keep_is_read_with_its_task(store: TestStore) {
    let template = r"
steps:
  one: {task: large}
  two: {value: '${{ size(steps.one.result) }}', depends_on: [one]}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    assert_eq!(result(&store, run).await, json!(100_000));
}

/// Shows: W7
async fn a_run_that_takes_too_long_fails_and_cancels_what_runs(store: TestStore) {
    let template = "timeout: 10s\nsteps: {one: {task: held}}";
    let (engine, _) = engine(&store, template).await;
    let gate = crate::fixture::Gate::new();
    engine.handle("held", gate.stoppable());
    let started = engine.start_run("test").await.unwrap();
    let background = start(&engine);
    gate.entered(1).await;
    store.clock.advance(Duration::from_secs(11));
    engine.wait(started.id).await.unwrap();
    let view = engine.run_view(started.id).await.unwrap();
    assert_eq!((view.phase, step(&view, "one")), (RunPhase::Failed, StepState::Cancelled));
    stop(&engine, background).await;
}

/// Shows: W1
async fn a_stored_template_is_started_by_its_name(store: TestStore) {
    let engine = Engine::builder().store(store.shared()).runs_workflows().open().await.unwrap();
    engine.put_template(&TemplateFile::read("seven.yaml", "steps: {a: {value: 7}}").unwrap()).await.unwrap();
    let run = engine.start_run("seven").await.unwrap().id;
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(7));
}

/// Shows: W5
async fn a_workflow_that_runs_itself_ends_at_the_bound(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {again: {workflow: test, with: 1}}").await;
    run(&engine, &json!(1)).await;
    let runs = engine.tasks().kind("run:test").count().await.unwrap();
    assert_eq!(runs, u64::from(onward::bounds::RUN_DEPTH) + 1);
}

/// Shows: W5
async fn the_input_of_a_run_below_is_checked_and_gets_its_defaults(store: TestStore) {
    let template = "steps: {below: {workflow: add, with: '${{ input }}'}}";
    let (engine, _) = engine(&store, template).await;
    let below = r"
name: add
input_schema: {type: object, required: [a], properties: {a: {type: integer}, b: {type: integer, default: 2}}}
steps: {sum: {value: '${{ input.a + input.b }}'}}";
    engine.add_workflow(TemplateFile::read("add.yaml", below).unwrap());
    let good = run(&engine, &json!({"a": 5})).await;
    assert_eq!(result(&store, good).await, json!(7));
    let bad = run(&engine, &json!({})).await;
    assert_eq!(states(&engine, bad).await["below"], StepState::Failed);
}

/// Shows: W5
async fn a_step_that_was_withdrawn_before_it_started_is_not_undone(store: TestStore) {
    let template = r"
on_failure: undo
steps:
  waits: {task: elsewhere, undo: {task: undo, with: 1}}
  fails: {task: fail}";
    let (engine, seen) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    assert_eq!(record(&store, run).await.state, TaskState::Failed);
    assert_eq!(seen.kinds(), ["fail"]);
}

/// Shows: W7
async fn a_step_that_runs_goes_on_while_the_run_stops(store: TestStore) {
    let template = "steps: {one: {task: held}, two: {task: late}}";
    let (engine, _) = engine(&store, template).await;
    let (one, two) = (crate::fixture::Gate::new(), crate::fixture::Gate::new());
    engine.handle("held", one.stoppable());
    let fails = two.clone();
    engine.handle("late", move |_| {
        let gate = fails.clone();
        async move {
            gate.pass().await;
            Err::<(), _>(Failure::permanent("no"))
        }
    });
    let started = engine.start_run("test").await.unwrap();
    let background = start(&engine);
    one.entered(1).await;
    two.entered(1).await;
    let mut follower = engine.follow_run(started.id).await.unwrap();
    two.open(1);
    while let Some(view) = follower.next().await.unwrap() {
        if view.phase == RunPhase::Stopping {
            break;
        }
    }
    one.open(1);
    engine.wait(started.id).await.unwrap();
    assert_eq!(states(&engine, started.id).await["one"], StepState::Completed);
    stop(&engine, background).await;
}

/// Shows: W7
async fn a_run_that_was_cancelled_before_its_first_turn_is_retried_as_a_whole(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {one: {value: 7}}").await;
    let run = engine.start_run("test").await.unwrap().id;
    engine.cancel(run).await.unwrap();
    let error = engine.act_on_run(run, RunAction::Undo, None, None).await.unwrap_err();
    assert!(error.to_string().contains("possible is retry without steps"), "{error}");
    assert_eq!(engine.run_view(run).await.unwrap().phase, RunPhase::Cancelled);
    engine.act_on_run(run, RunAction::Retry { steps: vec![] }, None, None).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, run).await, json!(7));
}

/// Shows: W7
async fn runs_are_listed_in_pages_the_newest_first(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {one: {signal: go}}").await;
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(run(&engine, &Value::Null).await);
    }
    engine.cancel(started[1]).await.unwrap();
    engine.run_until_idle().await.unwrap();
    let query = RunQuery { phase: Some(RunPhase::Running), limit: 1, ..RunQuery::default() };
    let first = engine.runs(query.clone()).await.unwrap();
    let second = engine.runs(RunQuery { before: first.next, ..query }).await.unwrap();
    let ids: Vec<TaskId> = first.runs.iter().chain(&second.runs).map(|run| run.id).collect();
    assert_eq!((ids, second.next), (vec![started[2], started[0]], None));
    let run = &first.runs[0];
    assert_eq!((&*run.workflow, run.steps, run.open, run.awaits[0].as_str()), ("test", 1, 1, "go"));
}

/// Shows: W7
async fn the_history_of_a_run_has_its_events_in_order(store: TestStore) {
    let (engine, _) = engine(&store, "steps: {one: {task: fail}}").await;
    let run = run(&engine, &Value::Null).await;
    let mut history = engine.run_history(run).await.unwrap();
    let entries = history.next().await.unwrap();
    let events: Vec<&str> = entries.iter().map(|entry| entry.event).collect();
    assert_eq!(events[..3], ["started", "step_submitted", "task_ended"]);
    let ended = entries.iter().find(|entry| entry.event == "step_ended").unwrap();
    assert_eq!((ended.step.as_deref(), ended.detail.as_deref()), (Some("one"), Some("failed: no such account")));
    assert!(history.next().await.unwrap().is_empty());
}
