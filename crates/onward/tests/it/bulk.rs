//! Bulk operations on many tasks, through the engine.

use onward::control::BulkSummary;
use onward::store::StateCounts;
use onward::{NewTask, TaskFilter, TaskState};

use crate::fixture::{Gate, TestStore, start, state, stop, submit, task};

on_every_store! {
    running_handlers_here_see_their_token_at_once,
    running_handlers_of_another_engine_see_their_token,
    more_tasks_than_one_step_takes_are_cancelled_tried_again_and_deleted,
}

fn of_customer(value: &str) -> TaskFilter {
    TaskFilter { tags: [("customer", value)].into_iter().collect(), ..TaskFilter::default() }
}

fn tagged(kind: &str, value: &str) -> NewTask {
    NewTask { tags: [("customer", value)].into_iter().collect(), ..task(kind) }
}

/// Shows: T13, T10
async fn running_handlers_here_see_their_token_at_once(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("stop", gate.stoppable());
    let mine = engine.submit_task(tagged("stop", "42")).await.unwrap().id();
    let other = engine.submit_task(tagged("stop", "43")).await.unwrap().id();
    let run = start(&engine);
    gate.entered(2).await;
    let summary = engine.cancel_all(of_customer("42")).await.unwrap();
    let states = StateCounts::from_iter([(TaskState::Running, 1)]);
    assert_eq!((summary.tasks, summary.cancel_requested, summary.skipped), (1, 1, 0));
    assert_eq!(summary.states, states);
    assert_eq!(engine.wait(mine).await.unwrap().state, TaskState::Cancelled);
    assert_eq!(state(&store, other).await, TaskState::Running);
    gate.open(1);
    engine.wait(other).await.unwrap();
    stop(&engine, run).await;
}

/// Shows: T13
async fn running_handlers_of_another_engine_see_their_token(store: TestStore) {
    let (runs, cancels) = (store.engine().await, store.engine().await);
    let gate = Gate::new();
    runs.handle("stop", gate.stoppable());
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(submit(&cancels, "stop").await);
    }
    let run = start(&runs);
    gate.entered(3).await;
    assert_eq!(cancels.cancel_all(TaskFilter::default()).await.unwrap().cancel_requested, 3);
    let ended = tokio::spawn(async move {
        for task in tasks {
            assert_eq!(cancels.wait(task).await.unwrap().state, TaskState::Cancelled);
        }
    });
    store.advance_until(onward::bounds::CANCEL_INTERVAL, ended).await;
    stop(&runs, run).await;
}

/// Shows: T13, T8
async fn more_tasks_than_one_step_takes_are_cancelled_tried_again_and_deleted(store: TestStore) {
    let engine = store.engine().await;
    engine.submit_all(vec![tagged("k", "42"); 2500]).await.unwrap();
    let kept = submit(&engine, "k").await;
    let all = |state| {
        let states = StateCounts::from_iter([(state, 2500)]);
        let mut expected = BulkSummary::default();
        (expected.tasks, expected.states) = (2500, states);
        expected
    };
    assert_eq!(engine.cancel_all(of_customer("42")).await.unwrap(), all(TaskState::Waiting));
    assert_eq!(engine.retry_all(of_customer("42")).await.unwrap(), all(TaskState::Cancelled));
    assert_eq!(engine.count(of_customer("42")).await.unwrap(), 2500);
    assert_eq!(engine.delete_all(of_customer("42")).await.unwrap(), all(TaskState::Waiting));
    assert_eq!(engine.count(TaskFilter::default()).await.unwrap(), 1);
    assert_eq!(state(&store, kept).await, TaskState::Waiting);
}
