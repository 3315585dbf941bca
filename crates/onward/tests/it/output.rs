//! Output of handlers.

use std::time::Duration;

use onward::task::OutputStream;
use onward::task::OutputStream::{Stderr, Stdout};
use onward::workflow::template::TemplateFile;
use onward::{Backoff, Context, Engine, Failure, NewTask, RetryPolicy, StoreReads, TaskId, TaskState};
use onward_store::{Page, TaskFilter};
use serde_json::Value;

use crate::fixture::{Gate, SECOND, TestStore, start, state, stop, submit};
use crate::orchestration_clients::Lines;

on_every_store! {
    output_is_saved_while_the_handler_runs,
    output_is_saved_with_the_end_of_the_attempt,
    output_of_a_failed_attempt_is_replaced_by_that_of_the_next,
    a_handler_without_output_leaves_none,
    a_result_that_is_the_output_is_stored_once,
    a_result_of_a_step_that_is_its_output_is_stored_once,
    output_that_is_declared_the_result_and_is_not_stays_what_it_is,
    output_of_an_attempt_whose_result_is_too_large_stays,
    output_that_is_declared_the_result_of_a_handler_without_one_is_logged,
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

/// Registers a handler that declares its standard output to be its result, which is `result`.
fn declaring(engine: &Engine, gate: &Gate, output: &'static str, result: &'static str) {
    let gate = gate.clone();
    engine.handle("write", move |context: Context| {
        let gate = gate.clone();
        async move {
            context.output(Stdout, output);
            gate.pass().await;
            context.output(Stdout, output);
            context.result_is_output();
            Ok::<_, Failure>(result)
        }
    });
}

/// Returns the pieces of the standard output as the store keeps them, and the result.
async fn pieces(engine: &Engine, task: TaskId) -> (usize, String) {
    let output = engine.store().task_output(task, Stdout, 0, usize::MAX).await.unwrap();
    let record = engine.store().task(task).await.unwrap().unwrap();
    let result = record.result.as_deref().map(|result| String::from_utf8(result.to_vec()).unwrap());
    (output.map_or(0, |output| output.pieces.len()), result.unwrap_or_default())
}

/// Waits until the output of a task that is in the gate is saved, and lets the task go on.
async fn pass_after_half(engine: &Engine, store: &TestStore, gate: &Gate, task: TaskId) {
    let mut changes = engine.store().changes();
    store.clock.advance(SECOND * 2);
    while text(engine, task, Stdout).await.is_empty() {
        changes.changed().await.unwrap();
    }
    gate.open(1);
}

async fn a_result_that_is_the_output_is_stored_once(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    declaring(&engine, &gate, "half,", "half,half,");
    let task = submit(&engine, "write").await;
    let run = start(&engine);
    gate.entered(1).await;
    pass_after_half(&engine, &store, &gate, task).await;
    stop(&engine, run).await;
    assert_eq!(text(&engine, task, Stdout).await, "half,half,");
    // One piece in place of the one that was saved and the rest: it is the result.
    assert_eq!(pieces(&engine, task).await, (1, "half,half,".to_owned()));
}

/// The end of a step is written with the turn that follows.
async fn a_result_of_a_step_that_is_its_output_is_stored_once(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    declaring(&engine, &gate, "7", "77");
    engine.add_workflow(TemplateFile::read("test.yaml", "steps: {a: {task: write}}").unwrap());
    let run = start(&engine);
    let parent = engine.start_run("test").input(&Value::Null).await.unwrap().id;
    gate.entered(1).await;
    let filter = TaskFilter { parent: Some(parent), ..TaskFilter::default() };
    let page = engine.store().tasks(filter, Page { before: None, limit: 1 }).await.unwrap();
    let task = page.tasks[0].id;
    pass_after_half(&engine, &store, &gate, task).await;
    stop(&engine, run).await;
    assert_eq!(pieces(&engine, task).await, (1, "77".to_owned()));
}

async fn output_that_is_declared_the_result_and_is_not_stays_what_it_is(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    declaring(&engine, &gate, "half,", "half,HALF,");
    let task = submit(&engine, "write").await;
    gate.open(1);
    engine.run_until_idle().await.unwrap();
    assert_eq!(text(&engine, task, Stdout).await, "half,half,");
    assert_eq!(pieces(&engine, task).await.1, "half,HALF,");
}

/// The handler returns nothing, and its output is larger than any result.
async fn output_that_is_declared_the_result_of_a_handler_without_one_is_logged(store: TestStore) {
    let lines = Lines::default();
    let reported = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || reported.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let engine = store.engine().await;
    engine.handle("write", |context: Context| async move {
        (0..10).for_each(|_| context.output(Stdout, [b'x'; 1024 * 1024]));
        context.result_is_output();
        Ok::<(), Failure>(())
    });
    let task = submit(&engine, "write").await;
    engine.run_until_idle().await.unwrap();
    let logged = lines.text();
    assert_eq!(state(&store, task).await, TaskState::Completed);
    assert!(logged.contains("output_bytes=10485760") && logged.contains("`result_is_output`"), "{logged}");
}

async fn output_of_an_attempt_whose_result_is_too_large_stays(store: TestStore) {
    let engine = store.engine().await;
    let large = "x".repeat(engine.store().info().payload_limit + 1);
    engine.handle("write", move |context: Context| {
        let large = large.clone();
        async move {
            context.output(Stdout, &large);
            context.result_is_output();
            Ok::<_, Failure>(large)
        }
    });
    let task = submit(&engine, "write").await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Failed);
    assert!(text(&engine, task, Stdout).await.starts_with("xxx"));
}
