//! Cancellation of tasks in every state.

use onward::control::Cancellation;
use onward::observe::{Change, EventCursor};
use onward::{Failure, TaskState};

use crate::fixture::{Gate, SECOND, TestStore, error, start, state, stop, submit};

on_every_store! {
    a_task_that_has_not_started_ends_at_once,
    a_running_handler_sees_its_token_at_once,
    a_handler_that_ignores_cancellation_is_aborted_after_its_grace,
    a_cancelled_task_does_not_run_again,
    a_task_that_completes_although_it_was_cancelled_is_completed,
    a_cancellation_by_another_engine_reaches_the_one_that_runs_the_task,
    a_cancellation_of_an_ended_task_is_an_error_that_says_so,
    a_task_whose_handler_is_asked_to_stop_runs_once_at_a_time,
    cancellations_reach_every_engine_that_runs_one_of_the_tasks,
}

/// Shows: T13
async fn a_task_that_has_not_started_ends_at_once(store: TestStore) {
    let engine = store.engine().await;
    let id = submit(&engine, "any").await;
    assert_eq!(engine.cancel(id).await.unwrap(), Cancellation::Ended);
    assert_eq!(state(&store, id).await, TaskState::Cancelled);
}

/// Shows: T13
async fn a_running_handler_sees_its_token_at_once(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("stop", gate.stoppable());
    let id = submit(&engine, "stop").await;
    let run = start(&engine);
    gate.entered(1).await;
    assert_eq!(engine.cancel(id).await.unwrap(), Cancellation::Requested);
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Cancelled);
    assert_eq!(error(&store, id).await, "stopped halfway");
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_handler_that_ignores_cancellation_is_aborted_after_its_grace(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("deaf", gate.handler());
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    let waiting = engine.clone();
    let ended = tokio::spawn(async move { waiting.wait(id).await.unwrap() });
    let record = store.advance_until(SECOND, ended).await;
    assert_eq!(record.state, TaskState::Cancelled);
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_cancelled_task_does_not_run_again(store: TestStore) {
    let engine = store.builder().retry(onward::RetryPolicy::default()).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("stop", gate.stoppable());
    let id = submit(&engine, "stop").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    engine.wait(id).await.unwrap();
    stop(&engine, run).await;
    store.clock.advance(SECOND * 3600);
    engine.drain().await.unwrap();
    assert!(!gate.has_entered());
    assert_eq!(state(&store, id).await, TaskState::Cancelled);
}

/// Shows: T13
async fn a_task_that_completes_although_it_was_cancelled_is_completed(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("deaf", gate.handler());
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    gate.open(1);
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_cancellation_by_another_engine_reaches_the_one_that_runs_the_task(store: TestStore) {
    let (runs, cancels) = (store.engine().await, store.engine().await);
    let gate = Gate::new();
    runs.handle("stop", gate.stoppable());
    let id = submit(&cancels, "stop").await;
    let run = start(&runs);
    gate.entered(1).await;
    assert_eq!(cancels.cancel(id).await.unwrap(), Cancellation::Requested);
    let ended = tokio::spawn(async move { cancels.wait(id).await.unwrap() });
    let record = store.advance_until(onward::bounds::CANCEL_INTERVAL, ended).await;
    assert_eq!(record.state, TaskState::Cancelled);
    stop(&runs, run).await;
}

/// Shows: T13
async fn a_cancellation_of_an_ended_task_is_an_error_that_says_so(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("quick", |_| async { Ok::<(), Failure>(()) });
    let id = submit(&engine, "quick").await;
    engine.drain().await.unwrap();
    let error = engine.cancel(id).await.unwrap_err();
    assert!(error.is_already_ended(), "{error}");
}

/// Shows: T13, T16
/// Beats: double-run
async fn a_task_whose_handler_is_asked_to_stop_runs_once_at_a_time(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("deaf", gate.handler());
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    // The handler still runs, so no engine may start the task a second time.
    let other = store.engine().await;
    other.handle("deaf", gate.handler());
    other.run_until_idle().await.unwrap();
    assert!(!gate.has_entered());
    gate.open(1);
    engine.wait(id).await.unwrap();
    stop(&engine, run).await;
    let mut events = engine.events(EventCursor::START);
    let mut starts = 0;
    while let Some(event) = events.try_next().await.unwrap() {
        starts += usize::from(matches!(event.change, Change::Started { .. }));
    }
    assert_eq!(starts, 1);
}

/// Shows: T13
/// Beats: unseen-cancellation
async fn cancellations_reach_every_engine_that_runs_one_of_the_tasks(store: TestStore) {
    let cancels = store.engine().await;
    let (mut runs, mut tasks) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let engine = store.builder().concurrency(1).prefetch(0).open().await.unwrap();
        let gate = Gate::new();
        engine.handle("stop", gate.stoppable());
        tasks.push(submit(&cancels, "stop").await);
        let run = start(&engine);
        gate.entered(1).await;
        runs.push((engine, run));
    }
    for task in &tasks {
        assert_eq!(cancels.cancel(*task).await.unwrap(), Cancellation::Requested);
    }
    let waits = cancels.clone();
    let ended = tokio::spawn(async move {
        for task in tasks {
            assert_eq!(waits.wait(task).await.unwrap().state, TaskState::Cancelled);
        }
    });
    store.advance_until(onward::bounds::CANCEL_INTERVAL, ended).await;
    for (engine, run) in runs {
        stop(&engine, run).await;
    }
}
