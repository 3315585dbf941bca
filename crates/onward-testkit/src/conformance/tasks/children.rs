//! Parents and children.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    AfterFailure, Change, ClaimedTask, Dependencies, Lease, NewTask, OnDependencyFailure, OnDuplicate, Outcome, Prune,
    Refusal, SetQueue, TaskFilter, TaskId, TaskState, Ttl, TtlFrom, Write, bounds,
};

use crate::test_store::{TestStore, keyed, name, numbers, task};

const SECOND: Duration = Duration::from_secs(1);

fn of(parent: TaskId) -> NewTask {
    NewTask { parent: Some(parent), ..task("child") }
}

fn submit(new: NewTask) -> Write {
    Write::Submit(Box::new(new))
}

fn wait(lease: Lease, checkpoint: &'static str, on_failure: OnDependencyFailure) -> Write {
    Write::AwaitChildren { lease, checkpoint: Bytes::from_static(checkpoint.as_bytes()), on_failure }
}

/// Ends an attempt until its children have ended. Returns the state of the task.
async fn awaited(store: &TestStore, lease: Lease, on_failure: OnDependencyFailure) -> TaskState {
    match store.write(wait(lease, "checkpoint", on_failure)).await {
        Outcome::AwaitsChildren { state } => state,
        other => panic!("it should wait for its children: {other:?}"),
    }
}

/// Starts a task and submits this many children of it. Returns its lease and the children.
async fn family(store: &TestStore, children: usize) -> (Lease, Vec<TaskId>) {
    let parent = store.running(task("parent")).await;
    let mut ids = Vec::new();
    for _ in 0..children {
        ids.push(store.submit_new(of(parent.task)).await);
    }
    (parent, ids)
}

async fn claim_all(store: &TestStore) -> Vec<ClaimedTask> {
    let session = store.session().await;
    store.claim(session, 99).await
}

fn children_of(parent: TaskId) -> TaskFilter {
    TaskFilter { parent: Some(parent), ..TaskFilter::default() }
}

/// Shows: T11
pub async fn a_child_knows_its_parent_and_is_found_by_it(mut store: TestStore) {
    let (parent, children) = family(&store, 2).await;
    store.submit("other").await;
    assert_eq!(store.list(children_of(parent.task)).await, [children[1], children[0]]);
    assert_eq!(store.record(children[0]).await.parent, Some(parent.task));
    let claimed = claim_all(&store).await;
    assert_eq!(claimed[0].parent, Some(parent.task));
    store.complete(claimed[0].lease).await;
    store.reopen().await;
    assert_eq!(store.record(children[0]).await.parent, Some(parent.task), "also of an ended child");
    assert_eq!(store.list(children_of(parent.task)).await.len(), 2);
}

/// Shows: T11
pub async fn a_parent_waits_for_its_children_and_resumes_with_its_checkpoint(store: TestStore) {
    let (parent, _) = family(&store, 2).await;
    assert_eq!(awaited(&store, parent, OnDependencyFailure::Ignore).await, TaskState::Blocked);
    let record = store.record(parent.task).await;
    assert_eq!((record.blocked_by.len(), record.attempts, record.session), (2, 0, None));
    for child in claim_all(&store).await {
        assert_eq!((store.state(parent.task).await, child.checkpoint), (TaskState::Blocked, None));
        store.complete(child.lease).await;
    }
    assert_eq!(store.state(parent.task).await, TaskState::Waiting);
    let claimed = claim_all(&store).await;
    assert_eq!(numbers(&claimed), [parent.task]);
    assert_eq!((claimed[0].checkpoint.as_deref(), claimed[0].attempt), (Some(b"checkpoint".as_slice()), 1));
    store.complete(claimed[0].lease).await;
    assert_eq!(store.state(parent.task).await, TaskState::Completed);
}

/// Shows: T11
pub async fn children_and_the_wait_for_them_are_one_write(store: TestStore) {
    let parent = store.running(task("parent")).await;
    let outcome = store
        .write(Write::All(vec![
            submit(of(parent.task)),
            submit(of(parent.task)),
            wait(parent, "checkpoint", OnDependencyFailure::Ignore),
        ]))
        .await;
    let Outcome::All(outcomes) = outcome else { panic!("{outcome:?}") };
    assert_eq!(outcomes.last(), Some(&Outcome::AwaitsChildren { state: TaskState::Blocked }));
    assert_eq!(store.record(parent.task).await.blocked_by, [TaskId(2), TaskId(3)]);
}

/// Shows: T11
pub async fn children_of_an_attempt_whose_lease_is_lost_are_not_taken(store: TestStore) {
    let parent = store.running(task("parent")).await;
    store.release(parent, Duration::ZERO).await;
    let complete = Write::Complete { lease: parent, result: None };
    let refusal = store.refused(Write::All(vec![submit(of(parent.task)), complete])).await;
    assert!(matches!(refusal, Refusal::InAll { index: 1, .. }), "{refusal:?}");
    assert_eq!(store.list(children_of(parent.task)).await, []);
}

/// The orchestration continues with its children once it has been retried.
///
/// Shows: D9
pub async fn a_dead_orchestration_keeps_its_children_even_if_a_task_waits_for_it(store: TestStore) {
    let orchestration = store.submit_new(NewTask { orchestration: true, ..task("order") }).await;
    let child = store.submit_new(of(orchestration)).await;
    let depends_on = Dependencies::on([orchestration]);
    let dependent = store.submit_new(NewTask { depends_on, ..task("after") }).await;
    store.done(Write::Kill { task: orchestration }).await;
    assert_eq!(store.record(dependent).await.state, TaskState::Cancelled);
    assert_eq!(store.record(child).await.state, TaskState::Waiting);
}

pub async fn a_parent_without_live_children_resumes_at_once(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    for child in claim_all(&store).await {
        store.complete(child.lease).await;
    }
    store.advance(SECOND);
    assert_eq!(awaited(&store, parent, OnDependencyFailure::Fail).await, TaskState::Waiting);
    assert_eq!(store.record(parent.task).await.run_at, store.now());
}

/// Shows: T11
pub async fn a_child_submitted_during_the_wait_is_waited_for_too(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    let claimed = claim_all(&store).await;
    let sibling = store.submit_new(of(parent.task)).await;
    store.complete(claimed[0].lease).await;
    assert_eq!(store.record(parent.task).await.blocked_by, [sibling]);
    store.complete_next().await;
    assert_eq!(store.state(parent.task).await, TaskState::Waiting);
}

/// Shows: T11
pub async fn a_parent_that_collects_results_resumes_however_its_children_ended(store: TestStore) {
    let (parent, children) = family(&store, 2).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    store.cancel(children[0]).await;
    assert_eq!(store.state(parent.task).await, TaskState::Blocked);
    let child = store.start_one().await;
    store.fail(child, AfterFailure::Dead).await;
    assert_eq!(store.state(parent.task).await, TaskState::Waiting);
}

/// Shows: T11
pub async fn a_parent_that_fails_fast_takes_the_other_children_with_it(store: TestStore) {
    let (parent, children) = family(&store, 3).await;
    awaited(&store, parent, OnDependencyFailure::Fail).await;
    let session = store.session().await;
    let claimed = store.claim(session, 2).await;
    store.fail(claimed[0].lease, AfterFailure::Dead).await;
    let record = store.record(parent.task).await;
    assert_eq!(record.state, TaskState::Failed);
    assert!(record.errors[0].message.contains("task 2, on which it depends, ended as dead"), "{:?}", record.errors);
    assert!(store.record(children[1]).await.cancel_requested, "the one that runs is asked to stop");
    let last = store.record(children[2]).await;
    assert_eq!(last.state, TaskState::Cancelled);
    assert!(last.errors[0].message.contains("task 1, its parent, ended as failed"), "{:?}", last.errors);
}

pub async fn a_child_that_failed_before_the_wait_counts(store: TestStore) {
    let (parent, children) = family(&store, 2).await;
    store.cancel(children[0]).await;
    assert_eq!(awaited(&store, parent, OnDependencyFailure::Fail).await, TaskState::Failed);
    let record = store.record(parent.task).await;
    assert!(record.errors[0].message.contains("task 2, its child, ended as cancelled"), "{:?}", record.errors);
    assert_eq!(store.state(children[1]).await, TaskState::Cancelled);
}

pub async fn a_child_that_failed_in_an_earlier_attempt_does_not_count(store: TestStore) {
    let (parent, children) = family(&store, 1).await;
    store.cancel(children[0]).await;
    store.advance(SECOND);
    store.fail(parent, crate::test_store::after(Duration::ZERO)).await;
    store.advance(SECOND);
    let parent = store.start_one().await;
    assert_eq!(awaited(&store, parent, OnDependencyFailure::Fail).await, TaskState::Waiting);
}

pub async fn a_parent_may_be_cancelled_by_a_child(store: TestStore) {
    let (parent, children) = family(&store, 2).await;
    awaited(&store, parent, OnDependencyFailure::Cancel).await;
    store.cancel(children[1]).await;
    assert_eq!(store.state(parent.task).await, TaskState::Cancelled);
    assert_eq!(store.state(children[0]).await, TaskState::Cancelled);
}

/// Shows: T11
pub async fn cancelling_a_parent_that_waits_cancels_its_children(store: TestStore) {
    let (parent, children) = family(&store, 2).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    let grandchild = store.submit_new(of(children[0])).await;
    assert_eq!(store.cancel(parent.task).await, Outcome::Cancelled);
    for task in [children[0], children[1], grandchild] {
        assert_eq!(store.state(task).await, TaskState::Cancelled);
    }
}

/// Shows: T11
pub async fn a_running_parent_that_is_cancelled_takes_its_children_with_it(store: TestStore) {
    let (parent, children) = family(&store, 1).await;
    store.cancel(parent.task).await;
    assert_eq!(store.state(children[0]).await, TaskState::Waiting, "until it has stopped");
    store.done(Write::ConfirmCancel { lease: parent, reason: "stopped".into() }).await;
    assert_eq!(store.state(children[0]).await, TaskState::Cancelled);
}

pub async fn a_cancelled_parent_does_not_wait_for_its_children(store: TestStore) {
    let (parent, children) = family(&store, 1).await;
    store.cancel(parent.task).await;
    assert_eq!(awaited(&store, parent, OnDependencyFailure::Ignore).await, TaskState::Cancelled);
    assert_eq!(store.state(children[0]).await, TaskState::Cancelled);
}

/// Shows: T11
pub async fn children_outlive_a_parent_that_completes(store: TestStore) {
    let (parent, children) = family(&store, 1).await;
    store.complete(parent).await;
    assert_eq!(store.state(children[0]).await, TaskState::Waiting);
    let late = store.submit_new(of(parent.task)).await;
    assert_eq!(store.state(late).await, TaskState::Waiting);
}

/// Shows: T11
pub async fn children_do_not_outlive_a_parent_that_dies_or_is_purged(store: TestStore) {
    let (parent, children) = family(&store, 1).await;
    store.fail(parent, AfterFailure::Dead).await;
    assert_eq!(store.state(children[0]).await, TaskState::Cancelled);
    let late = store.submit_new(of(parent.task)).await;
    assert_eq!(store.state(late).await, TaskState::Cancelled);

    let parent = store.submit_new(NewTask { queue: name("other"), ..task("parent") }).await;
    let child = store.submit_new(of(parent)).await;
    store.removed(Write::Purge { queue: name("other"), states: vec![TaskState::Waiting], limit: 9 }).await;
    assert_eq!(store.state(child).await, TaskState::Cancelled);
}

/// Shows: T11
pub async fn an_unknown_parent_is_refused(store: TestStore) {
    assert_eq!(store.refused(submit(of(TaskId(7)))).await, Refusal::TaskNotFound(TaskId(7)));
    assert_eq!(store.list(TaskFilter::default()).await, []);
}

/// Shows: T11, T12
pub async fn a_parent_does_not_wait_for_a_child_that_waits_for_it(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    let between = store.submit_new(NewTask { depends_on: Dependencies::on([parent.task]), ..task("k") }).await;
    let child = store.submit_new(NewTask { depends_on: Dependencies::on([between]), ..of(parent.task) }).await;
    let text = store.invalid(wait(parent, "checkpoint", OnDependencyFailure::Ignore)).await;
    assert!(text.contains("task 1 would wait for a child that waits for task 1"), "{text}");
    assert_eq!(store.state(parent.task).await, TaskState::Running);
    store.complete(parent).await;
    assert_eq!(store.state(child).await, TaskState::Blocked);
}

/// Shows: T11, T12
pub async fn a_waiting_parent_gets_no_child_that_waits_for_it(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    let depends_on = Dependencies::on([parent.task]);
    store.invalid(submit(NewTask { depends_on, ..of(parent.task) })).await;
    assert_eq!(store.list(children_of(parent.task)).await.len(), 1);
}

pub async fn what_depends_on_a_parent_waits_for_its_children_too(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    let after = store.submit_new(NewTask { depends_on: Dependencies::on([parent.task]), ..task("k") }).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    store.complete_next().await;
    assert_eq!(store.state(after).await, TaskState::Blocked);
    assert_eq!(store.complete_next().await, parent.task);
    assert_eq!(store.state(after).await, TaskState::Waiting);
}

pub async fn a_checkpoint_that_is_too_large_is_refused(store: TestStore) {
    let parent = store.running(task("parent")).await;
    let checkpoint = vec![0; store.payload_limit() + 1].into();
    let on_failure = OnDependencyFailure::Ignore;
    let text = store.invalid(Write::AwaitChildren { lease: parent, checkpoint, on_failure }).await;
    assert!(text.contains("the checkpoint"), "{text}");
}

pub async fn a_later_checkpoint_replaces_an_earlier_one(store: TestStore) {
    let parent = store.running(task("parent")).await;
    store.write(wait(parent, "one", OnDependencyFailure::Ignore)).await;
    let parent = store.start_one().await;
    store.write(wait(parent, "two", OnDependencyFailure::Ignore)).await;
    assert_eq!(claim_all(&store).await[0].checkpoint.as_deref(), Some(b"two".as_slice()));
}

/// Shows: T11
pub async fn a_checkpoint_survives_a_failed_attempt_and_a_restart(mut store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    store.reopen().await;
    store.complete_next().await;
    let again = store.start_one().await;
    store.fail(again, crate::test_store::after(Duration::ZERO)).await;
    let claimed = claim_all(&store).await;
    assert_eq!((claimed[0].checkpoint.as_deref(), claimed[0].attempt), (Some(b"checkpoint".as_slice()), 2));
}

pub async fn a_retried_parent_starts_from_the_beginning(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    store.cancel(parent.task).await;
    store.retry(parent.task).await;
    let claimed = claim_all(&store).await;
    assert_eq!((claimed[0].lease.task, claimed[0].checkpoint.clone()), (parent.task, None));
}

pub async fn no_wait_under_an_outdated_lease_is_taken(store: TestStore) {
    let parent = store.running(task("parent")).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    let refusal = store.refused(wait(parent, "checkpoint", OnDependencyFailure::Ignore)).await;
    assert_eq!(refusal, Refusal::LeaseLost(parent));
}

pub async fn a_parent_that_waits_uses_no_slot_of_its_queue(store: TestStore) {
    let concurrency = Some(onward_store::ConcurrencyLimit::AtMost(1));
    store.write(Write::SetQueue(SetQueue { concurrency, ..SetQueue::new(name("default")) })).await;
    let (parent, children) = family(&store, 1).await;
    assert!(claim_all(&store).await.is_empty());
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    assert_eq!(numbers(&claim_all(&store).await), children);
}

pub async fn a_time_to_live_from_the_first_attempt_ends_a_parent_that_waits(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::FirstAttempt });
    let parent = store.running(NewTask { ttl, ..task("parent") }).await;
    let child = store.submit_new(of(parent.task)).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(store.state(parent.task).await, TaskState::Expired);
    assert_eq!(store.state(child).await, TaskState::Cancelled);
}

pub async fn many_children_are_cancelled_in_bounded_steps(store: TestStore) {
    let parent = store.running(task("parent")).await;
    let count = bounds::CASCADE + 10;
    store.write(Write::All((0..count).map(|_| submit(of(parent.task))).collect())).await;
    store.fail(parent, AfterFailure::Dead).await;
    let sizes = |queue: Option<onward_store::QueueRecord>| queue.map(|queue| (queue.waiting, queue.ended.cancelled));
    assert_eq!(sizes(store.queue("default").await), Some((10, bounds::CASCADE as u64)));
    store.sweep().await;
    assert_eq!(sizes(store.queue("default").await), Some((0, count as u64)));
}

pub async fn a_pruned_child_is_forgotten(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    store.complete_next().await;
    store.removed(Write::Prune(Prune { keep: Some(0), limit: 9, ..Prune::default() })).await;
    assert_eq!(store.list(children_of(parent.task)).await, []);
    store.complete(parent).await;
}

pub async fn the_wait_for_children_makes_events(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    awaited(&store, parent, OnDependencyFailure::Ignore).await;
    store.complete_next().await;
    let changes: Vec<Change> =
        store.changes().await.into_iter().filter(|(task, _)| *task == parent.task).map(|(_, change)| change).collect();
    let started = Change::Started { attempt: 1 };
    assert_eq!(changes, [Change::Submitted, started, Change::Blocked, Change::Unblocked]);
}

pub async fn a_refused_write_of_an_all_undoes_a_wait_for_children(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    let unknown = Write::Cancel { task: TaskId(999) };
    store.refused(Write::All(vec![wait(parent, "checkpoint", OnDependencyFailure::Ignore), unknown])).await;
    assert_eq!(store.state(parent.task).await, TaskState::Running);
    store.complete(parent).await;
}

pub async fn a_child_may_follow_a_running_task(store: TestStore) {
    let parent = store.running(task("parent")).await;
    let held = store.running(keyed("a", OnDuplicate::Skip)).await;
    store.submitted(NewTask { parent: Some(parent.task), ..keyed("a", OnDuplicate::Requeue) }).await;
    store.complete(held).await;
    assert_eq!(store.list(children_of(parent.task)).await, [TaskId(3)]);
}

pub async fn a_retried_parent_has_its_children_still(store: TestStore) {
    let (parent, _) = family(&store, 1).await;
    store.complete(parent).await;
    store.retry(parent.task).await;
    store.cancel(parent.task).await;
    assert_eq!(store.list(TaskFilter { states: vec![TaskState::Cancelled], ..TaskFilter::default() }).await.len(), 2);
}

/// Shows: D2, T11
pub async fn a_checkpoint_is_there_for_the_next_attempt(mut store: TestStore) {
    let lease = store.running(task("copy")).await;
    let keep = |lease, checkpoint: &'static str| Write::SaveCheckpoint { lease, checkpoint: checkpoint.into() };
    store.done(keep(lease, "a third")).await;
    store.done(keep(lease, "half")).await;
    store.fail(lease, crate::test_store::after(Duration::ZERO)).await;
    assert_eq!(store.refused(keep(lease, "late")).await, Refusal::LeaseLost(lease));
    store.reopen().await;
    let session = store.session().await;
    let again = store.claim(session, 1).await.remove(0);
    assert_eq!(again.checkpoint.as_deref(), Some(b"half".as_slice()));
    store.complete(again.lease).await;
    store.retry(lease.task).await;
    assert_eq!(store.claim(session, 1).await[0].checkpoint, None);
}

/// Shows: D2
pub async fn a_checkpoint_has_the_limit_of_a_payload(store: TestStore) {
    let lease = store.running(task("copy")).await;
    let checkpoint = vec![b'x'; store.payload_limit() + 1].into();
    assert!(store.invalid(Write::SaveCheckpoint { lease, checkpoint }).await.contains("checkpoint"));
    let lease = store.running(NewTask { orchestration: true, ..task("order") }).await;
    assert!(
        store.invalid(Write::SaveCheckpoint { lease, checkpoint: Bytes::new() }).await.contains("is an orchestration")
    );
}
