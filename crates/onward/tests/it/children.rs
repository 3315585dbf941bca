//! Handlers that spawn children and wait for them.

use onward_store::StoreReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onward::task::{Dependencies, Ttl, TtlFrom};
use onward::{Context, Engine, Failure, NewTask, Priority, RetryPolicy, TaskId, TaskRecord, TaskState};

use crate::fixture::{Gate, TestStore, error, record, start, state, stop, submit, task};

on_every_store! {
    a_parent_continues_with_its_checkpoint_and_the_outcomes_of_its_children,
    a_failed_attempt_spawns_nothing,
    a_child_that_is_spawned_at_once_runs_beside_its_parent,
    what_is_spawned_inherits_and_may_depend_on_what_was_spawned_before,
    a_sibling_belongs_to_the_same_parent_and_is_waited_for,
    the_first_failed_child_fails_its_parent_where_that_is_asked_for,
    cancelling_a_parent_reaches_the_handler_of_its_child,
    a_child_that_no_store_takes_fails_its_parent_for_good,
}

/// Registers a handler of `parent` that spawns `children`. It returns what it finds of them when
/// they have ended.
fn parent(engine: &Engine, children: &'static [&'static str]) {
    engine.handle("parent", move |context: Context| async move {
        if context.checkpoint_bytes().is_none() {
            children.iter().for_each(|kind| context.spawn_task(task(kind)));
            return Err(Failure::await_children("checkpoint"));
        }
        let ends: Vec<String> = context.children().await?.iter().map(said).collect();
        Ok(format!("{}: {}", String::from_utf8_lossy(context.checkpoint_bytes().unwrap()), ends.join(", ")))
    });
}

fn said(child: &TaskRecord) -> String {
    let result = child.result.bytes().map(|result| format!(" {}", String::from_utf8_lossy(result)));
    format!("{} {}{}", child.kind, child.state, result.unwrap_or_default())
}

async fn result(store: &TestStore, task: TaskId) -> String {
    String::from_utf8_lossy(&record(store, task).await.result.into_bytes().unwrap_or_default()).into_owned()
}

async fn children(store: &TestStore, parent: TaskId) -> Vec<TaskRecord> {
    let filter = onward::TaskFilter { parent: Some(parent), ..onward::TaskFilter::default() };
    store.tasks(filter, onward::store::Page::default()).await.unwrap().tasks
}

/// Shows: T11
async fn a_parent_continues_with_its_checkpoint_and_the_outcomes_of_its_children(store: TestStore) {
    let engine = store.engine().await;
    parent(&engine, &["good", "bad"]);
    engine.handle("good", |_| async { Ok("fine") });
    engine.handle("bad", |_| async { Err::<(), _>(Failure::permanent("no")) });
    let id = submit(&engine, "parent").await;
    let summary = engine.drain().await.unwrap();
    assert_eq!((summary.completed, summary.failed), (2, 1));
    assert_eq!(result(&store, id).await, "checkpoint: good completed fine, bad failed");
}

/// Shows: T11
async fn a_failed_attempt_spawns_nothing(store: TestStore) {
    let policy = RetryPolicy { attempts: 3, backoff: onward::Backoff::Constant { delay: Duration::ZERO } };
    let engine = store.builder().retry(policy).open().await.unwrap();
    engine.handle("parent", |context: Context| async move {
        context.spawn_task(task("child"));
        if context.attempt() < 3 { Err(Failure::retryable("not yet")) } else { Ok(()) }
    });
    engine.handle("child", |_| async { Ok(()) });
    let id = submit(&engine, "parent").await;
    assert_eq!(engine.drain().await.unwrap().completed, 2);
    assert_eq!(children(&store, id).await.len(), 1);
}

/// Shows: T11
async fn a_child_that_is_spawned_at_once_runs_beside_its_parent(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    let held = gate.clone();
    engine.handle("parent", move |context: Context| {
        let gate = held.clone();
        async move {
            context.spawn_now(task("child")).await?;
            gate.pass().await;
            Ok(())
        }
    });
    let child_ran = Arc::new(tokio::sync::Notify::new());
    let ran = child_ran.clone();
    engine.handle("child", move |_| {
        ran.notify_one();
        async { Ok(()) }
    });
    let id = submit(&engine, "parent").await;
    let run = start(&engine);
    gate.entered(1).await;
    child_ran.notified().await;
    assert_eq!(state(&store, id).await, TaskState::Running);
    gate.open(1);
    engine.wait(id).await.unwrap();
    stop(&engine, run).await;
}

/// Shows: T11
async fn what_is_spawned_inherits_and_may_depend_on_what_was_spawned_before(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("parent", |context: Context| async move {
        context.spawn_task(task("child"));
        let depends_on = Dependencies::on_positions([0]);
        context.spawn_task(NewTask { depends_on, priority: Priority::LOW, ..task("child") });
        Ok(())
    });
    let ttl = Ttl { duration: Duration::from_secs(60), from: TtlFrom::Submission };
    let new = NewTask { priority: Priority::HIGH, ttl: Some(ttl), ..task("parent") };
    let id = engine.submit_task(new).await.unwrap().id();
    engine.drain().await.unwrap();
    let children = children(&store, id).await;
    let seen: Vec<_> = children.iter().map(|child| (child.priority, child.state)).collect();
    assert_eq!(seen, [(Priority::LOW, TaskState::Blocked), (Priority::HIGH, TaskState::Waiting)]);
    assert!(children.iter().all(|child| child.expires_at.is_some()));
}

/// Shows: T11
async fn a_sibling_belongs_to_the_same_parent_and_is_waited_for(store: TestStore) {
    let engine = store.engine().await;
    parent(&engine, &["child"]);
    engine.handle("child", |context: Context| async move {
        context.spawn_sibling(task("sibling"));
        Ok("a")
    });
    engine.handle("sibling", |_| async { Ok("b") });
    let id = submit(&engine, "parent").await;
    engine.drain().await.unwrap();
    assert_eq!(result(&store, id).await, "checkpoint: child completed a, sibling completed b");
}

/// Shows: T11
async fn the_first_failed_child_fails_its_parent_where_that_is_asked_for(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let finalized = Arc::new(AtomicU32::new(0));
    let count = finalized.clone();
    engine.handle("parent", move |context: Context| {
        let count = count.clone();
        async move {
            count.fetch_add(u32::from(context.checkpoint_bytes().is_some()), Ordering::Relaxed);
            context.spawn_task(task("bad"));
            context.spawn_task(task("never"));
            Err::<(), _>(Failure::await_children_or_fail(""))
        }
    });
    engine.handle("bad", |_| async { Err::<(), _>(Failure::permanent("no")) });
    let id = submit(&engine, "parent").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Failed);
    assert_eq!(finalized.load(Ordering::Relaxed), 0);
    let states: Vec<_> = children(&store, id).await.iter().map(|child| child.state).collect();
    assert_eq!(states, [TaskState::Cancelled, TaskState::Failed]);
}

/// Shows: T11, T13
async fn cancelling_a_parent_reaches_the_handler_of_its_child(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    parent(&engine, &["child"]);
    engine.handle("child", gate.stoppable());
    let id = submit(&engine, "parent").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    let child = children(&store, id).await[0].id;
    let waiting = engine.clone();
    let ended = tokio::spawn(async move { waiting.wait(child).await.unwrap() });
    // Running work is notified within an interval that the clock measures.
    assert_eq!(store.advance_until(onward::bounds::CANCEL_INTERVAL, ended).await.state, TaskState::Cancelled);
    assert_eq!(state(&store, id).await, TaskState::Cancelled);
    stop(&engine, run).await;
}

/// Shows: T11
async fn a_child_that_no_store_takes_fails_its_parent_for_good(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("parent", |context: Context| async move {
        context.spawn_task(NewTask { depends_on: Dependencies::on([TaskId(99)]), ..task("child") });
        Ok("lost?")
    });
    let id = submit(&engine, "parent").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Failed);
    assert!(error(&store, id).await.contains("there is no task 99 to depend on"));
}
