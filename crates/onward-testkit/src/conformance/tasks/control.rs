//! Cancellation, retries and pauses.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, NewTask, OnDuplicate, Outcome, PauseRecord, Refusal, Scope, SessionId, StoreReads, TaskId,
    TaskResult, TaskState, Ttl, TtlFrom, WaitReason, When, Write,
};

use crate::test_store::{TestStore, after, all_of, keyed, name, numbers, task};

const SECOND: Duration = Duration::from_secs(1);

/// Shows: T13
pub async fn a_waiting_task_is_cancelled_at_once(store: TestStore) {
    let task = store.submit("k").await;
    assert_eq!(store.cancel(task).await, Outcome::Cancelled);
    let record = store.record(task).await;
    assert_eq!((record.state, record.finished_at, record.attempts), (TaskState::Cancelled, Some(store.now()), 0));
}

/// Shows: T13
pub async fn a_scheduled_task_is_cancelled_at_once(store: TestStore) {
    let id = store.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    assert_eq!(store.cancel(id).await, Outcome::Cancelled);
    assert_eq!(store.state(id).await, TaskState::Cancelled);
}

pub async fn a_cancelled_task_is_not_claimed(store: TestStore) {
    let task = store.submit("k").await;
    store.cancel(task).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await, []);
}

/// Shows: T13
pub async fn a_running_task_is_asked_to_stop(store: TestStore) {
    let lease = store.running(task("k")).await;
    assert_eq!(store.cancel(lease.task).await, Outcome::CancelRequested);
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Running, true));
}

pub async fn asking_a_running_task_again_changes_nothing(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    assert_eq!(store.cancel(lease.task).await, Outcome::CancelRequested);
    let asked = store.changes().await.into_iter().filter(|(_, change)| *change == Change::CancelRequested);
    assert_eq!(asked.count(), 1);
}

pub async fn an_unknown_task_is_not_cancelled(store: TestStore) {
    let task = TaskId(9);
    assert_eq!(store.refused(Write::Cancel { task }).await, Refusal::TaskNotFound(task));
}

pub async fn an_ended_task_is_not_cancelled(store: TestStore) {
    let task = store.completed(task("k")).await;
    let state = TaskState::Completed;
    assert_eq!(store.refused(Write::Cancel { task }).await, Refusal::AlreadyEnded { task, state });
}

async fn dead(store: &TestStore, new: NewTask) -> TaskId {
    let lease = store.running(new).await;
    store.done(Write::Report { lease, fraction: Some(0.5), message: None, bytes: None }).await;
    store.fail(lease, AfterFailure::Dead).await;
    lease.task
}

pub async fn an_ended_task_can_be_retried_under_its_number(store: TestStore) {
    let id = dead(&store, task("k")).await;
    store.advance(SECOND);
    store.retry(id).await;
    let record = store.record(id).await;
    assert_eq!((record.state, record.attempts, record.run_at), (TaskState::Waiting, 0, store.now()));
    assert_eq!(record.submitted_at, store.now().minus(SECOND));
    assert_eq!((record.finished_at, record.progress, record.result), (None, None, TaskResult::None));
}

pub async fn retrying_forgets_the_result(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.done(Write::Complete { lease, result: Some("old".into()) }).await;
    store.retry(lease.task).await;
    assert_eq!(store.record(lease.task).await.result, TaskResult::None);
}

pub async fn retrying_keeps_the_errors(store: TestStore) {
    let id = dead(&store, task("k")).await;
    store.retry(id).await;
    assert_eq!(store.record(id).await.errors.len(), 1);
}

pub async fn every_kind_of_end_can_be_retried(store: TestStore) {
    let completed = store.completed(task("k")).await;
    let cancelled = store.submit("k").await;
    store.cancel(cancelled).await;
    for id in [completed, cancelled] {
        store.retry(id).await;
        assert_eq!(store.state(id).await, TaskState::Waiting);
    }
}

pub async fn retrying_forgets_that_it_was_cancelled(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    store.release(lease, Duration::ZERO).await;
    store.retry(lease.task).await;
    assert!(!store.record(lease.task).await.cancel_requested);
}

pub async fn a_claim_after_retrying_outdates_older_leases(store: TestStore) {
    let id = dead(&store, task("k")).await;
    store.retry(id).await;
    let session = store.session().await;
    let claimed = store.claim(session, 1).await.remove(0);
    assert_eq!((claimed.lease.claim, claimed.attempt), (2, 1));
}

pub async fn a_retry_resets_the_count_of_lost_leases(store: TestStore) {
    let id = store.submit("k").await;
    for _ in 0..3 {
        store.start_one().await;
        store.lapse().await;
    }
    store.retry(id).await;
    store.start_one().await;
    store.lapse().await;
    assert_eq!(store.state(id).await, TaskState::Waiting);
}

pub async fn retrying_gives_a_new_time_to_live(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    let id = store.submit_new(NewTask { ttl, ..task("k") }).await;
    store.advance(SECOND);
    store.sweep().await;
    store.retry(id).await;
    assert_eq!(store.record(id).await.expires_at, Some(store.now().plus(SECOND)));
}

pub async fn an_unknown_task_is_not_retried(store: TestStore) {
    let task = TaskId(9);
    assert_eq!(store.refused(Write::Retry { task }).await, Refusal::TaskNotFound(task));
}

pub async fn a_live_task_is_not_retried(store: TestStore) {
    let task = store.submit("k").await;
    let refusal = store.refused(Write::Retry { task }).await;
    assert_eq!(refusal, Refusal::NotEnded { task, state: TaskState::Waiting });
    store.start_one().await;
    let refusal = store.refused(Write::Retry { task }).await;
    assert_eq!(refusal, Refusal::NotEnded { task, state: TaskState::Running });
}

pub async fn a_task_whose_key_is_taken_is_not_retried(store: TestStore) {
    let task = store.completed(keyed("a", OnDuplicate::Skip)).await;
    let by = store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    assert_eq!(store.refused(Write::Retry { task }).await, Refusal::KeyTaken { task, by });
    assert_eq!(store.state(task).await, TaskState::Completed);
}

pub async fn retrying_takes_the_key_again(store: TestStore) {
    let id = store.completed(keyed("a", OnDuplicate::Skip)).await;
    store.retry(id).await;
    let duplicate = store.submitted(keyed("a", OnDuplicate::Reject)).await;
    assert_eq!(duplicate, onward_store::Submitted::Rejected { id });
}

async fn claimable(store: &TestStore) -> Vec<TaskId> {
    let session = store.session().await;
    let ids = numbers(&store.claim(session, 100).await);
    store.done(Write::CloseSession { session }).await;
    ids
}

/// Shows: T14
pub async fn a_pause_of_everything_stops_claims(store: TestStore) {
    let id = store.submit("k").await;
    store.pause(Scope::All, None).await;
    assert_eq!(claimable(&store).await, []);
    store.done(Write::Resume { scope: Scope::All }).await;
    assert_eq!(claimable(&store).await, [id]);
}

/// Shows: T14
pub async fn a_pause_of_a_queue_stops_claims_of_it(store: TestStore) {
    store.submit_new(NewTask { queue: name("a"), ..task("k") }).await;
    let other = store.submit_new(NewTask { queue: name("b"), ..task("k") }).await;
    store.pause(Scope::Queue(name("a")), None).await;
    assert_eq!(claimable(&store).await, [other]);
}

/// Shows: T14
pub async fn a_pause_of_a_kind_stops_claims_of_it(store: TestStore) {
    store.submit("a").await;
    let other = store.submit("b").await;
    store.pause(Scope::Kind(name("a")), None).await;
    assert_eq!(claimable(&store).await, [other]);
}

/// Shows: T14
pub async fn pauses_of_different_scopes_combine(store: TestStore) {
    store.submit("k").await;
    store.pause(Scope::All, None).await;
    store.pause(Scope::Kind(name("k")), None).await;
    store.done(Write::Resume { scope: Scope::All }).await;
    assert_eq!(claimable(&store).await, []);
}

/// Shows: T14
pub async fn a_submission_respects_a_pause(store: TestStore) {
    store.pause(Scope::Queue(name("default")), None).await;
    store.submit("k").await;
    assert_eq!(claimable(&store).await, []);
}

pub async fn a_running_task_continues_in_a_pause(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.pause(Scope::All, None).await;
    store.complete(lease).await;
}

/// Shows: T14
pub async fn a_pause_ends_at_its_moment(store: TestStore) {
    let id = store.submit("k").await;
    store.pause(Scope::All, Some(store.now().plus(SECOND))).await;
    store.advance(SECOND - Duration::from_micros(1));
    assert_eq!(claimable(&store).await, []);
    store.advance(Duration::from_micros(1));
    assert_eq!(claimable(&store).await, [id]);
}

pub async fn pausing_again_replaces_the_moment(store: TestStore) {
    store.submit("k").await;
    store.pause(Scope::All, Some(store.now().plus(SECOND))).await;
    store.pause(Scope::All, None).await;
    store.advance(SECOND);
    assert_eq!(claimable(&store).await, []);
}

pub async fn pauses_are_shown_in_the_order_of_their_scopes(store: TestStore) {
    let until = Some(store.now().plus(SECOND));
    let scopes = [Scope::All, Scope::Queue(name("a")), Scope::Queue(name("b")), Scope::Kind(name("a"))];
    for scope in scopes.iter().rev() {
        store.pause(scope.clone(), until).await;
    }
    let expected: Vec<PauseRecord> = scopes.into_iter().map(|scope| PauseRecord { scope, until }).collect();
    assert_eq!(store.inner().pauses().await.ok(), Some(expected));
}

pub async fn an_elapsed_pause_is_gone_after_a_sweep(store: TestStore) {
    store.pause(Scope::All, Some(store.now().plus(SECOND))).await;
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(store.inner().pauses().await.ok(), Some(vec![]));
}

/// Shows: B6
pub async fn a_pause_that_is_over_is_shown_by_no_read_though_nothing_was_written_since(store: TestStore) {
    let task = store.submit("k").await;
    let until = Some(store.now().plus(SECOND));
    for scope in [Scope::All, Scope::Queue(name("default")), Scope::Kind(name("k"))] {
        store.pause(scope, until).await;
    }
    store.advance(SECOND);
    assert_eq!(store.inner().pauses().await.ok(), Some(vec![]));
    assert_eq!(store.queue("default").await.map(|queue| queue.paused), Some(false));
    assert_eq!(why(&store, task).await, [WaitReason::NoWorker]);
}

/// Shows: B6
pub async fn a_task_that_has_come_due_does_not_say_that_it_is_not(store: TestStore) {
    let id = store.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    let run_at = store.now().plus(SECOND);
    assert_eq!(why(&store, id).await, [WaitReason::NotDue { run_at }, WaitReason::NoWorker]);
    store.advance(SECOND);
    assert_eq!(why(&store, id).await, [WaitReason::NoWorker]);
}

async fn why(store: &TestStore, task: TaskId) -> Vec<WaitReason> {
    store.inner().why(task).await.ok().flatten().unwrap_or_default()
}

pub async fn resuming_what_is_not_paused_is_done(store: TestStore) {
    store.done(Write::Resume { scope: Scope::Queue(name("never")) }).await;
    assert_eq!(store.queue("never").await, None);
}

pub async fn peek_passes_over_what_is_paused(store: TestStore) {
    store.submit("a").await;
    let other = store.submit("b").await;
    store.pause(Scope::Kind(name("a")), None).await;
    let peeked = store.inner().peek(all_of(SessionId(0), 0)).await;
    assert_eq!(peeked.ok().flatten().map(|task| task.id), Some(other));
}

pub async fn a_delay_elapses_in_a_pause(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(SECOND)).await;
    store.pause(Scope::All, None).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.due, 1);
    assert_eq!(store.state(lease.task).await, TaskState::Waiting);
}
