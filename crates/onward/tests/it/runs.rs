//! The tasks that a run takes, their order, and the end of a run.

use onward_store::StoreReads;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use onward::queues::Scope;
use onward::task::When;
use onward::{Engine, Failure, Name, NewTask, Priority, TaskState};
use onward_store::Write;
use onward_testkit::FaultyStore;

use crate::fixture::{Gate, HOUR, SECOND, TestStore, start, start_drain, state, stop, submit, task};

on_every_store! {
    the_most_urgent_runs_first_and_then_the_oldest,
    each_of_256_priorities_counts,
    a_kind_without_a_handler_is_left_to_others,
    a_handler_for_any_kind_takes_what_has_none_of_its_own,
    two_handlers_for_one_kind_are_an_error_of_the_run,
    an_engine_does_not_run_twice_at_once,
    a_second_run_before_the_end_of_the_first_is_refused_with_that_reason,
    a_stop_before_the_run_ends_it_at_once,
    a_drain_waits_for_what_is_due_later,
    a_run_until_idle_leaves_what_is_due_later,
    a_clock_set_forward_makes_tasks_due_in_a_sleeping_engine,
    an_engine_takes_from_its_queues_alone,
    resuming_wakes_an_engine_that_sleeps,
    paused_work_goes_on_after_a_restart_when_it_is_resumed,
    a_drain_waits_for_a_pause_that_ends_by_itself,
    slow_handlers_leave_what_they_cannot_start_to_others,
    an_idle_engine_writes_nothing_all_day,
    a_queue_that_is_paused_while_an_engine_runs_starts_nothing_more,
    a_queue_can_be_purged_and_deleted_while_an_engine_runs,
    no_more_handlers_run_at_once_than_there_are_slots with threads,
    engines_that_share_a_store_run_each_task_once with threads,
    no_submit_is_slept_through_however_it_meets_an_engine_that_falls_asleep with threads,
}

/// Shows: T1
#[tokio::test]
async fn a_payload_limit_above_the_ceiling_is_refused_alike_by_every_store() {
    let directory = tempfile::tempdir().unwrap();
    let builders = [
        Engine::builder().memory(),
        Engine::builder().sqlite(directory.path().join("onward.db")),
        #[cfg(feature = "postgres")]
        Engine::builder().postgres("postgres://localhost/none"),
    ];
    for builder in builders {
        let error = builder.payload_limit(usize::MAX).open().await.unwrap_err();
        assert!(error.is_invalid());
        let text = error.to_string();
        assert!(
            text.contains("the payload limit is 18446744073709551615 bytes, and must be at most 268435456;"),
            "{text}"
        );
    }
}

/// Shows: T4
async fn the_most_urgent_runs_first_and_then_the_oldest(store: TestStore) {
    let engine = store.builder().concurrency(1).prefetch(0).open().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    engine.handle("rank", move |context| {
        seen.lock().unwrap().push(context.payload()[0]);
        async { Ok::<(), Failure>(()) }
    });
    for (name, priority) in [(1, 10), (2, 200), (3, 10), (4, 200)] {
        let new = NewTask { priority: Priority(priority), payload: vec![name].into(), ..task("rank") };
        engine.submit_task(new).await.unwrap();
    }
    engine.drain().await.unwrap();
    assert_eq!(*order.lock().unwrap(), [2, 4, 1, 3]);
}

/// Shows: T4
async fn each_of_256_priorities_counts(store: TestStore) {
    let engine = store.builder().concurrency(1).prefetch(0).open().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    engine.handle("rank", move |context| {
        seen.lock().unwrap().push(context.payload()[0]);
        async { Ok::<(), Failure>(()) }
    });
    // Steps of 77 visit every number once, so that neither the order of submission nor its reverse
    // is right.
    let tasks = (0..=255_u8).map(|step| {
        let priority = step.wrapping_mul(77);
        NewTask { priority: Priority(priority), payload: vec![priority].into(), ..task("rank") }
    });
    engine.submit_all(tasks.collect()).await.unwrap();
    engine.drain().await.unwrap();
    assert!(order.lock().unwrap().iter().copied().eq((0..=255).rev()));
}

/// Shows: T21
async fn no_more_handlers_run_at_once_than_there_are_slots(store: TestStore) {
    let engine = store.builder().concurrency(3).open().await.unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&running), Arc::clone(&most));
    engine.handle("count", move |_| {
        let (running, most) = counts.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<(), Failure>(())
        }
    });
    engine.submit_all(vec![task("count"); 500]).await.unwrap();
    assert_eq!(engine.drain().await.unwrap().completed, 500);
    assert!(most.load(Ordering::SeqCst) <= 3);
}

/// Shows: T20
async fn a_kind_without_a_handler_is_left_to_others(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("mine", |_| async { Ok::<(), Failure>(()) });
    let theirs = submit(&engine, "theirs").await;
    assert_eq!(engine.drain().await.unwrap().ended(), 0);
    assert_eq!(state(&store, theirs).await, TaskState::Waiting);
}

/// Shows: T20
async fn a_handler_for_any_kind_takes_what_has_none_of_its_own(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("mine", |_| async { Ok::<_, Failure>("mine") });
    engine.handle_any(|context| async move { Ok::<_, Failure>(format!("any: {}", context.kind())) });
    let other = submit(&engine, "other").await;
    engine.drain().await.unwrap();
    assert_eq!(engine.wait(other).await.unwrap().result.as_deref(), Some(&b"any: other"[..]));
}

/// Shows: T11
async fn a_second_run_before_the_end_of_the_first_is_refused_with_that_reason(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("held", gate.handler());
    let task = submit(&engine, "held").await;
    tokio::select! {
        biased;
        ended = engine.run() => panic!("it ended: {ended:?}"),
        () = gate.entered(1) => {}
    }
    let reported = engine.run().await.unwrap_err().to_string();
    assert!(reported.contains("the last run of this engine has not ended"), "{reported}");
    gate.open(1);
    assert_eq!(engine.wait(task).await.unwrap().state, TaskState::Completed);
}

/// Shows: T20
async fn two_handlers_for_one_kind_are_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    let handler = |_| async { Ok::<(), Failure>(()) };
    engine.handle("twice", handler).handle("twice", handler);
    let error = engine.run().await.unwrap_err();
    assert_eq!(error.to_string(), "the kind `twice` has two handlers; register one");
}

async fn an_engine_does_not_run_twice_at_once(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("hold", gate.handler());
    submit(&engine, "hold").await;
    let run = start(&engine);
    gate.entered(1).await;
    assert!(engine.run().await.unwrap_err().is_invalid());
    gate.open(1);
    stop(&engine, run).await;
}

async fn a_stop_before_the_run_ends_it_at_once(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("never", |_| async { Ok::<(), Failure>(()) });
    let id = submit(&engine, "never").await;
    engine.stop();
    engine.run().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Waiting);
}

/// Shows: T5, B7
async fn a_drain_waits_for_what_is_due_later(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("later", |_| async { Ok::<(), Failure>(()) });
    let later = NewTask { when: When::After(HOUR * 24 * 30), ..task("later") };
    engine.submit_task(later).await.unwrap();
    let summary = store.advance_until(HOUR * 24, start_drain(&engine)).await;
    assert_eq!(summary.completed, 1);
}

/// Shows: T5
async fn a_run_until_idle_leaves_what_is_due_later(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("later", |_| async { Ok::<(), Failure>(()) });
    let later = NewTask { when: When::After(SECOND), ..task("later") };
    let id = engine.submit_task(later).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Scheduled);
}

/// Shows: T5
async fn a_clock_set_forward_makes_tasks_due_in_a_sleeping_engine(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("at", |_| async { Ok::<(), Failure>(()) });
    let at = store.clock().now().plus(HOUR);
    let id = engine.submit_task(NewTask { when: When::At(at), ..task("at") }).await.unwrap().id();
    let run = start(&engine);
    let waits = engine.clone();
    let waiting = tokio::spawn(async move { waits.wait(id).await.unwrap() });
    store.settled().await;
    store.clock.set_wall(at);
    assert_eq!(waiting.await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: Q1
async fn an_engine_takes_from_its_queues_alone(store: TestStore) {
    let engine = store.builder().queues(["mail"]).open().await.unwrap();
    engine.handle("any", |_| async { Ok::<(), Failure>(()) });
    let mail = NewTask { queue: Name::new("mail").unwrap(), ..task("any") };
    let mail = engine.submit_task(mail).await.unwrap().id();
    let other = submit(&engine, "any").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, mail).await, TaskState::Completed);
    assert_eq!(state(&store, other).await, TaskState::Waiting);
}

/// Shows: T14
async fn resuming_wakes_an_engine_that_sleeps(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("held", |_| async { Ok::<(), Failure>(()) });
    engine.pause(Scope::All).await.unwrap();
    let id = submit(&engine, "held").await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Waiting);
    let run = start(&engine);
    engine.resume(Scope::All).await.unwrap();
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: T14
/// Beats: stranded-pause
async fn paused_work_goes_on_after_a_restart_when_it_is_resumed(store: TestStore) {
    let before = store.engine().await;
    before.pause(Scope::Kind(Name::new("held").unwrap())).await.unwrap();
    let id = submit(&before, "held").await;
    drop(before);
    let after = store.engine().await;
    after.handle("held", |_| async { Ok::<(), Failure>(()) });
    after.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Waiting);
    after.resume(Scope::Kind(Name::new("held").unwrap())).await.unwrap();
    after.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: T14
async fn a_drain_waits_for_a_pause_that_ends_by_itself(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("held", |_| async { Ok::<(), Failure>(()) });
    let until = store.clock().now().plus(HOUR);
    engine.pause_until(Scope::Queue(Name::default_queue()), until).await.unwrap();
    submit(&engine, "held").await;
    let summary = store.advance_until(HOUR / 4, start_drain(&engine)).await;
    assert_eq!(summary.completed, 1);
    assert!(store.clock().now() >= until);
}

/// Shows: T21
async fn engines_that_share_a_store_run_each_task_once(store: TestStore) {
    let ran = Arc::new(AtomicUsize::new(0));
    let mut drains = Vec::new();
    let first = store.engine().await;
    first.submit_all(vec![task("shared"); 2000]).await.unwrap();
    for _ in 0..3 {
        let engine = store.engine().await;
        let ran = Arc::clone(&ran);
        engine.handle("shared", move |_| {
            ran.fetch_add(1, Ordering::SeqCst);
            async { Ok::<(), Failure>(()) }
        });
        drains.push(start_drain(&engine));
    }
    let mut completed = 0;
    for drain in drains {
        completed += drain.await.unwrap().completed;
    }
    assert_eq!((completed, ran.load(Ordering::SeqCst)), (2000, 2000));
}

/// Shows: Q3
async fn slow_handlers_leave_what_they_cannot_start_to_others(store: TestStore) {
    let engine = store.builder().concurrency(2).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("slow", gate.handler());
    engine.submit_all(vec![task("slow"); 10]).await.unwrap();
    let run = start(&engine);
    gate.entered(2).await;
    assert_eq!(engine.snapshot().buffered, 0);
    assert_eq!(store.queues().await.unwrap()[0].waiting, 8);
    gate.open(10);
    stop(&engine, run).await;
}

/// Shows: Q5
async fn an_idle_engine_writes_nothing_all_day(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).lease(SECOND * 10).open().await.unwrap();
    engine.handle("rare", |_| async { Ok::<(), Failure>(()) });
    let run = start(&engine);
    let id = submit(&engine, "rare").await;
    engine.wait(id).await.unwrap();
    // The last action of the engine is to check whether a lease has lapsed, at the time when its
    // own would have.
    for _ in 0..60 {
        store.advance(SECOND).await;
    }
    let calls = faulty.calls();
    for _ in 0..24 * 60 {
        store.advance(SECOND * 60).await;
    }
    assert_eq!(faulty.calls(), calls);
    stop(&engine, run).await;
}

/// The clock stands still, so only the wake-up can start the task.
///
/// Shows: Q5
/// Beats: lost-wake-ups
async fn no_submit_is_slept_through_however_it_meets_an_engine_that_falls_asleep(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("next", |_| async { Ok::<(), Failure>(()) });
    let run = start(&engine);
    // A server takes milliseconds for each submit.
    let submits = if store.is_on_server() { 100 } else { 500 };
    for _ in 0..submits {
        let id = submit(&engine, "next").await;
        assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    }
    stop(&engine, run).await;
}

/// Shows: Q1
async fn a_queue_that_is_paused_while_an_engine_runs_starts_nothing_more(store: TestStore) {
    let engine = store.builder().concurrency(1).prefetch(0).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("any", gate.handler());
    let run = start(&engine);
    let first = submit(&engine, "any").await;
    gate.entered(1).await;
    engine.pause(Scope::Queue(Name::default_queue())).await.unwrap();
    let second = submit(&engine, "any").await;
    gate.open(2);
    engine.wait(first).await.unwrap();
    // Another engine that looked for it finds nothing.
    let other = store.engine().await;
    other.handle("any", |_| async { Ok::<(), Failure>(()) });
    assert_eq!(other.run_until_idle().await.unwrap().ended(), 0);
    assert_eq!(state(&store, second).await, TaskState::Waiting);
    engine.resume(Scope::Queue(Name::default_queue())).await.unwrap();
    assert_eq!(engine.wait(second).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: Q1
async fn a_queue_can_be_purged_and_deleted_while_an_engine_runs(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("mine", |_| async { Ok::<(), Failure>(()) });
    let run = start(&engine);
    let queue = Name::new("post").unwrap();
    let id = engine.submit_task(NewTask { queue: queue.clone(), ..task("theirs") }).await.unwrap().id();
    let purge = Write::Purge { queue: queue.clone(), states: vec![TaskState::Waiting], limit: 10 };
    store.apply(vec![purge, Write::DeleteQueue { queue: queue.clone() }]).await.unwrap();
    assert_eq!(store.task(id).await.unwrap(), None);
    assert!(store.queues().await.unwrap().iter().all(|record| record.name != queue));
    // The engine continues, and the queue returns with its next task.
    let mine = engine.submit_task(NewTask { queue, ..task("mine") }).await.unwrap().id();
    assert_eq!(engine.wait(mine).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}
