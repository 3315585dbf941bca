//! Output of handlers.

use std::time::Duration;

use onward::task::OutputStream;
use onward::task::OutputStream::{Stderr, Stdout};
use onward::{Backoff, Context, Engine, Failure, NewTask, RetryPolicy, StoreReads, TaskId, TaskState};

use crate::fixture::{Gate, SECOND, TestStore, start, state, stop, submit};

on_every_store! {
    output_is_saved_while_the_handler_runs,
    output_is_saved_with_the_end_of_the_attempt,
    output_of_a_failed_attempt_is_replaced_by_that_of_the_next,
    a_handler_without_output_leaves_none,
}

async fn text(engine: &Engine, task: TaskId, stream: OutputStream) -> String {
    let output = engine.store().task_output(task, stream, 0, usize::MAX).await.unwrap();
    let pieces = output.into_iter().flat_map(|output| output.pieces);
    pieces.map(|piece| String::from_utf8(piece.bytes.to_vec()).unwrap()).collect()
}

/// Registers a handler that writes a line before and after it passes the gate.
fn writing(engine: &Engine, gate: &Gate) {
    let gate = gate.clone();
    engine.handle("write", move |context: Context| {
        let gate = gate.clone();
        async move {
            context.output(Stdout, "before\n");
            gate.pass().await;
            context.output(Stdout, "after\n");
            context.output(Stderr, "done\n");
            Ok::<(), Failure>(())
        }
    });
}

async fn output_is_saved_while_the_handler_runs(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    writing(&engine, &gate);
    let task = submit(&engine, "write").await;
    let mut changes = engine.store().changes();
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 2);
    while text(&engine, task, Stdout).await.is_empty() {
        changes.changed().await.unwrap();
    }
    assert_eq!(text(&engine, task, Stdout).await, "before\n");
    gate.open(1);
    stop(&engine, run).await;
}

async fn output_is_saved_with_the_end_of_the_attempt(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    writing(&engine, &gate);
    let task = submit(&engine, "write").await;
    gate.open(1);
    engine.run_until_idle().await.unwrap();
    let streams = [text(&engine, task, Stdout).await, text(&engine, task, Stderr).await];
    assert_eq!(streams, ["before\nafter\n", "done\n"]);
}

async fn output_of_a_failed_attempt_is_replaced_by_that_of_the_next(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("write", |context: Context| async move {
        context.output(Stdout, format!("attempt {}", context.attempt()));
        if context.attempt() == 1 { Err(Failure::retryable("again")) } else { Ok(()) }
    });
    let retry = RetryPolicy { attempts: 2, backoff: Backoff::Constant { delay: Duration::ZERO } };
    let new = NewTask { retry: Some(retry), ..NewTask::new("write").unwrap() };
    let task = engine.submit_task(new).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Completed);
    assert_eq!(text(&engine, task, Stdout).await, "attempt 2");
}

async fn a_handler_without_output_leaves_none(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("write", |context: Context| async move {
        context.output(Stdout, "");
        Ok::<(), Failure>(())
    });
    let task = submit(&engine, "write").await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(engine.store().task_output(task, Stdout, 0, 1).await.unwrap(), None);
}
