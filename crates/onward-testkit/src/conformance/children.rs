//! Parents and children.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    AfterFailure, Change, ClaimedTask, Dependencies, Lease, NewTask, OnDependencyFailure, OnDuplicate, Outcome, Prune,
    Refusal, SetQueue, TaskFilter, TaskId, TaskState, Ttl, TtlFrom, Write, bounds,
};

use crate::bench::{Bench, keyed, name, numbers, task};

const SECOND: Duration = Duration::from_secs(1);

fn of(parent: TaskId) -> NewTask {
    NewTask { parent: Some(parent), ..task("child") }
}

fn submit(new: NewTask) -> Write {
    Write::Submit(Box::new(new))
}

fn wait(lease: Lease, memo: &'static str, on_failure: OnDependencyFailure) -> Write {
    Write::AwaitChildren { lease, memo: Bytes::from_static(memo.as_bytes()), on_failure }
}

/// Ends an attempt until its children have ended. Returns the state of the task.
async fn awaited(bench: &Bench, lease: Lease, on_failure: OnDependencyFailure) -> TaskState {
    match bench.write(wait(lease, "memo", on_failure)).await {
        Outcome::AwaitsChildren { state } => state,
        other => panic!("it should wait for its children: {other:?}"),
    }
}

/// Starts a task and submits this many children of it. Returns its lease and the children.
async fn family(bench: &Bench, children: usize) -> (Lease, Vec<TaskId>) {
    let parent = bench.running(task("parent")).await;
    let mut ids = Vec::new();
    for _ in 0..children {
        ids.push(bench.submit_new(of(parent.task)).await);
    }
    (parent, ids)
}

async fn claim_all(bench: &Bench) -> Vec<ClaimedTask> {
    let session = bench.session().await;
    bench.claim(session, 99).await
}

fn children_of(parent: TaskId) -> TaskFilter {
    TaskFilter { parent: Some(parent), ..TaskFilter::default() }
}

/// Shows: T11
pub async fn a_child_knows_its_parent_and_is_found_by_it(mut bench: Bench) {
    let (parent, children) = family(&bench, 2).await;
    bench.submit("other").await;
    assert_eq!(bench.list(children_of(parent.task)).await, [children[1], children[0]]);
    assert_eq!(bench.record(children[0]).await.parent, Some(parent.task));
    let claimed = claim_all(&bench).await;
    assert_eq!(claimed[0].parent, Some(parent.task));
    bench.complete(claimed[0].lease).await;
    bench.reopen().await;
    assert_eq!(bench.record(children[0]).await.parent, Some(parent.task), "also of an ended child");
    assert_eq!(bench.list(children_of(parent.task)).await.len(), 2);
}

/// Shows: T11
pub async fn a_parent_waits_for_its_children_and_goes_on_with_its_memo(bench: Bench) {
    let (parent, _) = family(&bench, 2).await;
    assert_eq!(awaited(&bench, parent, OnDependencyFailure::Ignore).await, TaskState::Blocked);
    let record = bench.record(parent.task).await;
    assert_eq!((record.blocked_by.len(), record.attempts, record.session), (2, 0, None));
    for child in claim_all(&bench).await {
        assert_eq!((bench.state(parent.task).await, child.memo), (TaskState::Blocked, None));
        bench.complete(child.lease).await;
    }
    assert_eq!(bench.state(parent.task).await, TaskState::Waiting);
    let claimed = claim_all(&bench).await;
    assert_eq!(numbers(&claimed), [parent.task]);
    assert_eq!((claimed[0].memo.as_deref(), claimed[0].attempt), (Some(b"memo".as_slice()), 1));
    bench.complete(claimed[0].lease).await;
    assert_eq!(bench.state(parent.task).await, TaskState::Completed);
}

/// Shows: T11
pub async fn children_and_the_wait_for_them_are_one_write(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    let outcome = bench
        .write(Write::All(vec![
            submit(of(parent.task)),
            submit(of(parent.task)),
            wait(parent, "memo", OnDependencyFailure::Ignore),
        ]))
        .await;
    let Outcome::All(outcomes) = outcome else { panic!("{outcome:?}") };
    assert_eq!(outcomes.last(), Some(&Outcome::AwaitsChildren { state: TaskState::Blocked }));
    assert_eq!(bench.record(parent.task).await.blocked_by, [TaskId(2), TaskId(3)]);
}

/// Shows: T11
pub async fn children_of_an_attempt_whose_lease_is_lost_are_not_taken(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    bench.release(parent, Duration::ZERO).await;
    let complete = Write::Complete { lease: parent, result: None };
    let refusal = bench.refused(Write::All(vec![submit(of(parent.task)), complete])).await;
    assert!(matches!(refusal, Refusal::Member { index: 1, .. }), "{refusal:?}");
    assert_eq!(bench.list(children_of(parent.task)).await, []);
}

/// The orchestration continues with its children once it has been retried.
///
/// Shows: D9
pub async fn a_dead_orchestration_keeps_its_children_whoever_else_waits_for_it(bench: Bench) {
    let orchestration = bench.submit_new(NewTask { orchestration: true, ..task("order") }).await;
    let child = bench.submit_new(of(orchestration)).await;
    let depends_on = Dependencies::on([orchestration]);
    let dependent = bench.submit_new(NewTask { depends_on, ..task("after") }).await;
    bench.done(Write::Kill { task: orchestration }).await;
    assert_eq!(bench.record(dependent).await.state, TaskState::Cancelled);
    assert_eq!(bench.record(child).await.state, TaskState::Waiting);
}

pub async fn a_parent_without_live_children_goes_on_at_once(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    for child in claim_all(&bench).await {
        bench.complete(child.lease).await;
    }
    bench.advance(SECOND);
    assert_eq!(awaited(&bench, parent, OnDependencyFailure::Fail).await, TaskState::Waiting);
    assert_eq!(bench.record(parent.task).await.run_at, bench.now());
}

/// Shows: T11
pub async fn a_child_that_comes_meanwhile_is_waited_for_too(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    let claimed = claim_all(&bench).await;
    let sibling = bench.submit_new(of(parent.task)).await;
    bench.complete(claimed[0].lease).await;
    assert_eq!(bench.record(parent.task).await.blocked_by, [sibling]);
    bench.complete_next().await;
    assert_eq!(bench.state(parent.task).await, TaskState::Waiting);
}

/// Shows: T11
pub async fn a_parent_that_collects_goes_on_whatever_became_of_its_children(bench: Bench) {
    let (parent, children) = family(&bench, 2).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    bench.cancel(children[0]).await;
    assert_eq!(bench.state(parent.task).await, TaskState::Blocked);
    let child = bench.start_one().await;
    bench.fail(child, AfterFailure::Dead).await;
    assert_eq!(bench.state(parent.task).await, TaskState::Waiting);
}

/// Shows: T11
pub async fn a_parent_that_fails_fast_takes_the_other_children_with_it(bench: Bench) {
    let (parent, children) = family(&bench, 3).await;
    awaited(&bench, parent, OnDependencyFailure::Fail).await;
    let session = bench.session().await;
    let claimed = bench.claim(session, 2).await;
    bench.fail(claimed[0].lease, AfterFailure::Dead).await;
    let record = bench.record(parent.task).await;
    assert_eq!(record.state, TaskState::Failed);
    assert!(record.errors[0].message.contains("task 2, on which it depends, ended as dead"), "{:?}", record.errors);
    assert!(bench.record(children[1]).await.cancel_requested, "the one that runs is asked to stop");
    let last = bench.record(children[2]).await;
    assert_eq!(last.state, TaskState::Cancelled);
    assert!(last.errors[0].message.contains("task 1, its parent, ended as failed"), "{:?}", last.errors);
}

pub async fn a_child_that_failed_before_the_wait_counts(bench: Bench) {
    let (parent, children) = family(&bench, 2).await;
    bench.cancel(children[0]).await;
    assert_eq!(awaited(&bench, parent, OnDependencyFailure::Fail).await, TaskState::Failed);
    let record = bench.record(parent.task).await;
    assert!(record.errors[0].message.contains("task 2, its child, ended as cancelled"), "{:?}", record.errors);
    assert_eq!(bench.state(children[1]).await, TaskState::Cancelled);
}

pub async fn a_child_that_failed_in_an_earlier_attempt_does_not_count(bench: Bench) {
    let (parent, children) = family(&bench, 1).await;
    bench.cancel(children[0]).await;
    bench.advance(SECOND);
    bench.fail(parent, crate::bench::after(Duration::ZERO)).await;
    bench.advance(SECOND);
    let parent = bench.start_one().await;
    assert_eq!(awaited(&bench, parent, OnDependencyFailure::Fail).await, TaskState::Waiting);
}

pub async fn a_parent_may_be_cancelled_by_a_child(bench: Bench) {
    let (parent, children) = family(&bench, 2).await;
    awaited(&bench, parent, OnDependencyFailure::Cancel).await;
    bench.cancel(children[1]).await;
    assert_eq!(bench.state(parent.task).await, TaskState::Cancelled);
    assert_eq!(bench.state(children[0]).await, TaskState::Cancelled);
}

/// Shows: T11
pub async fn cancelling_a_parent_that_waits_cancels_its_children(bench: Bench) {
    let (parent, children) = family(&bench, 2).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    let grandchild = bench.submit_new(of(children[0])).await;
    assert_eq!(bench.cancel(parent.task).await, Outcome::Cancelled);
    for task in [children[0], children[1], grandchild] {
        assert_eq!(bench.state(task).await, TaskState::Cancelled);
    }
}

/// Shows: T11
pub async fn a_running_parent_that_is_cancelled_takes_its_children_with_it(bench: Bench) {
    let (parent, children) = family(&bench, 1).await;
    bench.cancel(parent.task).await;
    assert_eq!(bench.state(children[0]).await, TaskState::Waiting, "until it has stopped");
    bench.done(Write::ConfirmCancel { lease: parent, reason: "stopped".into() }).await;
    assert_eq!(bench.state(children[0]).await, TaskState::Cancelled);
}

pub async fn a_cancelled_parent_does_not_wait_for_its_children(bench: Bench) {
    let (parent, children) = family(&bench, 1).await;
    bench.cancel(parent.task).await;
    assert_eq!(awaited(&bench, parent, OnDependencyFailure::Ignore).await, TaskState::Cancelled);
    assert_eq!(bench.state(children[0]).await, TaskState::Cancelled);
}

/// Shows: T11
pub async fn children_outlive_a_parent_that_completes(bench: Bench) {
    let (parent, children) = family(&bench, 1).await;
    bench.complete(parent).await;
    assert_eq!(bench.state(children[0]).await, TaskState::Waiting);
    let late = bench.submit_new(of(parent.task)).await;
    assert_eq!(bench.state(late).await, TaskState::Waiting);
}

/// Shows: T11
pub async fn children_do_not_outlive_a_parent_that_dies_or_is_purged(bench: Bench) {
    let (parent, children) = family(&bench, 1).await;
    bench.fail(parent, AfterFailure::Dead).await;
    assert_eq!(bench.state(children[0]).await, TaskState::Cancelled);
    let late = bench.submit_new(of(parent.task)).await;
    assert_eq!(bench.state(late).await, TaskState::Cancelled);

    let parent = bench.submit_new(NewTask { queue: name("other"), ..task("parent") }).await;
    let child = bench.submit_new(of(parent)).await;
    bench.removed(Write::Purge { queue: name("other"), states: vec![TaskState::Waiting], limit: 9 }).await;
    assert_eq!(bench.state(child).await, TaskState::Cancelled);
}

/// Shows: T11
pub async fn an_unknown_parent_is_refused(bench: Bench) {
    assert_eq!(bench.refused(submit(of(TaskId(7)))).await, Refusal::TaskNotFound(TaskId(7)));
    assert_eq!(bench.list(TaskFilter::default()).await, []);
}

/// Shows: T11, T12
pub async fn a_parent_does_not_wait_for_a_child_that_waits_for_it(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    let between = bench.submit_new(NewTask { depends_on: Dependencies::on([parent.task]), ..task("k") }).await;
    let child = bench.submit_new(NewTask { depends_on: Dependencies::on([between]), ..of(parent.task) }).await;
    let text = bench.invalid(wait(parent, "memo", OnDependencyFailure::Ignore)).await;
    assert!(text.contains("task 1 would wait for a child that waits for task 1"), "{text}");
    assert_eq!(bench.state(parent.task).await, TaskState::Running);
    bench.complete(parent).await;
    assert_eq!(bench.state(child).await, TaskState::Blocked);
}

/// Shows: T11, T12
pub async fn a_waiting_parent_gets_no_child_that_waits_for_it(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    let depends_on = Dependencies::on([parent.task]);
    bench.invalid(submit(NewTask { depends_on, ..of(parent.task) })).await;
    assert_eq!(bench.list(children_of(parent.task)).await.len(), 1);
}

pub async fn what_depends_on_a_parent_waits_for_its_children_too(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    let after = bench.submit_new(NewTask { depends_on: Dependencies::on([parent.task]), ..task("k") }).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    bench.complete_next().await;
    assert_eq!(bench.state(after).await, TaskState::Blocked);
    assert_eq!(bench.complete_next().await, parent.task);
    assert_eq!(bench.state(after).await, TaskState::Waiting);
}

pub async fn a_memo_that_is_too_large_is_refused(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    let memo = vec![0; bench.payload_limit() + 1].into();
    let on_failure = OnDependencyFailure::Ignore;
    let text = bench.invalid(Write::AwaitChildren { lease: parent, memo, on_failure }).await;
    assert!(text.contains("the memo"), "{text}");
}

pub async fn a_later_memo_replaces_an_earlier_one(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    bench.write(wait(parent, "one", OnDependencyFailure::Ignore)).await;
    let parent = bench.start_one().await;
    bench.write(wait(parent, "two", OnDependencyFailure::Ignore)).await;
    assert_eq!(claim_all(&bench).await[0].memo.as_deref(), Some(b"two".as_slice()));
}

/// Shows: T11
pub async fn a_memo_survives_a_failed_attempt_and_a_restart(mut bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    bench.reopen().await;
    bench.complete_next().await;
    let again = bench.start_one().await;
    bench.fail(again, crate::bench::after(Duration::ZERO)).await;
    let claimed = claim_all(&bench).await;
    assert_eq!((claimed[0].memo.as_deref(), claimed[0].attempt), (Some(b"memo".as_slice()), 2));
}

pub async fn a_retried_parent_begins_anew(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    bench.cancel(parent.task).await;
    bench.retry(parent.task).await;
    let claimed = claim_all(&bench).await;
    assert_eq!((claimed[0].lease.task, claimed[0].memo.clone()), (parent.task, None));
}

pub async fn no_wait_under_an_outdated_lease_is_taken(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    let refusal = bench.refused(wait(parent, "memo", OnDependencyFailure::Ignore)).await;
    assert_eq!(refusal, Refusal::LeaseLost(parent));
}

pub async fn a_parent_that_waits_holds_no_place_in_its_queue(bench: Bench) {
    let concurrency = Some(onward_store::ConcurrencyLimit::AtMost(1));
    bench.write(Write::SetQueue(SetQueue { concurrency, ..SetQueue::new(name("default")) })).await;
    let (parent, children) = family(&bench, 1).await;
    assert!(claim_all(&bench).await.is_empty());
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    assert_eq!(numbers(&claim_all(&bench).await), children);
}

pub async fn a_time_to_live_from_the_first_attempt_ends_a_parent_that_waits(bench: Bench) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::FirstAttempt });
    let parent = bench.running(NewTask { ttl, ..task("parent") }).await;
    let child = bench.submit_new(of(parent.task)).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    bench.advance(SECOND);
    bench.sweep().await;
    assert_eq!(bench.state(parent.task).await, TaskState::Expired);
    assert_eq!(bench.state(child).await, TaskState::Cancelled);
}

pub async fn many_children_are_cancelled_in_bounded_steps(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    let count = bounds::CASCADE + 10;
    bench.write(Write::All((0..count).map(|_| submit(of(parent.task))).collect())).await;
    bench.fail(parent, AfterFailure::Dead).await;
    let sizes = |queue: Option<onward_store::QueueRecord>| queue.map(|queue| (queue.waiting, queue.ended.cancelled));
    assert_eq!(sizes(bench.queue("default").await), Some((10, bounds::CASCADE as u64)));
    bench.sweep().await;
    assert_eq!(sizes(bench.queue("default").await), Some((0, count as u64)));
}

pub async fn a_pruned_child_is_forgotten(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    bench.complete_next().await;
    bench.removed(Write::Prune(Prune { keep: Some(0), limit: 9, ..Prune::default() })).await;
    assert_eq!(bench.list(children_of(parent.task)).await, []);
    bench.complete(parent).await;
}

pub async fn the_wait_for_children_is_told_as_events(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    awaited(&bench, parent, OnDependencyFailure::Ignore).await;
    bench.complete_next().await;
    let told: Vec<Change> =
        bench.changes().await.into_iter().filter(|(task, _)| *task == parent.task).map(|(_, change)| change).collect();
    let started = Change::Started { attempt: 1 };
    assert_eq!(told, [Change::Submitted, started, Change::Blocked, Change::Unblocked]);
}

pub async fn a_refused_member_undoes_a_wait_for_children(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    let unknown = Write::Cancel { task: TaskId(999) };
    bench.refused(Write::All(vec![wait(parent, "memo", OnDependencyFailure::Ignore), unknown])).await;
    assert_eq!(bench.state(parent.task).await, TaskState::Running);
    bench.complete(parent).await;
}

pub async fn a_child_may_follow_a_running_task(bench: Bench) {
    let parent = bench.running(task("parent")).await;
    let held = bench.running(keyed("a", OnDuplicate::Skip)).await;
    bench.submitted(NewTask { parent: Some(parent.task), ..keyed("a", OnDuplicate::Requeue) }).await;
    bench.complete(held).await;
    assert_eq!(bench.list(children_of(parent.task)).await, [TaskId(3)]);
}

pub async fn a_retried_parent_has_its_children_still(bench: Bench) {
    let (parent, _) = family(&bench, 1).await;
    bench.complete(parent).await;
    bench.retry(parent.task).await;
    bench.cancel(parent.task).await;
    assert_eq!(bench.list(TaskFilter { states: vec![TaskState::Cancelled], ..TaskFilter::default() }).await.len(), 2);
}

/// Shows: D2, T11
pub async fn what_an_attempt_keeps_is_there_for_the_next(mut bench: Bench) {
    let lease = bench.running(task("copy")).await;
    let keep = |lease, memo: &'static str| Write::KeepMemo { lease, memo: memo.into() };
    bench.done(keep(lease, "a third")).await;
    bench.done(keep(lease, "half")).await;
    bench.fail(lease, crate::bench::after(Duration::ZERO)).await;
    assert_eq!(bench.refused(keep(lease, "late")).await, Refusal::LeaseLost(lease));
    bench.reopen().await;
    let session = bench.session().await;
    let again = bench.claim(session, 1).await.remove(0);
    assert_eq!(again.memo.as_deref(), Some(b"half".as_slice()));
    bench.complete(again.lease).await;
    bench.retry(lease.task).await;
    assert_eq!(bench.claim(session, 1).await[0].memo, None);
}

/// Shows: D2
pub async fn what_an_attempt_keeps_has_the_limit_of_a_payload(bench: Bench) {
    let lease = bench.running(task("copy")).await;
    let memo = vec![b'x'; bench.payload_limit() + 1].into();
    assert!(bench.invalid(Write::KeepMemo { lease, memo }).await.contains("memo"));
    let lease = bench.running(NewTask { orchestration: true, ..task("order") }).await;
    assert!(bench.invalid(Write::KeepMemo { lease, memo: Bytes::new() }).await.contains("is an orchestration"));
}
