//! Engines that remove tasks which ended long ago.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward::{Engine, EngineBuilder, NewTask, TaskId};
use onward_store::{Outcome, Store, StoreDecorator, StoreFuture, StoreReads, Write};

use crate::fixture::{HOUR, SECOND, TestStore, start, stop, submit, task};

on_every_store! {
    an_engine_prunes_tasks_that_ended_before_its_retention_and_no_others,
    an_engine_keeps_the_configured_number_of_the_newest_ended_tasks,
    an_engine_without_a_retention_prunes_a_task_after_its_own,
    a_retention_of_a_task_overrides_that_of_the_engine,
    an_engine_forgets_at_its_start_what_an_earlier_one_has_left_behind,
    an_engine_whose_tasks_say_nothing_of_how_long_they_are_kept_prunes_once,
}

/// Runs an engine on a store while the clock moves, until one task is removed. Returns which of the
/// ended tasks are left.
async fn forgotten(store: &TestStore, builder: EngineBuilder, tasks: &[TaskId], first: TaskId) -> Vec<TaskId> {
    let engine = builder.lease(24 * HOUR).open().await.unwrap();
    engine.handle("k", |_| async { Ok(()) });
    let run = start(&engine);
    while store.task(first).await.unwrap().is_some() {
        store.advance(HOUR / 60).await;
    }
    stop(&engine, run).await;
    let mut left = Vec::new();
    for task in tasks {
        left.extend(store.task(*task).await.unwrap().map(|record| record.id));
    }
    left
}

/// Shows: T17
async fn an_engine_prunes_tasks_that_ended_before_its_retention_and_no_others(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("k", |_| async { Ok(()) });
    let old = submit(&engine, "k").await;
    engine.run_until_idle().await.unwrap();
    let live = engine.submit_task(NewTask { when: onward::task::When::After(1000 * HOUR), ..task("k") });
    let live = live.await.unwrap().id();
    let ended_at = onward::store::Clock::now(&*store.clock);
    let left = forgotten(&store, store.builder().keep_ended_for(2 * HOUR), &[old, live], old).await;
    assert_eq!(left, [live]);
    assert!(onward::store::Clock::now(&*store.clock) > ended_at.plus(2 * HOUR));
}

/// Shows: T17
async fn an_engine_keeps_the_configured_number_of_the_newest_ended_tasks(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("k", |_| async { Ok(()) });
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(submit(&engine, "k").await);
        engine.run_until_idle().await.unwrap();
    }
    let left = forgotten(&store, store.builder().keep_ended(2), &tasks, tasks[0]).await;
    assert_eq!(left, tasks[1..]);
}

/// Submits a task with a retention of its own.
async fn submit_kept_for(engine: &Engine, retention: Duration) -> TaskId {
    engine.submit_task(NewTask { retention: Some(retention), ..task("k") }).await.unwrap().id()
}

/// Shows: Q6
async fn an_engine_without_a_retention_prunes_a_task_after_its_own(store: TestStore) {
    let engine = store.engine().await;
    let short = submit_kept_for(&engine, 2 * HOUR).await;
    let (long, other) = (submit_kept_for(&engine, 100_000 * HOUR).await, submit(&engine, "k").await);
    let before = onward::store::Clock::now(&*store.clock);
    assert_eq!(forgotten(&store, store.builder(), &[long, other], short).await, [long, other]);
    assert!(onward::store::Clock::now(&*store.clock) > before.plus(2 * HOUR));
}

/// Shows: Q6
async fn a_retention_of_a_task_overrides_that_of_the_engine(store: TestStore) {
    let engine = store.engine().await;
    let (kept, other) = (submit_kept_for(&engine, 100_000 * HOUR).await, submit(&engine, "k").await);
    let builder = store.builder().keep_ended_for(HOUR).keep_ended(0);
    assert_eq!(forgotten(&store, builder, &[kept], other).await, [kept]);
}

/// Shows: Q6
async fn an_engine_forgets_at_its_start_what_an_earlier_one_has_left_behind(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("k", |_| async { Ok(()) });
    let left_behind = submit_kept_for(&engine, SECOND).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(HOUR);
    assert_eq!(forgotten(&store, store.builder(), &[], left_behind).await, []);
}

/// A store that counts prunes.
#[derive(Debug)]
struct Prunes {
    store: Arc<dyn Store>,
    count: AtomicUsize,
}

impl StoreDecorator for Prunes {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.count.fetch_add(writes.iter().filter(|write| matches!(write, Write::Prune(_))).count(), Ordering::SeqCst);
        self.store.apply(writes)
    }
}

/// An engine without work must not cause work in its store.
///
/// Shows: W10
async fn an_engine_whose_tasks_say_nothing_of_how_long_they_are_kept_prunes_once(store: TestStore) {
    let prunes = Arc::new(Prunes { store: store.shared(), count: AtomicUsize::new(0) });
    let engine = Engine::builder().store(prunes.clone()).lease(24 * HOUR).open().await.unwrap();
    engine.handle("k", |_| async { Ok(()) });
    let run = start(&engine);
    for _ in 0..5 {
        let id = submit(&engine, "k").await;
        let waits = engine.clone();
        store.advance_until(HOUR / 60, tokio::spawn(async move { drop(waits.wait(id).await.unwrap()) })).await;
    }
    let later = engine.submit_task(NewTask { when: onward::task::When::After(HOUR), ..task("k") }).await.unwrap().id();
    let waits = engine.clone();
    store.advance_until(HOUR / 60, tokio::spawn(async move { drop(waits.wait(later).await.unwrap()) })).await;
    stop(&engine, run).await;
    assert_eq!(prunes.count.load(Ordering::SeqCst), 1);
}
