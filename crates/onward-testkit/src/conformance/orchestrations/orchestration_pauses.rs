//! Pauses of orchestrations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterTurn, Bulk, BulkDone, BulkVerb, Dependencies, Dependency, Hold, NewTask, Outcome, Recipient, Refusal,
    StateCounts, StoreReads, TaskFilter, TaskId, TaskState, WaitReason, Write,
};

use super::orchestration_turns::{
    PARK, SECOND, awaiting, claim, messages, one_event, orchestration, paid, parked, signal, turned, why,
};
use crate::test_store::TestStore;

fn pause(task: TaskId) -> Write {
    Write::PauseOrchestration { task }
}

fn resume(task: TaskId) -> Write {
    Write::ResumeOrchestration { task }
}

async fn hold(store: &TestStore, task: TaskId) -> Hold {
    store.inner().instance(task).await.unwrap().unwrap().hold
}

/// Shows: D8
pub async fn a_paused_orchestration_has_no_turn_and_keeps_what_comes(store: TestStore) {
    let (task, session) = parked(&store).await;
    store.done(pause(task)).await;
    store.done(signal(Recipient::Task(task), "1999")).await;
    assert_eq!((store.state(task).await, hold(&store, task).await), (TaskState::Blocked, Hold::Paused));
    assert_eq!(store.claim(session, 1).await, []);
    // The event is no reason to wait, because it has arrived.
    assert_eq!(why(&store, task).await, [WaitReason::OrchestrationPaused { task }]);
    store.done(resume(task)).await;
    assert_eq!(hold(&store, task).await, Hold::None);
    assert_eq!(messages(&claim(&store, session).await), [paid("1999")]);
}

/// Shows: D8
pub async fn a_timer_that_came_due_in_a_pause_fires_after_it(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let until = Some(store.now().plus(SECOND));
    turned(&store, one_event(lease, 0, AfterTurn::Park { until })).await;
    store.done(pause(lease.task)).await;
    store.advance(SECOND * 2);
    store.sweep().await;
    assert_eq!((store.state(lease.task).await, hold(&store, lease.task).await), (TaskState::Blocked, Hold::PausedDue));
    store.done(resume(lease.task)).await;
    assert_eq!(claim(&store, lease.session).await.lease.task, lease.task);
}

/// Shows: D8
pub async fn a_timer_that_is_not_due_waits_on_after_a_pause(store: TestStore) {
    let lease = store.running(orchestration()).await;
    let until = store.now().plus(SECOND);
    turned(&store, one_event(lease, 0, AfterTurn::Park { until: Some(until) })).await;
    store.done(pause(lease.task)).await;
    store.done(resume(lease.task)).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.run_at), (TaskState::Scheduled, until));
}

/// Shows: D8
pub async fn a_turn_that_is_under_way_ends_and_none_follows_while_it_is_paused(store: TestStore) {
    let lease = store.running(orchestration()).await;
    store.done(pause(lease.task)).await;
    assert_eq!(store.state(lease.task).await, TaskState::Running);
    turned(&store, one_event(lease, 0, AfterTurn::Continue)).await;
    store.done(signal(Recipient::Task(lease.task), "1999")).await;
    assert_eq!(turned(&store, one_event(lease, 1, PARK)).await.state, TaskState::Blocked);
    assert_eq!(store.claim(lease.session, 1).await, []);
    store.done(resume(lease.task)).await;
    assert_eq!(messages(&claim(&store, lease.session).await), [paid("1999")]);
}

/// Shows: D8
pub async fn a_turn_released_in_a_pause_waits_for_its_end(store: TestStore) {
    let lease = store.running(orchestration()).await;
    store.done(pause(lease.task)).await;
    store.release(lease, Duration::ZERO).await;
    assert_eq!((store.state(lease.task).await, store.claim(lease.session, 1).await.len()), (TaskState::Blocked, 0));
    store.done(resume(lease.task)).await;
    assert_eq!(claim(&store, lease.session).await.lease.task, lease.task);
}

/// Shows: D8
pub async fn an_orchestration_that_has_not_begun_is_paused_before_its_first_turn(store: TestStore) {
    let session = store.session().await;
    let first = store.submit("first").await;
    let depends_on = Dependencies { tasks: vec![Dependency::Task(first)], ..Dependencies::default() };
    let dependent = store.submit_new(NewTask { depends_on, ..orchestration() }).await;
    let waiting = store.submit_new(orchestration()).await;
    store.done(pause(dependent)).await;
    store.done(pause(waiting)).await;
    let lease = store.claim_one(session).await;
    store.complete(lease).await;
    assert_eq!(store.claim(session, 2).await, []);
    store.done(resume(waiting)).await;
    store.done(resume(dependent)).await;
    assert_eq!(store.claim(session, 3).await.len(), 2);
}

/// Shows: D8
pub async fn activities_continue_while_their_orchestration_is_paused(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.done(pause(task)).await;
    store.complete(lease).await;
    assert_eq!(store.state(task).await, TaskState::Blocked);
    store.done(resume(task)).await;
    assert_eq!(messages(&claim(&store, lease.session).await).len(), 1);
}

/// Shows: D8
pub async fn a_pause_of_an_orchestration_survives_a_restart(mut store: TestStore) {
    let (task, _) = parked(&store).await;
    store.done(pause(task)).await;
    store.reopen().await;
    store.done(signal(Recipient::Task(task), "1999")).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await, []);
    store.done(resume(task)).await;
    assert_eq!(claim(&store, session).await.lease.task, task);
}

/// Shows: D8
pub async fn only_an_orchestration_that_has_not_ended_is_paused(store: TestStore) {
    let plain = store.submit("plain").await;
    assert_eq!(store.refused(pause(plain)).await, Refusal::NotAnOrchestration(plain));
    assert_eq!(store.refused(resume(TaskId(99))).await, Refusal::TaskNotFound(TaskId(99)));
    let task = store.submit_new(orchestration()).await;
    store.done(pause(task)).await;
    store.done(pause(task)).await;
    assert_eq!(store.cancel(task).await, Outcome::Cancelled);
    let ended = Refusal::AlreadyEnded { task, state: TaskState::Cancelled };
    assert_eq!(store.refused(resume(task)).await, ended);
}

/// Shows: D8
pub async fn orchestrations_are_paused_and_resumed_by_a_filter(store: TestStore) {
    let (task, session) = parked(&store).await;
    let plain = store.submit("plain").await;
    let bulk = |verb| {
        let bulk = Bulk { verb, filter: TaskFilter::default(), before: None, limit: 10 };
        Write::Bulk(Box::new(bulk))
    };
    let one = |state| {
        let states = StateCounts::from_iter([(state, 1)]);
        Outcome::Bulk(BulkDone { tasks: 1, states, ..BulkDone::default() })
    };
    assert_eq!(store.write(bulk(BulkVerb::Pause)).await, one(TaskState::Blocked));
    store.done(signal(Recipient::Task(task), "1999")).await;
    assert_eq!(store.claim(session, 2).await[0].lease.task, plain);
    assert_eq!(store.write(bulk(BulkVerb::Resume)).await, one(TaskState::Blocked));
    assert_eq!(claim(&store, session).await.lease.task, task);
}
