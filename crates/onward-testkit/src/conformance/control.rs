//! Cancellation, retries and pauses.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, NewTask, OnDuplicate, Outcome, PauseRecord, Refusal, Scope, SessionId, StoreReads, TaskId,
    TaskResult, TaskState, Ttl, TtlFrom, WaitReason, When, Write,
};

use crate::bench::{Bench, after, all_of, keyed, name, numbers, task};

const SECOND: Duration = Duration::from_secs(1);

/// Shows: T13
pub async fn a_waiting_task_is_cancelled_at_once(bench: Bench) {
    let task = bench.submit("k").await;
    assert_eq!(bench.cancel(task).await, Outcome::Cancelled);
    let record = bench.record(task).await;
    assert_eq!((record.state, record.finished_at, record.attempts), (TaskState::Cancelled, Some(bench.now()), 0));
}

/// Shows: T13
pub async fn a_scheduled_task_is_cancelled_at_once(bench: Bench) {
    let id = bench.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    assert_eq!(bench.cancel(id).await, Outcome::Cancelled);
    assert_eq!(bench.state(id).await, TaskState::Cancelled);
}

pub async fn a_cancelled_task_is_not_claimed(bench: Bench) {
    let task = bench.submit("k").await;
    bench.cancel(task).await;
    let session = bench.session().await;
    assert_eq!(bench.claim(session, 1).await, []);
}

/// Shows: T13
pub async fn a_running_task_is_asked_to_stop(bench: Bench) {
    let lease = bench.running(task("k")).await;
    assert_eq!(bench.cancel(lease.task).await, Outcome::CancelRequested);
    let record = bench.record(lease.task).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Running, true));
}

pub async fn asking_a_running_task_again_changes_nothing(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.cancel(lease.task).await;
    assert_eq!(bench.cancel(lease.task).await, Outcome::CancelRequested);
    let asked = bench.changes().await.into_iter().filter(|(_, change)| *change == Change::CancelRequested);
    assert_eq!(asked.count(), 1);
}

pub async fn an_unknown_task_is_not_cancelled(bench: Bench) {
    let task = TaskId(9);
    assert_eq!(bench.refused(Write::Cancel { task }).await, Refusal::TaskNotFound(task));
}

pub async fn an_ended_task_is_not_cancelled(bench: Bench) {
    let task = bench.completed(task("k")).await;
    let state = TaskState::Completed;
    assert_eq!(bench.refused(Write::Cancel { task }).await, Refusal::AlreadyEnded { task, state });
}

async fn dead(bench: &Bench, new: NewTask) -> TaskId {
    let lease = bench.running(new).await;
    bench.done(Write::Report { lease, fraction: Some(0.5), message: None, bytes: None }).await;
    bench.fail(lease, AfterFailure::Dead).await;
    lease.task
}

pub async fn an_ended_task_can_be_tried_again_under_its_number(bench: Bench) {
    let id = dead(&bench, task("k")).await;
    bench.advance(SECOND);
    bench.retry(id).await;
    let record = bench.record(id).await;
    assert_eq!((record.state, record.attempts, record.run_at), (TaskState::Waiting, 0, bench.now()));
    assert_eq!(record.submitted_at, bench.now().minus(SECOND));
    assert_eq!((record.finished_at, record.progress, record.result), (None, None, TaskResult::None));
}

pub async fn trying_again_forgets_the_result(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.done(Write::Complete { lease, result: Some("old".into()) }).await;
    bench.retry(lease.task).await;
    assert_eq!(bench.record(lease.task).await.result, TaskResult::None);
}

pub async fn trying_again_keeps_the_errors(bench: Bench) {
    let id = dead(&bench, task("k")).await;
    bench.retry(id).await;
    assert_eq!(bench.record(id).await.errors.len(), 1);
}

pub async fn every_kind_of_end_can_be_tried_again(bench: Bench) {
    let completed = bench.completed(task("k")).await;
    let cancelled = bench.submit("k").await;
    bench.cancel(cancelled).await;
    for id in [completed, cancelled] {
        bench.retry(id).await;
        assert_eq!(bench.state(id).await, TaskState::Waiting);
    }
}

pub async fn trying_again_forgets_that_it_was_cancelled(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.cancel(lease.task).await;
    bench.release(lease, Duration::ZERO).await;
    bench.retry(lease.task).await;
    assert!(!bench.record(lease.task).await.cancel_requested);
}

pub async fn a_claim_after_trying_again_outdates_older_leases(bench: Bench) {
    let id = dead(&bench, task("k")).await;
    bench.retry(id).await;
    let session = bench.session().await;
    let claimed = bench.claim(session, 1).await.remove(0);
    assert_eq!((claimed.lease.claim, claimed.attempt), (2, 1));
}

pub async fn trying_again_begins_the_row_of_lost_leases_anew(bench: Bench) {
    let id = bench.submit("k").await;
    for _ in 0..3 {
        bench.start_one().await;
        bench.lapse().await;
    }
    bench.retry(id).await;
    bench.start_one().await;
    bench.lapse().await;
    assert_eq!(bench.state(id).await, TaskState::Waiting);
}

pub async fn trying_again_gives_a_new_time_to_live(bench: Bench) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    let id = bench.submit_new(NewTask { ttl, ..task("k") }).await;
    bench.advance(SECOND);
    bench.sweep().await;
    bench.retry(id).await;
    assert_eq!(bench.record(id).await.expires_at, Some(bench.now().plus(SECOND)));
}

pub async fn an_unknown_task_is_not_tried_again(bench: Bench) {
    let task = TaskId(9);
    assert_eq!(bench.refused(Write::Retry { task }).await, Refusal::TaskNotFound(task));
}

pub async fn a_live_task_is_not_tried_again(bench: Bench) {
    let task = bench.submit("k").await;
    let refusal = bench.refused(Write::Retry { task }).await;
    assert_eq!(refusal, Refusal::NotEnded { task, state: TaskState::Waiting });
    bench.start_one().await;
    let refusal = bench.refused(Write::Retry { task }).await;
    assert_eq!(refusal, Refusal::NotEnded { task, state: TaskState::Running });
}

pub async fn a_task_whose_key_is_taken_is_not_tried_again(bench: Bench) {
    let task = bench.completed(keyed("a", OnDuplicate::Skip)).await;
    let by = bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
    assert_eq!(bench.refused(Write::Retry { task }).await, Refusal::KeyTaken { task, by });
    assert_eq!(bench.state(task).await, TaskState::Completed);
}

pub async fn trying_again_takes_the_key_again(bench: Bench) {
    let id = bench.completed(keyed("a", OnDuplicate::Skip)).await;
    bench.retry(id).await;
    let duplicate = bench.submitted(keyed("a", OnDuplicate::Reject)).await;
    assert_eq!(duplicate, onward_store::Submitted::Rejected { id });
}

async fn claimable(bench: &Bench) -> Vec<TaskId> {
    let session = bench.session().await;
    let ids = numbers(&bench.claim(session, 100).await);
    bench.done(Write::CloseSession { session }).await;
    ids
}

/// Shows: T14
pub async fn a_pause_of_everything_stops_claims(bench: Bench) {
    let id = bench.submit("k").await;
    bench.pause(Scope::All, None).await;
    assert_eq!(claimable(&bench).await, []);
    bench.done(Write::Resume { scope: Scope::All }).await;
    assert_eq!(claimable(&bench).await, [id]);
}

/// Shows: T14
pub async fn a_pause_of_a_queue_stops_claims_of_it(bench: Bench) {
    bench.submit_new(NewTask { queue: name("a"), ..task("k") }).await;
    let other = bench.submit_new(NewTask { queue: name("b"), ..task("k") }).await;
    bench.pause(Scope::Queue(name("a")), None).await;
    assert_eq!(claimable(&bench).await, [other]);
}

/// Shows: T14
pub async fn a_pause_of_a_kind_stops_claims_of_it(bench: Bench) {
    bench.submit("a").await;
    let other = bench.submit("b").await;
    bench.pause(Scope::Kind(name("a")), None).await;
    assert_eq!(claimable(&bench).await, [other]);
}

/// Shows: T14
pub async fn pauses_of_different_scopes_combine(bench: Bench) {
    bench.submit("k").await;
    bench.pause(Scope::All, None).await;
    bench.pause(Scope::Kind(name("k")), None).await;
    bench.done(Write::Resume { scope: Scope::All }).await;
    assert_eq!(claimable(&bench).await, []);
}

/// Shows: T14
pub async fn a_submission_respects_a_pause(bench: Bench) {
    bench.pause(Scope::Queue(name("default")), None).await;
    bench.submit("k").await;
    assert_eq!(claimable(&bench).await, []);
}

pub async fn what_runs_goes_on_in_a_pause(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.pause(Scope::All, None).await;
    bench.complete(lease).await;
}

/// Shows: T14
pub async fn a_pause_ends_at_its_moment(bench: Bench) {
    let id = bench.submit("k").await;
    bench.pause(Scope::All, Some(bench.now().plus(SECOND))).await;
    bench.advance(SECOND - Duration::from_micros(1));
    assert_eq!(claimable(&bench).await, []);
    bench.advance(Duration::from_micros(1));
    assert_eq!(claimable(&bench).await, [id]);
}

pub async fn pausing_again_replaces_the_moment(bench: Bench) {
    bench.submit("k").await;
    bench.pause(Scope::All, Some(bench.now().plus(SECOND))).await;
    bench.pause(Scope::All, None).await;
    bench.advance(SECOND);
    assert_eq!(claimable(&bench).await, []);
}

pub async fn pauses_are_shown_in_the_order_of_their_scopes(bench: Bench) {
    let until = Some(bench.now().plus(SECOND));
    let scopes = [Scope::All, Scope::Queue(name("a")), Scope::Queue(name("b")), Scope::Kind(name("a"))];
    for scope in scopes.iter().rev() {
        bench.pause(scope.clone(), until).await;
    }
    let expected: Vec<PauseRecord> = scopes.into_iter().map(|scope| PauseRecord { scope, until }).collect();
    assert_eq!(bench.store().pauses().await.ok(), Some(expected));
}

pub async fn an_elapsed_pause_is_gone_after_a_sweep(bench: Bench) {
    bench.pause(Scope::All, Some(bench.now().plus(SECOND))).await;
    bench.advance(SECOND);
    bench.sweep().await;
    assert_eq!(bench.store().pauses().await.ok(), Some(vec![]));
}

/// Shows: B6
pub async fn a_pause_that_is_over_is_shown_by_no_read_though_nothing_was_written_since(bench: Bench) {
    let task = bench.submit("k").await;
    let until = Some(bench.now().plus(SECOND));
    for scope in [Scope::All, Scope::Queue(name("default")), Scope::Kind(name("k"))] {
        bench.pause(scope, until).await;
    }
    bench.advance(SECOND);
    assert_eq!(bench.store().pauses().await.ok(), Some(vec![]));
    assert_eq!(bench.queue("default").await.map(|queue| queue.paused), Some(false));
    assert_eq!(why(&bench, task).await, [WaitReason::NoWorker]);
}

/// Shows: B6
pub async fn a_task_that_has_come_due_does_not_say_that_it_is_not(bench: Bench) {
    let id = bench.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    let run_at = bench.now().plus(SECOND);
    assert_eq!(why(&bench, id).await, [WaitReason::NotDue { run_at }, WaitReason::NoWorker]);
    bench.advance(SECOND);
    assert_eq!(why(&bench, id).await, [WaitReason::NoWorker]);
}

async fn why(bench: &Bench, task: TaskId) -> Vec<WaitReason> {
    bench.store().why(task).await.ok().flatten().unwrap_or_default()
}

pub async fn resuming_what_is_not_paused_is_done(bench: Bench) {
    bench.done(Write::Resume { scope: Scope::Queue(name("never")) }).await;
    assert_eq!(bench.queue("never").await, None);
}

pub async fn peek_passes_over_what_is_paused(bench: Bench) {
    bench.submit("a").await;
    let other = bench.submit("b").await;
    bench.pause(Scope::Kind(name("a")), None).await;
    let peeked = bench.store().peek(all_of(SessionId(0), 0)).await;
    assert_eq!(peeked.ok().flatten().map(|task| task.id), Some(other));
}

pub async fn a_delay_goes_on_in_a_pause(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, after(SECOND)).await;
    bench.pause(Scope::All, None).await;
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.due, 1);
    assert_eq!(bench.state(lease.task).await, TaskState::Waiting);
}
