//! Ends of attempts.

use std::time::Duration;

use onward_store::{
    AfterFailure, AttemptError, ByteProgress, Failed, Lease, Outcome, Progress, Refusal, SessionId, TaskId, TaskState,
    Write,
};

use crate::test_store::{TestStore, after, task};

const SECOND: Duration = Duration::from_secs(1);

fn hold(uses_attempt: bool) -> AfterFailure {
    AfterFailure::Retry { after: Duration::ZERO, uses_attempt, hold: true }
}

/// Shows: T17
pub async fn a_completed_task_has_its_result_and_its_times(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(SECOND);
    store.done(Write::Complete { lease, result: Some("answer".into()) }).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(b"answer".as_slice())));
    assert_eq!((record.finished_at, record.started_at), (Some(store.now()), Some(store.now().minus(SECOND))));
    assert_eq!((record.session, record.attempts), (None, 1));
}

pub async fn an_empty_result_is_not_no_result(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.done(Write::Complete { lease, result: Some("".into()) }).await;
    assert_eq!(store.record(lease.task).await.result.as_deref(), Some(b"".as_slice()));
}

/// Shows: T17
pub async fn a_completed_task_keeps_its_errors(store: TestStore) {
    let lease = store.running(task("k")).await;
    let next = store.fail(lease, hold(true)).await.lease;
    store.complete(next.unwrap_or(lease)).await;
    assert_eq!(store.record(lease.task).await.errors.len(), 1);
}

pub async fn a_lease_ends_one_attempt_only(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.complete(lease).await;
    assert_eq!(store.refused(Write::Complete { lease, result: None }).await, Refusal::LeaseLost(lease));
}

/// Submits three tasks and claims them together.
async fn three_running(store: &TestStore) -> [Lease; 3] {
    for _ in 0..3 {
        store.submit("k").await;
    }
    let session = store.session().await;
    let leases: Vec<_> = store.claim(session, 3).await.into_iter().map(|task| task.lease).collect();
    leases.try_into().expect("three tasks were claimed")
}

async fn states(store: &TestStore, leases: [Lease; 3]) -> Vec<TaskState> {
    let mut states = Vec::new();
    for lease in leases {
        states.push(store.state(lease.task).await);
    }
    states
}

pub async fn a_task_claimed_among_others_fails_alone(store: TestStore) {
    let leases = three_running(&store).await;
    store.fail(leases[1], after(SECOND)).await;
    let expected = [TaskState::Running, TaskState::Scheduled, TaskState::Running];
    assert_eq!(states(&store, leases).await, expected);
    store.complete(leases[0]).await;
    store.complete(leases[2]).await;
}

pub async fn a_task_claimed_among_others_is_released_alone(store: TestStore) {
    let leases = three_running(&store).await;
    store.release(leases[1], Duration::ZERO).await;
    store.complete(leases[0]).await;
    let other = store.session().await;
    assert_eq!(store.claim_one(other).await.task, leases[1].task);
    let expected = [TaskState::Completed, TaskState::Running, TaskState::Running];
    assert_eq!(states(&store, leases).await, expected);
}

pub async fn a_task_claimed_among_others_and_retried_after_its_end_waits(store: TestStore) {
    let leases = three_running(&store).await;
    store.complete(leases[1]).await;
    store.retry(leases[1].task).await;
    let expected = [TaskState::Running, TaskState::Waiting, TaskState::Running];
    assert_eq!(states(&store, leases).await, expected);
    assert_eq!(store.refused(Write::Complete { lease: leases[1], result: None }).await, Refusal::LeaseLost(leases[1]));
}

pub async fn tasks_claimed_together_are_lost_but_for_those_that_ended(store: TestStore) {
    let leases = three_running(&store).await;
    store.complete(leases[0]).await;
    assert_eq!(store.lapse().await.lost, 2);
    let expected = [TaskState::Completed, TaskState::Waiting, TaskState::Waiting];
    assert_eq!(states(&store, leases).await, expected);
}

pub async fn a_failed_attempt_is_retried_after_its_delay(store: TestStore) {
    let lease = store.running(task("k")).await;
    let failed = store.fail(lease, after(SECOND)).await;
    assert_eq!(failed, Failed { state: TaskState::Scheduled, lease: None });
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.run_at), (TaskState::Scheduled, store.now().plus(SECOND)));
    assert_eq!((record.attempts, record.session, record.finished_at), (1, None, None));
}

pub async fn a_failed_attempt_without_a_delay_waits_at_once(store: TestStore) {
    let lease = store.running(task("k")).await;
    let failed = store.fail(lease, after(Duration::ZERO)).await;
    assert_eq!(failed, Failed { state: TaskState::Waiting, lease: None });
}

/// Shows: T17
pub async fn a_failed_attempt_leaves_its_error(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(SECOND)).await;
    let expected = AttemptError { attempt: 1, at: store.now(), message: "oops".into() };
    assert_eq!(store.record(lease.task).await.errors, [expected]);
}

pub async fn a_failure_that_does_not_count_uses_no_attempt(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, AfterFailure::Retry { after: SECOND, uses_attempt: false, hold: false }).await;
    assert_eq!(store.record(lease.task).await.attempts, 0);
}

/// Shows: T8
pub async fn a_permanent_failure_ends_as_failed(store: TestStore) {
    let lease = store.running(task("k")).await;
    let failed = store.fail(lease, AfterFailure::Fail).await;
    assert_eq!(failed, Failed { state: TaskState::Failed, lease: None });
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.finished_at, record.attempts), (TaskState::Failed, Some(store.now()), 1));
}

/// Shows: T8
pub async fn the_last_failure_ends_in_the_dead_letters(store: TestStore) {
    let lease = store.running(task("k")).await;
    let failed = store.fail(lease, AfterFailure::Dead).await;
    assert_eq!((failed.state, store.state(lease.task).await), (TaskState::Dead, TaskState::Dead));
}

pub async fn a_session_may_hold_a_failed_task(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(SECOND);
    let failed = store.fail(lease, hold(true)).await;
    let next = Lease { claim: 2, ..lease };
    assert_eq!(failed, Failed { state: TaskState::Running, lease: Some(next) });
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts, record.started_at), (TaskState::Running, 2, Some(store.now())));
    store.complete(next).await;
}

pub async fn holding_a_task_outdates_the_old_lease(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, hold(false)).await;
    assert_eq!(store.refused(Write::Complete { lease, result: None }).await, Refusal::LeaseLost(lease));
}

pub async fn a_held_retry_with_a_delay_waits_like_others(store: TestStore) {
    let lease = store.running(task("k")).await;
    let next = AfterFailure::Retry { after: SECOND, uses_attempt: true, hold: true };
    assert_eq!(store.fail(lease, next).await, Failed { state: TaskState::Scheduled, lease: None });
}

pub async fn a_released_task_waits_as_if_it_had_not_been_claimed(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.release(lease, Duration::ZERO).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts, record.session), (TaskState::Waiting, 0, None));
    assert_eq!(record.errors, []);
}

pub async fn a_task_can_be_released_for_later(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.release(lease, SECOND).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.run_at), (TaskState::Scheduled, store.now().plus(SECOND)));
}

pub async fn a_released_task_that_is_to_be_cancelled_is_cancelled(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    store.release(lease, Duration::ZERO).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts), (TaskState::Cancelled, 0));
}

pub async fn a_failed_task_that_is_to_be_cancelled_is_not_retried(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    assert_eq!(store.fail(lease, after(SECOND)).await, Failed { state: TaskState::Cancelled, lease: None });
}

pub async fn a_task_that_is_to_be_cancelled_may_complete_anyway(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    store.complete(lease).await;
    assert_eq!(store.state(lease.task).await, TaskState::Completed);
}

pub async fn a_confirmed_cancellation_has_its_reason(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.done(Write::ConfirmCancel { lease, reason: "asked to".into() }).await;
    let record = store.record(lease.task).await;
    let expected = AttemptError { attempt: 1, at: store.now(), message: "asked to".into() };
    assert_eq!((record.state, record.errors), (TaskState::Cancelled, vec![expected]));
}

/// Shows: T15
pub async fn a_report_is_seen_and_a_later_one_replaces_it(store: TestStore) {
    let lease = store.running(task("k")).await;
    for fraction in [0.25, 0.5] {
        store.done(Write::Report { lease, fraction: Some(fraction), message: Some("half".into()), bytes: None }).await;
    }
    let expected = Progress { fraction: Some(0.5), message: Some("half".into()), at: store.now(), bytes: None };
    assert_eq!(store.record(lease.task).await.progress, Some(expected));
}

pub async fn a_reported_fraction_is_clamped(store: TestStore) {
    let lease = store.running(task("k")).await;
    for (reported, kept) in [(7.0, Some(1.0)), (-1.0, Some(0.0)), (f32::NAN, None)] {
        store.done(Write::Report { lease, fraction: Some(reported), message: None, bytes: None }).await;
        assert_eq!(store.record(lease.task).await.progress.and_then(|progress| progress.fraction), kept);
    }
}

pub async fn the_last_report_stays_with_the_ended_task(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.done(Write::Report { lease, fraction: None, message: Some("nearly".into()), bytes: None }).await;
    store.complete(lease).await;
    let progress = store.record(lease.task).await.progress;
    assert_eq!(progress.and_then(|progress| progress.message).as_deref(), Some("nearly"));
}

/// Shows: T15
pub async fn reported_bytes_are_seen_and_stay_with_the_ended_task(store: TestStore) {
    let lease = store.running(task("k")).await;
    for (done, total) in [(1, None), (0, Some(0)), (u64::MAX, Some(u64::MAX)), (7, Some(9))] {
        let bytes = Some(ByteProgress { done, total });
        store.done(Write::Report { lease, fraction: None, message: None, bytes }).await;
        let most = i64::MAX.cast_unsigned();
        let kept = ByteProgress { done: done.min(most), total: total.map(|total| total.min(most)) };
        assert_eq!(store.record(lease.task).await.progress.and_then(|progress| progress.bytes), Some(kept));
    }
    store.complete(lease).await;
    let progress = store.record(lease.task).await.progress;
    assert_eq!(progress.and_then(|progress| progress.bytes), Some(ByteProgress { done: 7, total: Some(9) }));
}

/// Shows: T15
pub async fn a_report_without_bytes_replaces_one_with_bytes(store: TestStore) {
    let lease = store.running(task("k")).await;
    for bytes in [Some(ByteProgress { done: 7, total: Some(9) }), None] {
        store.done(Write::Report { lease, fraction: Some(0.5), message: None, bytes }).await;
    }
    let expected = Progress { fraction: Some(0.5), message: None, at: store.now(), bytes: None };
    assert_eq!(store.record(lease.task).await.progress, Some(expected));
}

fn every_write_under(lease: Lease) -> [Write; 5] {
    [
        Write::Complete { lease, result: None },
        Write::Fail { lease, error: "late".into(), next: AfterFailure::Dead },
        Write::Release { lease, after: Duration::ZERO },
        Write::ConfirmCancel { lease, reason: "late".into() },
        Write::Report { lease, fraction: None, message: None, bytes: None },
    ]
}

pub async fn no_write_of_an_outdated_claim_is_taken(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.release(lease, Duration::ZERO).await;
    store.claim_one(lease.session).await;
    let before = store.record(lease.task).await;
    for write in every_write_under(lease) {
        assert_eq!(store.refused(write).await, Refusal::LeaseLost(lease));
    }
    assert_eq!(store.record(lease.task).await, before);
}

pub async fn no_write_under_a_lease_of_another_session_is_taken(store: TestStore) {
    let lease = store.running(task("k")).await;
    let forged = Lease { session: store.session().await, ..lease };
    for write in every_write_under(forged) {
        assert_eq!(store.refused(write).await, Refusal::LeaseLost(forged));
    }
}

pub async fn no_write_for_an_unknown_task_is_taken(store: TestStore) {
    let forged = Lease { task: TaskId(9), session: store.session().await, claim: 1 };
    for write in every_write_under(forged) {
        assert_eq!(store.refused(write).await, Refusal::LeaseLost(forged));
    }
}

pub async fn no_write_of_an_unknown_session_is_taken(store: TestStore) {
    let lease = store.running(task("k")).await;
    let forged = Lease { session: SessionId(99), ..lease };
    for write in every_write_under(forged) {
        assert_eq!(store.refused(write).await, Refusal::SessionLost(SessionId(99)));
    }
}

pub async fn no_write_on_a_waiting_task_is_taken(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(SECOND)).await;
    for write in every_write_under(lease) {
        assert_eq!(store.refused(write).await, Refusal::LeaseLost(lease));
    }
}

pub async fn a_write_may_use_a_lease_that_an_earlier_one_of_its_call_took(store: TestStore) {
    let lease = store.running(task("k")).await;
    let release = Write::Release { lease, after: Duration::ZERO };
    let outcomes = store.apply(vec![release, Write::Complete { lease, result: None }]).await;
    assert_eq!(outcomes, [Outcome::Done, Outcome::Refused(Refusal::LeaseLost(lease))]);
}
