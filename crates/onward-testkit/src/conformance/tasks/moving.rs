//! Tasks that are moved to other queues.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, Bulk, BulkVerb, Change, ConcurrencyLimit, Dependencies, LimitScope, NewTask, OnDependencyFailure,
    Outcome, Refusal, Scope, SetLimit, SetQueue, TaskFilter, TaskId, TaskState, When, Write,
};

use crate::test_store::{TestStore, name, task};

const SECOND: Duration = Duration::from_secs(1);

fn to(task: TaskId, queue: &str) -> Write {
    Write::Move { task, queue: name(queue) }
}

async fn moved(store: &TestStore, task: TaskId, queue: &str) {
    assert_eq!(store.write(to(task, queue)).await, Outcome::Moved);
}

async fn asked(store: &TestStore, task: TaskId, queue: &str) {
    assert_eq!(store.write(to(task, queue)).await, Outcome::MoveRequested);
}

async fn queue_of(store: &TestStore, task: TaskId) -> String {
    store.record(task).await.queue.to_string()
}

/// Returns the numbers of waiting and running tasks of a queue.
async fn counts(store: &TestStore, queue: &str) -> (u64, u64) {
    store.queue(queue).await.map_or((0, 0), |queue| (queue.waiting, queue.running))
}

/// Shows: Q8
pub async fn a_waiting_task_is_in_the_other_queue_at_once(mut store: TestStore) {
    let id = store.submit("plain").await;
    moved(&store, id, "other").await;
    assert_eq!((counts(&store, "default").await, counts(&store, "other").await), ((0, 0), (1, 0)));
    store.reopen().await;
    let session = store.session().await;
    assert_eq!(store.claim_from(session, 9, &[("default", 9)]).await, []);
    assert_eq!(store.claim_from(session, 9, &[("other", 9)]).await, [id]);
}

/// Shows: Q7, Q8
pub async fn a_reserved_queue_is_neither_changed_nor_a_target(store: TestStore) {
    let (task, queue) = (store.submit("plain").await, name("onward.mine"));
    let bulk = Bulk { verb: BulkVerb::Move(queue.clone()), filter: TaskFilter::default(), before: None, limit: 9 };
    let limit =
        SetLimit { concurrency: Some(ConcurrencyLimit::AtMost(1)), ..SetLimit::new(LimitScope::Queue(queue.clone())) };
    for write in [
        to(task, "onward.mine"),
        Write::Bulk(Box::new(bulk)),
        Write::SetQueue(SetQueue::new(queue.clone()).weight(3)),
        Write::SetLimit(limit),
        Write::Pause { scope: Scope::Queue(queue), until: None },
    ] {
        let text = store.invalid(write.clone()).await;
        assert!(text.contains("the queue `onward.mine`") && text.contains("reserved"), "{write:?}: {text}");
    }
    assert_eq!((queue_of(&store, task).await.as_str(), store.queue("onward.mine").await), ("default", None));
}

pub async fn a_moved_task_keeps_its_age(store: TestStore) {
    let elsewhere = || NewTask { queue: name("other"), ..task("plain") };
    let first = store.submit("plain").await;
    store.advance(SECOND);
    let second = store.submit_new(elsewhere()).await;
    moved(&store, first, "other").await;
    assert_eq!((store.start_one().await.task, store.start_one().await.task), (first, second));
}

/// Shows: Q8
pub async fn scheduled_and_blocked_tasks_are_moved_and_still_wait(store: TestStore) {
    let scheduled = store.submit_new(NewTask { when: When::After(SECOND), ..task("plain") }).await;
    let blocked = store.submit_new(NewTask { depends_on: Dependencies::on([scheduled]), ..task("plain") }).await;
    moved(&store, scheduled, "other").await;
    moved(&store, blocked, "other").await;
    assert_eq!(store.state(blocked).await, TaskState::Blocked);
    store.advance(SECOND);
    assert_eq!(store.complete_next().await, scheduled);
    assert_eq!((queue_of(&store, scheduled).await, queue_of(&store, blocked).await), ("other".into(), "other".into()));
    assert_eq!(store.complete_next().await, blocked);
}

/// Shows: Q8
pub async fn a_running_task_counts_where_it_started_and_continues_in_the_other_queue(mut store: TestStore) {
    let limit = Some(ConcurrencyLimit::AtMost(1));
    store.write(Write::SetQueue(SetQueue { concurrency: limit, ..SetQueue::new(name("default")) })).await;
    let lease = store.running(task("plain")).await;
    asked(&store, lease.task, "other").await;
    assert_eq!((counts(&store, "default").await, counts(&store, "other").await), ((0, 1), (0, 0)));
    store.release(lease, Duration::ZERO).await;
    assert_eq!((counts(&store, "default").await, counts(&store, "other").await), ((0, 0), (1, 0)));
    store.reopen().await;
    let again = store.start_one().await;
    assert_eq!((again.task, counts(&store, "other").await), (lease.task, (0, 1)));
    let next = store.submit("plain").await;
    assert_eq!(store.start_one().await.task, next, "the limited queue has room");
    let changes: Vec<_> = store.changes().await.into_iter().map(|(_, change)| change).collect();
    assert_eq!(changes[2..4], [Change::Released, Change::Moved]);
}

/// Shows: Q8
pub async fn a_move_that_was_asked_for_survives_a_restart_and_a_lost_lease(mut store: TestStore) {
    let lease = store.running(task("plain")).await;
    asked(&store, lease.task, "other").await;
    store.reopen().await;
    let lease = match store.state(lease.task).await {
        TaskState::Running => {
            store.lapse().await;
            lease
        }
        _ => lease,
    };
    assert_eq!(queue_of(&store, lease.task).await, "other");
}

pub async fn a_task_that_ends_before_it_could_be_moved_ends_where_it_ran(store: TestStore) {
    let lease = store.running(task("plain")).await;
    asked(&store, lease.task, "other").await;
    store.complete(lease).await;
    assert_eq!(queue_of(&store, lease.task).await, "default");
    store.retry(lease.task).await;
    assert_eq!(queue_of(&store, lease.task).await, "default", "that was asked of what has ended");
}

pub async fn a_session_does_not_keep_a_task_that_is_to_move(store: TestStore) {
    let lease = store.running(task("plain")).await;
    asked(&store, lease.task, "other").await;
    let next = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let failed = store.fail(lease, next).await;
    assert_eq!((failed.state, failed.lease), (TaskState::Waiting, None));
    assert_eq!(queue_of(&store, lease.task).await, "other");
}

/// Shows: Q8
pub async fn a_move_that_was_asked_for_can_be_changed_and_taken_back(store: TestStore) {
    let lease = store.running(task("plain")).await;
    asked(&store, lease.task, "other").await;
    asked(&store, lease.task, "third").await;
    store.release(lease, Duration::ZERO).await;
    assert_eq!(queue_of(&store, lease.task).await, "third");
    let lease = store.start_one().await;
    asked(&store, lease.task, "other").await;
    moved(&store, lease.task, "third").await;
    store.release(lease, Duration::ZERO).await;
    assert_eq!(queue_of(&store, lease.task).await, "third");
}

pub async fn a_move_to_where_the_task_is_changes_nothing(store: TestStore) {
    let id = store.submit("plain").await;
    moved(&store, id, "default").await;
    assert_eq!(store.changes().await, [(id, Change::Submitted)]);
}

pub async fn a_parent_that_waits_for_children_moves_at_once(store: TestStore) {
    let lease = store.running(task("parent")).await;
    store.submit_new(NewTask { parent: Some(lease.task), ..task("child") }).await;
    asked(&store, lease.task, "other").await;
    let wait = Write::AwaitChildren { lease, checkpoint: "checkpoint".into(), on_failure: OnDependencyFailure::Ignore };
    let Outcome::AwaitsChildren { .. } = store.write(wait).await else { panic!("it should wait") };
    assert_eq!(queue_of(&store, lease.task).await, "other");
    store.complete_next().await;
    let session = store.session().await;
    assert_eq!(store.claim_from(session, 1, &[("other", 1)]).await, [lease.task]);
}

/// Shows: Q8
pub async fn a_move_and_the_end_of_the_attempt_are_one_write(store: TestStore) {
    let lease = store.running(task("plain")).await;
    let release = Write::Release { lease, after: Duration::ZERO };
    store.write(Write::All(vec![to(lease.task, "other"), release.clone()])).await;
    assert_eq!((queue_of(&store, lease.task).await, store.record(lease.task).await.attempts), ("other".into(), 0));
    store.refused(Write::All(vec![to(lease.task, "third"), release])).await;
    assert_eq!(queue_of(&store, lease.task).await, "other");
}

pub async fn a_task_that_has_ended_is_not_moved(store: TestStore) {
    let id = store.completed(task("plain")).await;
    let ended = Refusal::AlreadyEnded { task: id, state: TaskState::Completed };
    assert_eq!(store.refused(to(id, "other")).await, ended);
    assert_eq!(store.refused(to(TaskId(99), "other")).await, Refusal::TaskNotFound(TaskId(99)));
    assert!(store.queue("other").await.is_none());
}
