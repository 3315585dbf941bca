//! The end of a run, and the loss and recovery of its session.

use onward::{Failure, TaskState};
use onward_store::StoreReads;

use crate::fixture::{Gate, HOUR, SECOND, TestStore, record, start, start_drain, state, stop, submit, task};

on_every_store! {
    a_stop_waits_for_running_handlers,
    a_stop_claims_nothing_more,
    a_stop_gives_back_what_does_not_end_in_time_without_counting_the_attempt,
    a_run_that_is_dropped_gives_its_tasks_back,
    an_engine_can_run_again_after_a_stop,
    the_tasks_of_a_lapsed_engine_are_taken_over_and_its_late_result_is_refused,
    an_engine_that_lost_its_session_opens_another_and_goes_on,
    a_lease_that_expired_and_was_taken_by_no_other_is_renewed_by_its_holder,
    a_lease_is_kept_while_a_handler_runs_long,
    a_run_closes_its_session,
    a_stop_amid_many_tasks_loses_none with threads,
}

/// Shows: T21
async fn a_stop_waits_for_running_handlers(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("slow", gate.handler());
    let id = submit(&engine, "slow").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.stop();
    store.settled().await;
    gate.open(1);
    run.await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: T21
async fn a_stop_claims_nothing_more(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("slow", gate.handler());
    submit(&engine, "slow").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.stop();
    let late = submit(&engine, "slow").await;
    gate.open(2);
    run.await.unwrap();
    assert_eq!(state(&store, late).await, TaskState::Waiting);
}

/// Shows: T21, Q3
async fn a_stop_gives_back_what_does_not_end_in_time_without_counting_the_attempt(store: TestStore) {
    let engine = store.builder().shutdown_limit(SECOND * 30).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("deaf", gate.handler());
    let id = submit(&engine, "deaf").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.stop();
    store.advance_until(SECOND, run).await;
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts, record.errors.len()), (TaskState::Waiting, 0, 0));
}

/// Shows: T21
async fn a_run_that_is_dropped_gives_its_tasks_back(store: TestStore) {
    let engine = store.builder().shutdown_limit(std::time::Duration::ZERO).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("slow", gate.stoppable());
    let id = submit(&engine, "slow").await;
    let run = start(&engine);
    gate.entered(1).await;
    run.abort();
    let other = store.engine().await;
    other.handle("slow", |_| async { Ok::<(), Failure>(()) });
    other.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: T21
async fn an_engine_can_run_again_after_a_stop(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("any", |_| async { Ok::<(), Failure>(()) });
    let run = start(&engine);
    let first = submit(&engine, "any").await;
    engine.wait(first).await.unwrap();
    stop(&engine, run).await;
    submit(&engine, "any").await;
    assert_eq!(engine.drain().await.unwrap().completed, 1);
}

/// Shows: T21
async fn the_tasks_of_a_lapsed_engine_are_taken_over_and_its_late_result_is_refused(store: TestStore) {
    let slow = store.builder().shutdown_limit(HOUR * 3).open().await.unwrap();
    let other = store.engine().await;
    let gate = Gate::new();
    let held = gate.clone();
    slow.handle("work", move |_| {
        let gate = held.clone();
        async move {
            gate.pass().await;
            Ok::<_, Failure>("late")
        }
    });
    other.handle("work", |_| async { Ok::<_, Failure>("in time") });
    let id = submit(&slow, "work").await;
    let run = start(&slow);
    gate.entered(1).await;
    // An engine that stops does not claim the task again, so that the other engine gets it.
    slow.stop();
    store.settled().await;
    store.clock.advance(HOUR * 2);
    sweep(&store).await;
    other.drain().await.unwrap();
    gate.open(1);
    stop(&slow, run).await;
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&b"in time"[..]));
}

async fn sweep(store: &TestStore) {
    store.apply(vec![onward_store::Write::Sweep]).await.unwrap();
}

/// Shows: T21
async fn an_engine_that_lost_its_session_opens_another_and_goes_on(store: TestStore) {
    let engine = store.builder().retry(onward::RetryPolicy::default()).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("work", gate.stoppable());
    let id = submit(&engine, "work").await;
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(HOUR * 2);
    sweep(&store).await;
    // The lost attempt is asked to stop. The next one, with a new lease, is let through.
    gate.entered(1).await;
    gate.open(1);
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
}

/// The process is stopped by Ctrl-Z for longer than its lease, and then continues.
///
/// Shows: T21
async fn a_lease_that_expired_and_was_taken_by_no_other_is_renewed_by_its_holder(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("long", gate.handler());
    let id = submit(&engine, "long").await;
    let drain = start_drain(&engine);
    gate.entered(1).await;
    store.advance(HOUR * 2).await;
    gate.open(1);
    assert_eq!(drain.await.unwrap().lost, 0);
    assert_eq!((record(&store, id).await.attempts, state(&store, id).await), (1, TaskState::Completed));
}

/// Shows: T21
async fn a_lease_is_kept_while_a_handler_runs_long(store: TestStore) {
    let engine = store.builder().lease(SECOND * 10).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("long", gate.handler());
    let id = submit(&engine, "long").await;
    let drain = start_drain(&engine);
    gate.entered(1).await;
    for _ in 0..60 {
        store.advance(SECOND).await;
    }
    gate.open(1);
    assert_eq!(drain.await.unwrap().lost, 0);
    assert_eq!(record(&store, id).await.attempts, 1);
}

/// Shows: T21
async fn a_stop_amid_many_tasks_loses_none(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("many", |_| async { Ok::<(), Failure>(()) });
    engine.submit_all(vec![task("many"); 3000]).await.unwrap();
    let run = start(&engine);
    stop(&engine, run).await;
    let queue = store.queues().await.unwrap().remove(0);
    assert_eq!((queue.running, queue.waiting + queue.ended.completed), (0, 3000));
    let summary = engine.drain().await.unwrap();
    assert_eq!(summary.completed, queue.waiting);
}

/// Shows: T21
async fn a_run_closes_its_session(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("any", |_| async { Ok::<(), Failure>(()) });
    submit(&engine, "any").await;
    engine.drain().await.unwrap();
    assert!(store.sessions().await.unwrap().is_empty());
}
