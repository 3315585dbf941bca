//! Tasks that are moved to other queues.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, ConcurrencyLimit, Dependencies, NewTask, OnDependencyFailure, Outcome, Refusal, SetQueue,
    TaskId, TaskState, When, Write,
};

use crate::bench::{Bench, name, task};

const SECOND: Duration = Duration::from_secs(1);

fn to(task: TaskId, queue: &str) -> Write {
    Write::Move { task, queue: name(queue) }
}

async fn moved(bench: &Bench, task: TaskId, queue: &str) {
    assert_eq!(bench.write(to(task, queue)).await, Outcome::Moved);
}

async fn asked(bench: &Bench, task: TaskId, queue: &str) {
    assert_eq!(bench.write(to(task, queue)).await, Outcome::MoveRequested);
}

async fn queue_of(bench: &Bench, task: TaskId) -> String {
    bench.record(task).await.queue.to_string()
}

/// Returns the numbers of waiting and running tasks of a queue.
async fn counts(bench: &Bench, queue: &str) -> (u64, u64) {
    bench.queue(queue).await.map_or((0, 0), |queue| (queue.waiting, queue.running))
}

/// Shows: Q8
pub async fn a_waiting_task_is_in_the_other_queue_at_once(mut bench: Bench) {
    let id = bench.submit("plain").await;
    moved(&bench, id, "other").await;
    assert_eq!((counts(&bench, "default").await, counts(&bench, "other").await), ((0, 0), (1, 0)));
    bench.reopen().await;
    let session = bench.session().await;
    assert_eq!(bench.claim_from(session, 9, &[("default", 9)]).await, []);
    assert_eq!(bench.claim_from(session, 9, &[("other", 9)]).await, [id]);
}

pub async fn a_moved_task_keeps_its_place(bench: Bench) {
    let elsewhere = || NewTask { queue: name("other"), ..task("plain") };
    let first = bench.submit("plain").await;
    bench.advance(SECOND);
    let second = bench.submit_new(elsewhere()).await;
    moved(&bench, first, "other").await;
    assert_eq!((bench.start_one().await.task, bench.start_one().await.task), (first, second));
}

/// Shows: Q8
pub async fn scheduled_and_blocked_tasks_are_moved_and_still_wait(bench: Bench) {
    let scheduled = bench.submit_new(NewTask { when: When::After(SECOND), ..task("plain") }).await;
    let blocked = bench.submit_new(NewTask { depends_on: Dependencies::on([scheduled]), ..task("plain") }).await;
    moved(&bench, scheduled, "other").await;
    moved(&bench, blocked, "other").await;
    assert_eq!(bench.state(blocked).await, TaskState::Blocked);
    bench.advance(SECOND);
    assert_eq!(bench.complete_next().await, scheduled);
    assert_eq!((queue_of(&bench, scheduled).await, queue_of(&bench, blocked).await), ("other".into(), "other".into()));
    assert_eq!(bench.complete_next().await, blocked);
}

/// Shows: Q8
pub async fn a_running_task_counts_where_it_started_and_goes_on_in_the_other_queue(mut bench: Bench) {
    let limit = Some(ConcurrencyLimit::AtMost(1));
    bench.write(Write::SetQueue(SetQueue { concurrency: limit, ..SetQueue::new(name("default")) })).await;
    let lease = bench.running(task("plain")).await;
    asked(&bench, lease.task, "other").await;
    assert_eq!((counts(&bench, "default").await, counts(&bench, "other").await), ((0, 1), (0, 0)));
    bench.release(lease, Duration::ZERO).await;
    assert_eq!((counts(&bench, "default").await, counts(&bench, "other").await), ((0, 0), (1, 0)));
    bench.reopen().await;
    let again = bench.start_one().await;
    assert_eq!((again.task, counts(&bench, "other").await), (lease.task, (0, 1)));
    let next = bench.submit("plain").await;
    assert_eq!(bench.start_one().await.task, next, "the limited queue has room");
    let changes: Vec<_> = bench.changes().await.into_iter().map(|(_, change)| change).collect();
    assert_eq!(changes[2..4], [Change::Released, Change::Moved]);
}

/// Shows: Q8
pub async fn a_move_that_was_asked_for_survives_a_restart_and_a_lost_lease(mut bench: Bench) {
    let lease = bench.running(task("plain")).await;
    asked(&bench, lease.task, "other").await;
    bench.reopen().await;
    let lease = match bench.state(lease.task).await {
        TaskState::Running => {
            bench.lapse().await;
            lease
        }
        _ => lease,
    };
    assert_eq!(queue_of(&bench, lease.task).await, "other");
}

pub async fn a_task_that_ends_before_it_could_be_moved_ends_where_it_ran(bench: Bench) {
    let lease = bench.running(task("plain")).await;
    asked(&bench, lease.task, "other").await;
    bench.complete(lease).await;
    assert_eq!(queue_of(&bench, lease.task).await, "default");
    bench.retry(lease.task).await;
    assert_eq!(queue_of(&bench, lease.task).await, "default", "that was asked of what has ended");
}

pub async fn a_session_does_not_keep_a_task_that_is_to_move(bench: Bench) {
    let lease = bench.running(task("plain")).await;
    asked(&bench, lease.task, "other").await;
    let next = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let failed = bench.fail(lease, next).await;
    assert_eq!((failed.state, failed.lease), (TaskState::Waiting, None));
    assert_eq!(queue_of(&bench, lease.task).await, "other");
}

/// Shows: Q8
pub async fn a_move_that_was_asked_for_can_be_changed_and_taken_back(bench: Bench) {
    let lease = bench.running(task("plain")).await;
    asked(&bench, lease.task, "other").await;
    asked(&bench, lease.task, "third").await;
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(queue_of(&bench, lease.task).await, "third");
    let lease = bench.start_one().await;
    asked(&bench, lease.task, "other").await;
    moved(&bench, lease.task, "third").await;
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(queue_of(&bench, lease.task).await, "third");
}

pub async fn a_move_to_where_the_task_is_changes_nothing(bench: Bench) {
    let id = bench.submit("plain").await;
    moved(&bench, id, "default").await;
    assert_eq!(bench.changes().await, [(id, Change::Submitted)]);
}

pub async fn a_parent_that_waits_for_children_moves_at_once(bench: Bench) {
    let lease = bench.running(task("parent")).await;
    bench.submit_new(NewTask { parent: Some(lease.task), ..task("child") }).await;
    asked(&bench, lease.task, "other").await;
    let wait = Write::AwaitChildren { lease, memo: "memo".into(), on_failure: OnDependencyFailure::Ignore };
    let Outcome::AwaitsChildren { .. } = bench.write(wait).await else { panic!("it should wait") };
    assert_eq!(queue_of(&bench, lease.task).await, "other");
    bench.complete_next().await;
    let session = bench.session().await;
    assert_eq!(bench.claim_from(session, 1, &[("other", 1)]).await, [lease.task]);
}

/// Shows: Q8
pub async fn a_move_and_the_end_of_the_attempt_are_one_write(bench: Bench) {
    let lease = bench.running(task("plain")).await;
    let release = Write::Release { lease, after: Duration::ZERO };
    bench.write(Write::All(vec![to(lease.task, "other"), release.clone()])).await;
    assert_eq!((queue_of(&bench, lease.task).await, bench.record(lease.task).await.attempts), ("other".into(), 0));
    bench.refused(Write::All(vec![to(lease.task, "third"), release])).await;
    assert_eq!(queue_of(&bench, lease.task).await, "other");
}

pub async fn a_task_that_has_ended_is_not_moved(bench: Bench) {
    let id = bench.completed(task("plain")).await;
    let ended = Refusal::AlreadyEnded { task: id, state: TaskState::Completed };
    assert_eq!(bench.refused(to(id, "other")).await, ended);
    assert_eq!(bench.refused(to(TaskId(99), "other")).await, Refusal::TaskNotFound(TaskId(99)));
    assert!(bench.queue("other").await.is_none());
}
