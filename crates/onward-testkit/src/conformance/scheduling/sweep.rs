//! Effects of time: due tasks, times to live, and the moment of the next change.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, NewTask, OnDuplicate, Priority, Refusal, Scope, StoreReads, Swept, TaskId, TaskState, Ttl,
    TtlFrom, When, Write, bounds,
};

use crate::test_store::{LEASE, TestStore, after, all_of, keyed, numbers, task};

const SECOND: Duration = Duration::from_secs(1);
const MICROSECOND: Duration = Duration::from_micros(1);

fn delayed(delay: Duration) -> NewTask {
    NewTask { when: When::After(delay), ..task("k") }
}

fn living(duration: Duration, from: TtlFrom) -> NewTask {
    NewTask { ttl: Some(Ttl { duration, from }), ..task("k") }
}

pub async fn an_empty_store_has_nothing_to_sweep(store: TestStore) {
    assert_eq!(store.sweep().await, Swept::default());
}

/// Shows: T5
pub async fn a_sweep_makes_due_tasks_wait(store: TestStore) {
    let id = store.submit_new(delayed(SECOND)).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.due, 1);
    assert_eq!(store.state(id).await, TaskState::Waiting);
}

pub async fn a_sweep_leaves_what_is_not_due(store: TestStore) {
    store.submit_new(delayed(SECOND)).await;
    store.advance(SECOND - MICROSECOND);
    assert_eq!(store.sweep().await, Swept { next_due: Some(MICROSECOND), ..Swept::default() });
}

pub async fn a_read_makes_nothing_due(store: TestStore) {
    let id = store.submit_new(delayed(SECOND)).await;
    store.advance(SECOND);
    assert_eq!(store.state(id).await, TaskState::Scheduled);
    assert_eq!(store.queue("default").await.map(|queue| (queue.scheduled, queue.waiting)), Some((1, 0)));
}

pub async fn a_task_made_due_keeps_the_moment_it_was_due(store: TestStore) {
    let id = store.submit_new(delayed(SECOND)).await;
    let due = store.now().plus(SECOND);
    store.advance(SECOND * 5);
    store.sweep().await;
    assert_eq!(store.record(id).await.run_at, due);
}

pub async fn wall_time_set_back_does_not_take_a_due_task_back(store: TestStore) {
    let id = store.submit_new(delayed(SECOND)).await;
    store.advance(SECOND);
    store.sweep().await;
    store.clock().set_wall(store.now().minus(SECOND * 60));
    assert_eq!(store.start_one().await.task, id);
}

pub async fn a_sweep_makes_a_bounded_number_due_and_leaves_the_rest_to_the_next(store: TestStore) {
    store.apply((0..1100).map(|_| Write::Submit(Box::new(delayed(SECOND)))).collect()).await;
    store.advance(SECOND);
    let first = store.sweep().await;
    assert_eq!((first.due, first.next_due), (1024, Some(Duration::ZERO)));
    assert_eq!((store.sweep().await.due, store.sweep().await.due), (76, 0));
}

pub async fn a_time_to_live_from_submission_is_shown(store: TestStore) {
    let id = store.submit_new(living(Duration::from_millis(250), TtlFrom::Submission)).await;
    assert_eq!(store.record(id).await.expires_at, Some(store.now().plus(Duration::from_millis(250))));
}

/// Shows: T6
/// Beats: rounded-ttl
pub async fn a_time_to_live_below_a_second_is_exact(store: TestStore) {
    let id = store.submit_new(living(Duration::from_micros(1500), TtlFrom::Submission)).await;
    store.advance(Duration::from_micros(1499));
    assert_eq!(store.sweep().await.expired, 0);
    store.advance(MICROSECOND);
    assert_eq!(store.sweep().await.expired, 1);
    let record = store.record(id).await;
    assert_eq!((record.state, record.finished_at), (TaskState::Expired, Some(store.now())));
}

pub async fn a_scheduled_task_may_expire_before_it_is_due(store: TestStore) {
    let new = NewTask { when: When::After(SECOND * 9), ..living(SECOND, TtlFrom::Submission) };
    let id = store.submit_new(new).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 1);
    assert_eq!(store.state(id).await, TaskState::Expired);
}

/// Shows: T6
pub async fn a_task_that_waits_when_its_deadline_passes_expires(store: TestStore) {
    let deadline = store.now().plus(SECOND * 2);
    let lease = store.running(NewTask { deadline: Some(deadline), ..task("retried") }).await;
    let first = store.submit_new(NewTask { deadline: Some(deadline), ..task("k") }).await;
    store.advance(SECOND);
    store.release(lease, SECOND * 5).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 2);
    assert_eq!([store.state(first).await, store.state(lease.task).await], [TaskState::Expired; 2]);
}

/// Shows: T6
pub async fn a_task_that_is_submitted_past_its_deadline_expires_at_once(store: TestStore) {
    let id = store.submit_new(NewTask { deadline: Some(store.now()), ..task("k") }).await;
    assert_eq!(store.state(id).await, TaskState::Expired);
}

/// Shows: T6
pub async fn a_task_is_not_retried_past_its_deadline(store: TestStore) {
    let id = store.submit_new(NewTask { deadline: Some(store.now().plus(SECOND)), ..task("k") }).await;
    store.advance(SECOND);
    store.sweep().await;
    let Refusal::Invalid(text) = store.refused(Write::Retry { task: id }).await else { unreachable!("it is invalid") };
    assert!(text.contains("deadline"), "{text}");
    assert_eq!(store.state(id).await, TaskState::Expired);
}

/// Shows: T6
pub async fn an_expired_task_is_not_claimed(store: TestStore) {
    store.submit_new(living(SECOND, TtlFrom::Submission)).await;
    let next = store.submit("k").await;
    store.advance(SECOND);
    let session = store.session().await;
    assert_eq!(numbers(&store.claim(session, 1).await), [next]);
}

pub async fn a_claim_of_many_expired_tasks_returns_none(store: TestStore) {
    let expiring = (0..1500).map(|_| Write::Submit(Box::new(living(SECOND, TtlFrom::Submission)))).collect();
    store.apply(expiring).await;
    let last = store.submit("k").await;
    store.advance(SECOND);
    let session = store.session().await;
    assert_eq!(numbers(&store.claim(session, 1).await), [last]);
}

/// Starts a task whose lease and time to live end before the next claim, which takes it back. A
/// duplicate of this priority follows it.
async fn expires_within_the_next_claim(store: &TestStore, follower: Priority) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::FirstAttempt });
    store.running(NewTask { ttl, ..keyed("a", OnDuplicate::Requeue) }).await;
    store.submitted(NewTask { priority: follower, ..keyed("a", OnDuplicate::Requeue) }).await;
    store.advance(LEASE);
}

pub async fn a_follower_of_a_task_that_expires_in_a_claim_is_claimed_in_queue_order(store: TestStore) {
    expires_within_the_next_claim(&store, Priority::NORMAL).await;
    let session = store.session().await;
    assert_eq!(numbers(&store.claim(session, 1).await), [TaskId(2)]);
}

pub async fn an_urgent_task_that_follows_one_that_expires_in_a_claim_comes_first(store: TestStore) {
    expires_within_the_next_claim(&store, Priority::HIGH).await;
    let waiting = store.submit("keyed").await;
    let session = store.session().await;
    let follower = TaskId(3);
    assert_eq!(numbers(&store.claim(session, 1).await), [follower]);
    assert_eq!(numbers(&store.claim(session, 1).await), [waiting]);
}

pub async fn peek_passes_over_what_has_expired(store: TestStore) {
    store.submit_new(living(SECOND, TtlFrom::Submission)).await;
    let next = store.submit("k").await;
    store.advance(SECOND);
    let peeked = store.inner().peek(all_of(onward_store::SessionId(0), 0)).await;
    assert_eq!(peeked.ok().flatten().map(|task| task.id), Some(next));
}

/// Shows: T6
pub async fn a_started_task_does_not_expire(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.advance(SECOND * 2);
    assert_eq!(store.sweep().await.expired, 0);
    assert_eq!(store.record(lease.task).await.expires_at, None);
    store.complete(lease).await;
}

pub async fn a_time_to_live_from_submission_is_over_with_the_first_start(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.fail(lease, after(Duration::ZERO)).await;
    store.advance(SECOND * 9);
    assert_eq!(store.sweep().await.expired, 0);
}

pub async fn a_released_task_expires_as_if_it_had_not_been_claimed(store: TestStore) {
    let expires_at = Some(store.now().plus(SECOND));
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.release(lease, Duration::ZERO).await;
    assert_eq!(store.record(lease.task).await.expires_at, expires_at);
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 1);
}

pub async fn a_task_released_after_its_time_to_live_expires(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.advance(SECOND * 2);
    store.release(lease, Duration::ZERO).await;
    assert_eq!(store.claim(lease.session, 1).await, []);
    assert_eq!(store.state(lease.task).await, TaskState::Expired);
}

pub async fn a_closed_sessions_tasks_expire_as_if_they_had_not_been_claimed(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.done(Write::CloseSession { session: lease.session }).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 1);
}

pub async fn a_released_first_attempt_starts_no_time_to_live(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::FirstAttempt)).await;
    store.release(lease, Duration::ZERO).await;
    assert_eq!(store.record(lease.task).await.expires_at, None);
    store.advance(SECOND * 9);
    assert_eq!(store.sweep().await.expired, 0);
}

pub async fn a_released_second_attempt_keeps_the_time_to_live_from_the_first(store: TestStore) {
    let lease = store.running(living(SECOND * 5, TtlFrom::FirstAttempt)).await;
    let expires_at = store.record(lease.task).await.expires_at;
    store.fail(lease, after(Duration::ZERO)).await;
    let second = store.claim_one(lease.session).await;
    store.release(second, Duration::ZERO).await;
    assert_eq!(store.record(lease.task).await.expires_at, expires_at);
}

pub async fn a_released_second_attempt_brings_no_time_to_live_from_submission_back(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.fail(lease, uncounted(false)).await;
    let second = store.claim_one(lease.session).await;
    store.release(second, Duration::ZERO).await;
    assert_eq!(store.record(lease.task).await.expires_at, None);
}

pub async fn a_released_attempt_that_was_held_on_to_brings_no_time_to_live_back(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    let second = store.fail(lease, uncounted(true)).await.lease.expect("the session holds on to it");
    store.release(second, Duration::ZERO).await;
    assert_eq!(store.record(lease.task).await.expires_at, None);
}

pub async fn a_second_release_brings_the_time_to_live_back_again(store: TestStore) {
    let expires_at = Some(store.now().plus(SECOND));
    let lease = store.running(living(SECOND, TtlFrom::Submission)).await;
    store.release(lease, Duration::ZERO).await;
    let again = store.claim_one(lease.session).await;
    store.release(again, Duration::ZERO).await;
    assert_eq!(store.record(lease.task).await.expires_at, expires_at);
}

/// Returns a retry at once that does not use up an attempt.
fn uncounted(hold: bool) -> AfterFailure {
    AfterFailure::Retry { after: Duration::ZERO, uses_attempt: false, hold }
}

/// Shows: T6
pub async fn a_time_to_live_from_the_first_attempt_begins_with_it(store: TestStore) {
    let id = store.submit_new(living(SECOND, TtlFrom::FirstAttempt)).await;
    assert_eq!(store.record(id).await.expires_at, None);
    store.advance(SECOND * 5);
    store.start_one().await;
    assert_eq!(store.record(id).await.expires_at, Some(store.now().plus(SECOND)));
}

/// Shows: T6
pub async fn no_attempt_starts_after_a_time_to_live_from_the_first(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::FirstAttempt)).await;
    store.fail(lease, after(Duration::ZERO)).await;
    store.advance(SECOND);
    assert_eq!(store.claim(lease.session, 1).await, []);
    assert_eq!(store.state(lease.task).await, TaskState::Expired);
}

pub async fn a_second_attempt_does_not_prolong_the_time_to_live(store: TestStore) {
    let lease = store.running(living(SECOND * 5, TtlFrom::FirstAttempt)).await;
    let expires_at = store.record(lease.task).await.expires_at;
    store.fail(lease, after(Duration::ZERO)).await;
    store.advance(SECOND);
    store.claim_one(lease.session).await;
    assert_eq!(store.record(lease.task).await.expires_at, expires_at);
}

pub async fn a_session_may_not_hold_an_expired_task(store: TestStore) {
    let lease = store.running(living(SECOND, TtlFrom::FirstAttempt)).await;
    store.advance(SECOND);
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    assert_eq!(store.fail(lease, hold).await.lease, None);
    store.sweep().await;
    assert_eq!(store.state(lease.task).await, TaskState::Expired);
}

pub async fn an_expired_tasks_key_is_free(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    store.submit_new(NewTask { ttl, ..keyed("a", OnDuplicate::Skip) }).await;
    store.advance(SECOND);
    store.sweep().await;
    store.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

/// Shows: T16
pub async fn an_expiry_makes_an_event(store: TestStore) {
    store.submit_new(living(SECOND, TtlFrom::Submission)).await;
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(store.changes().await, [(TaskId(1), Change::Submitted), (TaskId(1), Change::Expired)]);
}

async fn next_due(store: &TestStore) -> Option<Duration> {
    let swept = store.sweep().await.next_due;
    let session = store.session().await;
    assert_eq!(store.claimed(all_of(session, 0)).await.next_due, swept, "a claim and a sweep agree");
    swept
}

pub async fn what_waits_already_is_not_due_next(store: TestStore) {
    store.submit("k").await;
    assert_eq!(next_due(&store).await, None);
}

pub async fn the_next_scheduled_task_is_due_next(store: TestStore) {
    store.submit_new(delayed(SECOND * 9)).await;
    store.submit_new(delayed(SECOND * 2)).await;
    store.advance(SECOND);
    assert_eq!(next_due(&store).await, Some(SECOND));
}

pub async fn the_next_expiry_is_due_next(store: TestStore) {
    store.submit_new(living(SECOND, TtlFrom::Submission)).await;
    assert_eq!(next_due(&store).await, Some(SECOND));
}

pub async fn the_next_lapse_is_due_next(store: TestStore) {
    store.running(task("k")).await;
    store.advance(SECOND);
    assert_eq!(next_due(&store).await, Some(SECOND * 9));
}

pub async fn a_session_that_holds_nothing_is_not_due_next(store: TestStore) {
    store.session().await;
    assert_eq!(next_due(&store).await, None);
}

pub async fn the_end_of_a_pause_is_due_next(store: TestStore) {
    store.pause(Scope::All, Some(store.now().plus(SECOND))).await;
    assert_eq!(next_due(&store).await, Some(SECOND));
}

/// Lets more tasks of the kind `k` expire than one sweep ends. The expired task of the kind
/// `keyed`, whose key has a follower, is left to a claim.
async fn leave_an_expired_task_with_a_follower(store: &TestStore, follower: Priority, then: &[&str]) {
    let ttl = Some(Ttl { duration: SECOND * 5, from: TtlFrom::FirstAttempt });
    store.running(NewTask { ttl, ..keyed("a", OnDuplicate::Requeue) }).await;
    store.submitted(NewTask { priority: follower, ..keyed("a", OnDuplicate::Requeue) }).await;
    for kind in then {
        store.submit(kind).await;
    }
    let crowd = (0..bounds::SWEEP + 76).map(|_| Write::Submit(Box::new(living(SECOND, TtlFrom::Submission))));
    store.apply(crowd.collect()).await;
    store.advance(LEASE);
}

pub async fn a_follower_of_an_expired_task_that_a_sweep_left_behind_is_claimed_at_once(store: TestStore) {
    leave_an_expired_task_with_a_follower(&store, Priority::NORMAL, &[]).await;
    let session = store.session().await;
    assert_eq!(store.claim_kinds(session, 1, &["keyed"]).await.len(), 1);
}

pub async fn what_follows_an_expired_task_more_urgently_is_not_lost(store: TestStore) {
    leave_an_expired_task_with_a_follower(&store, Priority::HIGH, &["keyed"]).await;
    let session = store.session().await;
    let mut claimed = store.claim_kinds(session, 1, &["keyed"]).await;
    claimed.extend(store.claim_kinds(session, 1, &["keyed"]).await);
    assert_eq!(claimed.len(), 2);
}
