//! Effects of time: due tasks, times to live, and the moment of the next change.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, NewTask, OnDuplicate, Priority, Refusal, Scope, StoreReads, Swept, TaskId, TaskState, Ttl,
    TtlFrom, When, Write, bounds,
};

use crate::bench::{Bench, LEASE, after, all_of, keyed, numbers, task};

const SECOND: Duration = Duration::from_secs(1);
const MICROSECOND: Duration = Duration::from_micros(1);

fn delayed(delay: Duration) -> NewTask {
    NewTask { when: When::After(delay), ..task("k") }
}

fn living(duration: Duration, from: TtlFrom) -> NewTask {
    NewTask { ttl: Some(Ttl { duration, from }), ..task("k") }
}

pub async fn an_empty_store_has_nothing_to_sweep(bench: Bench) {
    assert_eq!(bench.sweep().await, Swept::default());
}

/// Shows: T5
pub async fn a_sweep_makes_due_tasks_wait(bench: Bench) {
    let id = bench.submit_new(delayed(SECOND)).await;
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.due, 1);
    assert_eq!(bench.state(id).await, TaskState::Waiting);
}

pub async fn a_sweep_leaves_what_is_not_due(bench: Bench) {
    bench.submit_new(delayed(SECOND)).await;
    bench.advance(SECOND - MICROSECOND);
    assert_eq!(bench.sweep().await, Swept { next_due: Some(MICROSECOND), ..Swept::default() });
}

pub async fn a_read_makes_nothing_due(bench: Bench) {
    let id = bench.submit_new(delayed(SECOND)).await;
    bench.advance(SECOND);
    assert_eq!(bench.state(id).await, TaskState::Scheduled);
    assert_eq!(bench.queue("default").await.map(|queue| (queue.scheduled, queue.waiting)), Some((1, 0)));
}

pub async fn a_task_made_due_keeps_the_moment_it_was_due(bench: Bench) {
    let id = bench.submit_new(delayed(SECOND)).await;
    let due = bench.now().plus(SECOND);
    bench.advance(SECOND * 5);
    bench.sweep().await;
    assert_eq!(bench.record(id).await.run_at, due);
}

pub async fn wall_time_set_back_does_not_take_a_due_task_back(bench: Bench) {
    let id = bench.submit_new(delayed(SECOND)).await;
    bench.advance(SECOND);
    bench.sweep().await;
    bench.clock().set_wall(bench.now().minus(SECOND * 60));
    assert_eq!(bench.start_one().await.task, id);
}

pub async fn a_sweep_makes_so_many_due_and_leaves_the_rest_to_the_next(bench: Bench) {
    bench.apply((0..1100).map(|_| Write::Submit(Box::new(delayed(SECOND)))).collect()).await;
    bench.advance(SECOND);
    let first = bench.sweep().await;
    assert_eq!((first.due, first.next_due), (1024, Some(Duration::ZERO)));
    assert_eq!((bench.sweep().await.due, bench.sweep().await.due), (76, 0));
}

pub async fn a_time_to_live_from_submission_is_shown(bench: Bench) {
    let id = bench.submit_new(living(Duration::from_millis(250), TtlFrom::Submission)).await;
    assert_eq!(bench.record(id).await.expires_at, Some(bench.now().plus(Duration::from_millis(250))));
}

/// Shows: T6
/// Beats: rounded-ttl
pub async fn a_time_to_live_below_a_second_is_exact(bench: Bench) {
    let id = bench.submit_new(living(Duration::from_micros(1500), TtlFrom::Submission)).await;
    bench.advance(Duration::from_micros(1499));
    assert_eq!(bench.sweep().await.expired, 0);
    bench.advance(MICROSECOND);
    assert_eq!(bench.sweep().await.expired, 1);
    let record = bench.record(id).await;
    assert_eq!((record.state, record.finished_at), (TaskState::Expired, Some(bench.now())));
}

pub async fn a_scheduled_task_may_expire_before_it_is_due(bench: Bench) {
    let new = NewTask { when: When::After(SECOND * 9), ..living(SECOND, TtlFrom::Submission) };
    let id = bench.submit_new(new).await;
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.expired, 1);
    assert_eq!(bench.state(id).await, TaskState::Expired);
}

/// Shows: T6
pub async fn a_task_that_waits_when_its_deadline_passes_expires(bench: Bench) {
    let deadline = bench.now().plus(SECOND * 2);
    let lease = bench.running(NewTask { deadline: Some(deadline), ..task("retried") }).await;
    let first = bench.submit_new(NewTask { deadline: Some(deadline), ..task("k") }).await;
    bench.advance(SECOND);
    bench.release(lease, SECOND * 5).await;
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.expired, 2);
    assert_eq!([bench.state(first).await, bench.state(lease.task).await], [TaskState::Expired; 2]);
}

/// Shows: T6
pub async fn a_task_that_is_submitted_past_its_deadline_expires_at_once(bench: Bench) {
    let id = bench.submit_new(NewTask { deadline: Some(bench.now()), ..task("k") }).await;
    assert_eq!(bench.state(id).await, TaskState::Expired);
}

/// Shows: T6
pub async fn a_task_is_not_retried_past_its_deadline(bench: Bench) {
    let id = bench.submit_new(NewTask { deadline: Some(bench.now().plus(SECOND)), ..task("k") }).await;
    bench.advance(SECOND);
    bench.sweep().await;
    let Refusal::Invalid(text) = bench.refused(Write::Retry { task: id }).await else { unreachable!("it is invalid") };
    assert!(text.contains("deadline"), "{text}");
    assert_eq!(bench.state(id).await, TaskState::Expired);
}

/// Shows: T6
pub async fn an_expired_task_is_not_claimed(bench: Bench) {
    bench.submit_new(living(SECOND, TtlFrom::Submission)).await;
    let next = bench.submit("k").await;
    bench.advance(SECOND);
    let session = bench.session().await;
    assert_eq!(numbers(&bench.claim(session, 1).await), [next]);
}

pub async fn a_claim_of_many_expired_tasks_hands_out_none(bench: Bench) {
    let expiring = (0..1500).map(|_| Write::Submit(Box::new(living(SECOND, TtlFrom::Submission)))).collect();
    bench.apply(expiring).await;
    let last = bench.submit("k").await;
    bench.advance(SECOND);
    let session = bench.session().await;
    assert_eq!(numbers(&bench.claim(session, 1).await), [last]);
}

/// Starts a task whose lease and time to live end before the next claim, which takes it back. A
/// duplicate of this priority follows it.
async fn expires_within_the_next_claim(bench: &Bench, follower: Priority) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::FirstAttempt });
    bench.running(NewTask { ttl, ..keyed("a", OnDuplicate::Requeue) }).await;
    bench.submitted(NewTask { priority: follower, ..keyed("a", OnDuplicate::Requeue) }).await;
    bench.advance(LEASE);
}

pub async fn what_follows_a_task_that_expires_in_a_claim_is_handed_out_in_its_turn(bench: Bench) {
    expires_within_the_next_claim(&bench, Priority::NORMAL).await;
    let session = bench.session().await;
    assert_eq!(numbers(&bench.claim(session, 1).await), [TaskId(2)]);
}

pub async fn an_urgent_task_that_follows_one_that_expires_in_a_claim_comes_first(bench: Bench) {
    expires_within_the_next_claim(&bench, Priority::HIGH).await;
    let waiting = bench.submit("keyed").await;
    let session = bench.session().await;
    let follower = TaskId(3);
    assert_eq!(numbers(&bench.claim(session, 1).await), [follower]);
    assert_eq!(numbers(&bench.claim(session, 1).await), [waiting]);
}

pub async fn peek_passes_over_what_has_expired(bench: Bench) {
    bench.submit_new(living(SECOND, TtlFrom::Submission)).await;
    let next = bench.submit("k").await;
    bench.advance(SECOND);
    let peeked = bench.store().peek(all_of(onward_store::SessionId(0), 0)).await;
    assert_eq!(peeked.ok().flatten().map(|task| task.id), Some(next));
}

/// Shows: T6
pub async fn a_started_task_does_not_expire(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.advance(SECOND * 2);
    assert_eq!(bench.sweep().await.expired, 0);
    assert_eq!(bench.record(lease.task).await.expires_at, None);
    bench.complete(lease).await;
}

pub async fn a_time_to_live_from_submission_is_over_with_the_first_start(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.fail(lease, after(Duration::ZERO)).await;
    bench.advance(SECOND * 9);
    assert_eq!(bench.sweep().await.expired, 0);
}

pub async fn a_released_task_expires_as_if_it_had_not_been_claimed(bench: Bench) {
    let expires_at = Some(bench.now().plus(SECOND));
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(bench.record(lease.task).await.expires_at, expires_at);
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.expired, 1);
}

pub async fn a_task_released_after_its_time_to_live_expires(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.advance(SECOND * 2);
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(bench.claim(lease.session, 1).await, []);
    assert_eq!(bench.state(lease.task).await, TaskState::Expired);
}

pub async fn a_closed_sessions_tasks_expire_as_if_they_had_not_been_claimed(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.done(Write::CloseSession { session: lease.session }).await;
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.expired, 1);
}

pub async fn a_released_first_attempt_begins_no_time_to_live(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::FirstAttempt)).await;
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(bench.record(lease.task).await.expires_at, None);
    bench.advance(SECOND * 9);
    assert_eq!(bench.sweep().await.expired, 0);
}

pub async fn a_released_second_attempt_keeps_the_time_to_live_from_the_first(bench: Bench) {
    let lease = bench.running(living(SECOND * 5, TtlFrom::FirstAttempt)).await;
    let expires_at = bench.record(lease.task).await.expires_at;
    bench.fail(lease, after(Duration::ZERO)).await;
    let second = bench.claim_one(lease.session).await;
    bench.release(second, Duration::ZERO).await;
    assert_eq!(bench.record(lease.task).await.expires_at, expires_at);
}

pub async fn a_released_second_attempt_brings_no_time_to_live_from_submission_back(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.fail(lease, uncounted(false)).await;
    let second = bench.claim_one(lease.session).await;
    bench.release(second, Duration::ZERO).await;
    assert_eq!(bench.record(lease.task).await.expires_at, None);
}

pub async fn a_released_attempt_that_was_held_on_to_brings_no_time_to_live_back(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    let second = bench.fail(lease, uncounted(true)).await.lease.expect("the session holds on to it");
    bench.release(second, Duration::ZERO).await;
    assert_eq!(bench.record(lease.task).await.expires_at, None);
}

pub async fn a_second_release_brings_the_time_to_live_back_again(bench: Bench) {
    let expires_at = Some(bench.now().plus(SECOND));
    let lease = bench.running(living(SECOND, TtlFrom::Submission)).await;
    bench.release(lease, Duration::ZERO).await;
    let again = bench.claim_one(lease.session).await;
    bench.release(again, Duration::ZERO).await;
    assert_eq!(bench.record(lease.task).await.expires_at, expires_at);
}

/// Returns a retry at once that does not use up an attempt.
fn uncounted(hold: bool) -> AfterFailure {
    AfterFailure::Retry { after: Duration::ZERO, uses_attempt: false, hold }
}

/// Shows: T6
pub async fn a_time_to_live_from_the_first_attempt_begins_with_it(bench: Bench) {
    let id = bench.submit_new(living(SECOND, TtlFrom::FirstAttempt)).await;
    assert_eq!(bench.record(id).await.expires_at, None);
    bench.advance(SECOND * 5);
    bench.start_one().await;
    assert_eq!(bench.record(id).await.expires_at, Some(bench.now().plus(SECOND)));
}

/// Shows: T6
pub async fn no_attempt_starts_after_a_time_to_live_from_the_first(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::FirstAttempt)).await;
    bench.fail(lease, after(Duration::ZERO)).await;
    bench.advance(SECOND);
    assert_eq!(bench.claim(lease.session, 1).await, []);
    assert_eq!(bench.state(lease.task).await, TaskState::Expired);
}

pub async fn a_second_attempt_does_not_prolong_the_time_to_live(bench: Bench) {
    let lease = bench.running(living(SECOND * 5, TtlFrom::FirstAttempt)).await;
    let expires_at = bench.record(lease.task).await.expires_at;
    bench.fail(lease, after(Duration::ZERO)).await;
    bench.advance(SECOND);
    bench.claim_one(lease.session).await;
    assert_eq!(bench.record(lease.task).await.expires_at, expires_at);
}

pub async fn a_session_may_not_hold_on_to_what_has_expired(bench: Bench) {
    let lease = bench.running(living(SECOND, TtlFrom::FirstAttempt)).await;
    bench.advance(SECOND);
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    assert_eq!(bench.fail(lease, hold).await.lease, None);
    bench.sweep().await;
    assert_eq!(bench.state(lease.task).await, TaskState::Expired);
}

pub async fn an_expired_tasks_key_is_free(bench: Bench) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    bench.submit_new(NewTask { ttl, ..keyed("a", OnDuplicate::Skip) }).await;
    bench.advance(SECOND);
    bench.sweep().await;
    bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

/// Shows: T16
pub async fn an_expiry_is_told_as_an_event(bench: Bench) {
    bench.submit_new(living(SECOND, TtlFrom::Submission)).await;
    bench.advance(SECOND);
    bench.sweep().await;
    assert_eq!(bench.changes().await, [(TaskId(1), Change::Submitted), (TaskId(1), Change::Expired)]);
}

async fn next_due(bench: &Bench) -> Option<Duration> {
    let swept = bench.sweep().await.next_due;
    let session = bench.session().await;
    assert_eq!(bench.claimed(all_of(session, 0)).await.next_due, swept, "a claim and a sweep agree");
    swept
}

pub async fn what_waits_already_is_not_due_next(bench: Bench) {
    bench.submit("k").await;
    assert_eq!(next_due(&bench).await, None);
}

pub async fn the_next_scheduled_task_is_due_next(bench: Bench) {
    bench.submit_new(delayed(SECOND * 9)).await;
    bench.submit_new(delayed(SECOND * 2)).await;
    bench.advance(SECOND);
    assert_eq!(next_due(&bench).await, Some(SECOND));
}

pub async fn the_next_expiry_is_due_next(bench: Bench) {
    bench.submit_new(living(SECOND, TtlFrom::Submission)).await;
    assert_eq!(next_due(&bench).await, Some(SECOND));
}

pub async fn the_next_lapse_is_due_next(bench: Bench) {
    bench.running(task("k")).await;
    bench.advance(SECOND);
    assert_eq!(next_due(&bench).await, Some(SECOND * 9));
}

pub async fn a_session_that_holds_nothing_is_not_due_next(bench: Bench) {
    bench.session().await;
    assert_eq!(next_due(&bench).await, None);
}

pub async fn the_end_of_a_pause_is_due_next(bench: Bench) {
    bench.pause(Scope::All, Some(bench.now().plus(SECOND))).await;
    assert_eq!(next_due(&bench).await, Some(SECOND));
}

/// Lets more tasks of the kind `k` expire than one sweep ends. The expired task of the kind
/// `keyed`, whose key has a follower, is left to a claim.
async fn leave_an_expired_task_with_a_follower(bench: &Bench, follower: Priority, then: &[&str]) {
    let ttl = Some(Ttl { duration: SECOND * 5, from: TtlFrom::FirstAttempt });
    bench.running(NewTask { ttl, ..keyed("a", OnDuplicate::Requeue) }).await;
    bench.submitted(NewTask { priority: follower, ..keyed("a", OnDuplicate::Requeue) }).await;
    for kind in then {
        bench.submit(kind).await;
    }
    let crowd = (0..bounds::SWEEP + 76).map(|_| Write::Submit(Box::new(living(SECOND, TtlFrom::Submission))));
    bench.apply(crowd.collect()).await;
    bench.advance(LEASE);
}

pub async fn what_follows_an_expired_task_that_a_sweep_left_behind_is_claimed_at_once(bench: Bench) {
    leave_an_expired_task_with_a_follower(&bench, Priority::NORMAL, &[]).await;
    let session = bench.session().await;
    assert_eq!(bench.claim_kinds(session, 1, &["keyed"]).await.len(), 1);
}

pub async fn what_follows_an_expired_task_more_urgently_is_not_lost(bench: Bench) {
    leave_an_expired_task_with_a_follower(&bench, Priority::HIGH, &["keyed"]).await;
    let session = bench.session().await;
    let mut claimed = bench.claim_kinds(session, 1, &["keyed"]).await;
    claimed.extend(bench.claim_kinds(session, 1, &["keyed"]).await);
    assert_eq!(claimed.len(), 2);
}
