//! Critical paths of runs: waits for people, timers, retries, batches and live runs by their times.

use std::sync::atomic::{AtomicU32, Ordering};

use onward::workflow::CriticalPath;
use onward::{Failure, TaskId};
use serde_json::{Value, json};

use crate::fixture::{HOUR, SECOND, TestStore};
use crate::workflow_runs::{engine, run};

on_every_store! {
    a_wait_for_a_person_and_a_timer_count_by_their_times,
    a_retry_counts_with_the_delay_before_it,
    a_batch_counts_as_one_step,
    the_path_of_a_live_run_lasts_until_now,
    the_undo_of_a_run_is_the_rest_of_its_time,
}

/// Returns the steps of a path with their whole seconds.
fn shown(path: &CriticalPath) -> Vec<(&str, &str, u64)> {
    path.steps.iter().map(|step| (step.name.as_str(), step.kind, step.took.as_secs())).collect()
}

/// Shows: W7
async fn a_wait_for_a_person_and_a_timer_count_by_their_times(store: TestStore) {
    let text = "steps:
  read: {task: double, with: 1}
  ask: {signal: go, depends_on: [read]}
  pause: {wait: 90s, depends_on: [read]}
  last: {value: 1, depends_on: [ask, pause]}";
    let (engine, _) = engine(&store, text).await;
    let run = run(&engine, &Value::Null).await;
    store.clock.advance(100 * SECOND);
    engine.run_until_idle().await.unwrap();
    store.clock.advance(HOUR);
    engine.signal(run, "go", &json!(1)).await.unwrap();
    engine.run_until_idle().await.unwrap();
    let path = engine.critical_path(run).await.unwrap();
    assert_eq!(shown(&path), [("read", "task", 0), ("ask", "signal", 3700), ("last", "value", 0)]);
    let pause = &path.others[0];
    assert_eq!((pause.name.as_str(), pause.took.as_secs(), pause.slack.as_secs()), ("pause", 100, 3600));
    let share: f64 = path.steps.iter().map(|step| step.share).sum();
    assert!((share - 1.0).abs() < 1e-6 && path.took.as_secs() == 3700 && path.rest.is_zero(), "{path:?}");
}

/// Shows: W7
async fn a_retry_counts_with_the_delay_before_it(store: TestStore) {
    let text = "steps:
  flaky: {task: flaky, retry: {attempts: 2, backoff: constant, first: 30s}}
  last: {value: 1, depends_on: [flaky]}";
    let (engine, _) = engine(&store, text).await;
    let attempts = AtomicU32::new(0);
    engine.handle("flaky", move |_| {
        let is_first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if is_first { Err(Failure::retryable("not yet")) } else { Ok("1".to_owned()) } }
    });
    let run = run(&engine, &Value::Null).await;
    store.clock.advance(30 * SECOND);
    engine.run_until_idle().await.unwrap();
    let path = engine.critical_path(run).await.unwrap();
    assert_eq!((shown(&path)[0], path.steps[0].attempts), (("flaky", "task", 30), 2));
}

/// Shows: W7
async fn a_batch_counts_as_one_step(store: TestStore) {
    let text = "steps:
  all: {task: double, each: input, with: '${{ item }}'}
  sum: {value: '${{ steps.all.count }}', depends_on: [all]}";
    let (engine, _) = engine(&store, text).await;
    let run = run(&engine, &json!([1, 2, 3])).await;
    assert_eq!(shown(&engine.critical_path(run).await.unwrap()), [("all", "task", 0), ("sum", "value", 0)]);
}

/// Shows: W7
async fn the_path_of_a_live_run_lasts_until_now(store: TestStore) {
    let text = "steps:
  read: {value: 1}
  ask: {signal: go, depends_on: [read]}
  last: {value: 1, depends_on: [ask]}";
    let (engine, _) = engine(&store, text).await;
    let id = run(&engine, &Value::Null).await;
    store.clock.advance(60 * SECOND);
    let path = engine.critical_path(id).await.unwrap();
    assert_eq!((shown(&path), path.ended_at), (vec![("read", "value", 0), ("ask", "signal", 60)], None));
    let missing = engine.critical_path(TaskId(999)).await.unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
}

/// Shows: W7
async fn the_undo_of_a_run_is_the_rest_of_its_time(store: TestStore) {
    let text = "on_failure: undo
steps:
  one: {task: echo, with: 1, undo: {task: slow}}
  two: {task: fail, with: 2, depends_on: [one]}";
    let (engine, _) = engine(&store, text).await;
    let attempts = AtomicU32::new(0);
    engine.handle("slow", move |_| {
        let is_first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if is_first { Err(Failure::retryable("not yet")) } else { Ok("1".to_owned()) } }
    });
    let run = run(&engine, &Value::Null).await;
    store.clock.advance(HOUR);
    engine.run_until_idle().await.unwrap();
    let path = engine.critical_path(run).await.unwrap();
    assert_eq!((path.steps.len(), path.rest.as_secs()), (2, 3600), "{path:?}");
}
