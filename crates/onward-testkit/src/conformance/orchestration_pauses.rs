//! Pauses of orchestrations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterTurn, Bulk, BulkDone, BulkVerb, Dependencies, Dependency, Hold, NewTask, Outcome, Recipient, Refusal,
    StateCounts, StoreReads, TaskFilter, TaskId, TaskState, WaitReason, Write,
};

use super::orchestrations::{
    PARK, SECOND, awaiting, claim, messages, one_event, orchestration, paid, parked, signal, turned, why,
};
use crate::bench::Bench;

fn pause(task: TaskId) -> Write {
    Write::PauseOrchestration { task }
}

fn resume(task: TaskId) -> Write {
    Write::ResumeOrchestration { task }
}

async fn hold(bench: &Bench, task: TaskId) -> Hold {
    bench.store().instance(task).await.unwrap().unwrap().hold
}

/// Shows: D8
pub async fn a_paused_orchestration_has_no_turn_and_keeps_what_comes(bench: Bench) {
    let (task, session) = parked(&bench).await;
    bench.done(pause(task)).await;
    bench.done(signal(Recipient::Task(task), "1999")).await;
    assert_eq!((bench.state(task).await, hold(&bench, task).await), (TaskState::Blocked, Hold::Paused));
    assert_eq!(bench.claim(session, 1).await, []);
    // The event is no reason to wait, because it has arrived.
    assert_eq!(why(&bench, task).await, [WaitReason::OrchestrationPaused { task }]);
    bench.done(resume(task)).await;
    assert_eq!(hold(&bench, task).await, Hold::None);
    assert_eq!(messages(&claim(&bench, session).await), [paid("1999")]);
}

/// Shows: D8
pub async fn a_timer_that_came_due_in_a_pause_fires_after_it(bench: Bench) {
    let lease = bench.running(orchestration()).await;
    let until = Some(bench.now().plus(SECOND));
    turned(&bench, one_event(lease, 0, AfterTurn::Park { until })).await;
    bench.done(pause(lease.task)).await;
    bench.advance(SECOND * 2);
    bench.sweep().await;
    assert_eq!((bench.state(lease.task).await, hold(&bench, lease.task).await), (TaskState::Blocked, Hold::Aside));
    bench.done(resume(lease.task)).await;
    assert_eq!(claim(&bench, lease.session).await.lease.task, lease.task);
}

/// Shows: D8
pub async fn a_timer_that_is_not_due_waits_on_after_a_pause(bench: Bench) {
    let lease = bench.running(orchestration()).await;
    let until = bench.now().plus(SECOND);
    turned(&bench, one_event(lease, 0, AfterTurn::Park { until: Some(until) })).await;
    bench.done(pause(lease.task)).await;
    bench.done(resume(lease.task)).await;
    let record = bench.record(lease.task).await;
    assert_eq!((record.state, record.run_at), (TaskState::Scheduled, until));
}

/// Shows: D8
pub async fn a_turn_that_is_under_way_ends_and_none_follows_while_it_is_paused(bench: Bench) {
    let lease = bench.running(orchestration()).await;
    bench.done(pause(lease.task)).await;
    assert_eq!(bench.state(lease.task).await, TaskState::Running);
    turned(&bench, one_event(lease, 0, AfterTurn::Continue)).await;
    bench.done(signal(Recipient::Task(lease.task), "1999")).await;
    assert_eq!(turned(&bench, one_event(lease, 1, PARK)).await.state, TaskState::Blocked);
    assert_eq!(bench.claim(lease.session, 1).await, []);
    bench.done(resume(lease.task)).await;
    assert_eq!(messages(&claim(&bench, lease.session).await), [paid("1999")]);
}

/// Shows: D8
pub async fn a_turn_that_is_given_back_in_a_pause_waits_for_its_end(bench: Bench) {
    let lease = bench.running(orchestration()).await;
    bench.done(pause(lease.task)).await;
    bench.release(lease, Duration::ZERO).await;
    assert_eq!((bench.state(lease.task).await, bench.claim(lease.session, 1).await.len()), (TaskState::Blocked, 0));
    bench.done(resume(lease.task)).await;
    assert_eq!(claim(&bench, lease.session).await.lease.task, lease.task);
}

/// Shows: D8
pub async fn an_orchestration_that_has_not_begun_is_paused_before_its_first_turn(bench: Bench) {
    let session = bench.session().await;
    let first = bench.submit("first").await;
    let depends_on = Dependencies { tasks: vec![Dependency::Task(first)], ..Dependencies::default() };
    let dependent = bench.submit_new(NewTask { depends_on, ..orchestration() }).await;
    let waiting = bench.submit_new(orchestration()).await;
    bench.done(pause(dependent)).await;
    bench.done(pause(waiting)).await;
    let lease = bench.claim_one(session).await;
    bench.complete(lease).await;
    assert_eq!(bench.claim(session, 2).await, []);
    bench.done(resume(waiting)).await;
    bench.done(resume(dependent)).await;
    assert_eq!(bench.claim(session, 3).await.len(), 2);
}

/// Shows: D8
pub async fn activities_go_on_while_their_orchestration_is_paused(bench: Bench) {
    let (task, lease) = awaiting(&bench).await;
    bench.done(pause(task)).await;
    bench.complete(lease).await;
    assert_eq!(bench.state(task).await, TaskState::Blocked);
    bench.done(resume(task)).await;
    assert_eq!(messages(&claim(&bench, lease.session).await).len(), 1);
}

/// Shows: D8
pub async fn a_pause_of_an_orchestration_survives_a_restart(mut bench: Bench) {
    let (task, _) = parked(&bench).await;
    bench.done(pause(task)).await;
    bench.reopen().await;
    bench.done(signal(Recipient::Task(task), "1999")).await;
    let session = bench.session().await;
    assert_eq!(bench.claim(session, 1).await, []);
    bench.done(resume(task)).await;
    assert_eq!(claim(&bench, session).await.lease.task, task);
}

/// Shows: D8
pub async fn only_an_orchestration_that_has_not_ended_is_paused(bench: Bench) {
    let plain = bench.submit("plain").await;
    assert_eq!(bench.refused(pause(plain)).await, Refusal::NotAnOrchestration(plain));
    assert_eq!(bench.refused(resume(TaskId(99))).await, Refusal::TaskNotFound(TaskId(99)));
    let task = bench.submit_new(orchestration()).await;
    bench.done(pause(task)).await;
    bench.done(pause(task)).await;
    assert_eq!(bench.cancel(task).await, Outcome::Cancelled);
    let ended = Refusal::AlreadyEnded { task, state: TaskState::Cancelled };
    assert_eq!(bench.refused(resume(task)).await, ended);
}

/// Shows: D8
pub async fn orchestrations_are_paused_and_resumed_by_a_filter(bench: Bench) {
    let (task, session) = parked(&bench).await;
    let plain = bench.submit("plain").await;
    let bulk = |verb| {
        let bulk = Bulk { verb, filter: TaskFilter::default(), before: None, limit: 10 };
        Write::Bulk(Box::new(bulk))
    };
    let one = |state| {
        let states = StateCounts::from_iter([(state, 1)]);
        Outcome::Bulk(BulkDone { tasks: 1, states, ..BulkDone::default() })
    };
    assert_eq!(bench.write(bulk(BulkVerb::Pause)).await, one(TaskState::Blocked));
    bench.done(signal(Recipient::Task(task), "1999")).await;
    assert_eq!(bench.claim(session, 2).await[0].lease.task, plain);
    assert_eq!(bench.write(bulk(BulkVerb::Resume)).await, one(TaskState::Blocked));
    assert_eq!(claim(&bench, session).await.lease.task, task);
}
