//! Tasks that depend on other tasks.

use onward_store::StoreReads;
use std::sync::{Arc, Mutex};

use onward::task::{Dependencies, OnDependencyFailure};
use onward::{Context, Engine, Failure, NewTask, TaskId, TaskState};

use crate::fixture::{Gate, TestStore, start, start_drain, state, stop, submit, task};

on_every_store! {
    a_refusal_names_the_task_by_its_place_among_those_given,
    a_graph_submitted_in_any_order_runs_in_its_own,
    a_circle_is_refused_and_nothing_is_kept,
    a_dependent_starts_when_what_another_engine_runs_has_ended,
    a_drain_waits_for_what_is_blocked_by_a_running_task,
    a_drain_ends_although_a_task_is_blocked_by_one_that_no_worker_runs,
    a_failed_task_decides_about_its_dependents_as_they_asked,
}

/// Registers a handler of `note` that records the payloads in the order in which it runs.
fn note(engine: &Engine) -> Arc<Mutex<Vec<String>>> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let written = notes.clone();
    engine.handle("note", move |context: Context| {
        written.lock().unwrap().push(String::from_utf8_lossy(context.payload()).into_owned());
        async { Ok(()) }
    });
    notes
}

fn noted(payload: &'static str, positions: &[usize]) -> NewTask {
    let depends_on = Dependencies::on_positions(positions.iter().copied());
    NewTask { payload: payload.into(), depends_on, ..task("note") }
}

/// Shows: T12
async fn a_graph_submitted_in_any_order_runs_in_its_own(store: TestStore) {
    let engine = store.engine().await;
    let notes = note(&engine);
    let graph = vec![noted("last", &[1, 3]), noted("left", &[2]), noted("first", &[]), noted("right", &[1])];
    let submitted = engine.submit_all(graph).await.unwrap();
    let summary = engine.drain().await.unwrap();
    assert_eq!(summary.completed, 4);
    assert_eq!(*notes.lock().unwrap(), ["first", "left", "right", "last"]);
    let payload = |id| async move { store.task(id).await.unwrap().unwrap().payload.unwrap() };
    assert_eq!(payload(submitted[0].id()).await, "last", "the answers are in the order of the tasks");
}

/// Shows: T12
async fn a_circle_is_refused_and_nothing_is_kept(store: TestStore) {
    let engine = store.engine().await;
    let error = engine.submit_all(vec![noted("a", &[1]), noted("b", &[0])]).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("0 → 1 → 0"), "{error}");
    assert_eq!(store.task(TaskId(1)).await.unwrap(), None);
}

/// Shows: T12
async fn a_refusal_names_the_task_by_its_place_among_those_given(store: TestStore) {
    let engine = store.engine().await;
    let unknown = NewTask { depends_on: Dependencies::on([TaskId(99)]), ..task("note") };
    let error = engine.submit_all(vec![noted("a", &[1]), noted("b", &[]), unknown]).await.unwrap_err();
    assert!(error.to_string().contains("number 2 was refused: there is no task 99"), "{error}");
}

/// Shows: T12
async fn a_dependent_starts_when_what_another_engine_runs_has_ended(store: TestStore) {
    let (one, other) = (store.engine().await, store.engine().await);
    let gate = Gate::new();
    one.handle("held", gate.handler());
    let notes = note(&other);
    let held = submit(&one, "held").await;
    let dependent = NewTask { depends_on: Dependencies::on([held]), ..noted("after", &[]) };
    let dependent = other.submit_task(dependent).await.unwrap().id();
    let runs = [start(&one), start(&other)];
    gate.entered(1).await;
    assert_eq!(state(&store, dependent).await, TaskState::Blocked);
    gate.open(1);
    assert_eq!(other.wait(dependent).await.unwrap().state, TaskState::Completed);
    assert_eq!(*notes.lock().unwrap(), ["after"]);
    let [first, second] = runs;
    stop(&one, first).await;
    stop(&other, second).await;
}

/// Shows: T12
async fn a_drain_waits_for_what_is_blocked_by_a_running_task(store: TestStore) {
    let (one, other) = (store.engine().await, store.engine().await);
    let gate = Gate::new();
    one.handle("held", gate.handler());
    let notes = note(&other);
    let held = submit(&one, "held").await;
    let dependent = NewTask { depends_on: Dependencies::on([held]), ..noted("after", &[]) };
    other.submit_task(dependent).await.unwrap();
    let run = start(&one);
    gate.entered(1).await;
    let drain = start_drain(&other);
    gate.open(1);
    assert_eq!(drain.await.unwrap().completed, 1);
    assert_eq!(*notes.lock().unwrap(), ["after"]);
    stop(&one, run).await;
}

/// Shows: T12
async fn a_drain_ends_although_a_task_is_blocked_by_one_that_no_worker_runs(store: TestStore) {
    let engine = store.engine().await;
    note(&engine);
    let nobodys = submit(&engine, "nobodys").await;
    let dependent = NewTask { depends_on: Dependencies::on([nobodys]), ..noted("after", &[]) };
    let dependent = engine.submit_task(dependent).await.unwrap().id();
    assert_eq!(engine.drain().await.unwrap().ended(), 0);
    assert_eq!(state(&store, dependent).await, TaskState::Blocked);
}

/// Shows: T12
async fn a_failed_task_decides_about_its_dependents_as_they_asked(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("fail", |_| async { Err::<(), _>(Failure::permanent("no")) });
    note(&engine);
    let failing = submit(&engine, "fail").await;
    let mut dependents = Vec::new();
    for on_failure in [OnDependencyFailure::Cancel, OnDependencyFailure::Fail, OnDependencyFailure::Ignore] {
        let mut new = NewTask { depends_on: Dependencies::on([failing]), ..noted("after", &[]) };
        new.depends_on.on_failure = on_failure;
        dependents.push(engine.submit_task(new).await.unwrap().id());
    }
    engine.drain().await.unwrap();
    let mut states = Vec::new();
    for dependent in dependents {
        states.push(state(&store, dependent).await);
    }
    assert_eq!(states, [TaskState::Cancelled, TaskState::Failed, TaskState::Completed]);
}
