//! Cleanup after a stopped attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward::{Context, Engine, Failure, TaskId, TaskState};

use crate::fixture::{Gate, SECOND, TestStore, start, state, stop, submit};

on_every_store! {
    an_aborted_handler_is_cleaned_up_after,
    a_handler_that_stops_by_itself_is_cleaned_up_after_too,
    a_handler_whose_time_is_over_is_cleaned_up_after,
    a_handler_that_completes_is_not_cleaned_up_after,
    a_task_runs_on_while_it_is_cleaned_up_after_and_no_longer_than_may_be,
    a_panic_while_cleaning_up_leaks_no_slot,
}

/// A counter of the cleanups that have run.
#[derive(Clone, Default)]
struct Cleaned(Arc<AtomicUsize>);

impl Cleaned {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Registers a handler that registers a cleanup and ignores requests to stop. It completes when
/// `gate` is opened.
fn deaf(engine: &Engine, gate: &Gate, cleaned: &Cleaned) {
    let (gate, cleaned) = (gate.clone(), cleaned.clone());
    engine.handle("deaf", move |context: Context| {
        let (gate, cleaned) = (gate.clone(), cleaned.clone());
        async move {
            context.clean_up_with(async move { cleaned.add() });
            gate.pass().await;
            Ok::<_, Failure>(())
        }
    });
}

/// Moves the clock until a task has ended, and returns its state.
async fn ended(store: &TestStore, engine: &Engine, task: TaskId) -> Option<TaskState> {
    let engine = engine.clone();
    let ended = tokio::spawn(async move { engine.wait(task).await.ok().map(|record| record.state) });
    store.advance_until(SECOND, ended).await
}

/// Shows: T13
async fn an_aborted_handler_is_cleaned_up_after(store: TestStore) {
    let (engine, gate, cleaned) = (store.engine().await, Gate::new(), Cleaned::default());
    deaf(&engine, &gate, &cleaned);
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    assert_eq!(cleaned.times(), 0, "its grace is not over");
    assert_eq!(ended(&store, &engine, id).await, Some(TaskState::Cancelled));
    assert_eq!(cleaned.times(), 1);
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_handler_that_stops_by_itself_is_cleaned_up_after_too(store: TestStore) {
    let (engine, gate, cleaned) = (store.engine().await, Gate::new(), Cleaned::default());
    let (inner, seen) = (gate.clone(), cleaned.clone());
    engine.handle("stop", move |context: Context| {
        let (gate, cleaned, cancelled) = (inner.clone(), seen.clone(), context.cancelled());
        context.clean_up_with(async move { cleaned.add() });
        async move {
            tokio::select! {
                () = gate.pass() => Ok(()),
                () = cancelled.cancelled() => Err(Failure::retryable("stopped halfway")),
            }
        }
    });
    let id = submit(&engine, "stop").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Cancelled);
    assert_eq!(cleaned.times(), 1);
    stop(&engine, run).await;
}

/// Shows: T13, T6
async fn a_handler_whose_time_is_over_is_cleaned_up_after(store: TestStore) {
    let engine = store.builder().timeout(SECOND).open().await.unwrap();
    let (gate, cleaned) = (Gate::new(), Cleaned::default());
    deaf(&engine, &gate, &cleaned);
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    assert_eq!(ended(&store, &engine, id).await, Some(TaskState::Dead));
    assert_eq!(cleaned.times(), 1);
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_handler_that_completes_is_not_cleaned_up_after(store: TestStore) {
    let (engine, gate, cleaned) = (store.engine().await, Gate::new(), Cleaned::default());
    deaf(&engine, &gate, &cleaned);
    let (undisturbed, asked) = (submit(&engine, "deaf").await, submit(&engine, "deaf").await);
    let run = start(&engine);
    gate.entered(2).await;
    engine.cancel(asked).await.unwrap();
    gate.open(2);
    for id in [undisturbed, asked] {
        assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    }
    assert_eq!(cleaned.times(), 0);
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_task_runs_on_while_it_is_cleaned_up_after_and_no_longer_than_may_be(store: TestStore) {
    let engine = store.builder().grace(SECOND).cleanup_limit(SECOND * 60).open().await.unwrap();
    let (gate, cleaning) = (Gate::new(), Gate::new());
    let (inner, inner_cleaning) = (gate.clone(), cleaning.clone());
    engine.handle("deaf", move |context: Context| {
        let (gate, cleaning) = (inner.clone(), inner_cleaning.clone());
        context.clean_up_with(async move { cleaning.pass().await });
        async move {
            gate.pass().await;
            Ok::<_, Failure>(())
        }
    });
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    let waits = cleaning.clone();
    store.advance_until(SECOND, tokio::spawn(async move { waits.entered(1).await })).await;
    assert_eq!(state(&store, id).await, TaskState::Running);
    assert_eq!(ended(&store, &engine, id).await, Some(TaskState::Cancelled));
    stop(&engine, run).await;
}

/// Shows: T13
async fn a_panic_while_cleaning_up_leaks_no_slot(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let gate = Gate::new();
    let inner = gate.clone();
    engine.handle("deaf", move |context: Context| {
        let gate = inner.clone();
        context.clean_up_with(async { panic!("no broom") });
        async move {
            gate.pass().await;
            Ok::<_, Failure>(())
        }
    });
    let (first, second) = (submit(&engine, "deaf").await, submit(&engine, "deaf").await);
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(first).await.unwrap();
    assert_eq!(ended(&store, &engine, first).await, Some(TaskState::Cancelled));
    gate.entered(1).await;
    gate.open(1);
    assert_eq!(engine.wait(second).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}
