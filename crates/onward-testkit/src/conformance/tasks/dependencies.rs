//! Tasks that run after others.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, Dependencies, Dependency, NewTask, OnDependencyFailure, OnDuplicate, Outcome, Prune,
    QueueRecord, Refusal, StoreReads, Submitted, TaskFilter, TaskId, TaskState, Ttl, TtlFrom, WaitReason, When, Write,
    bounds,
};

use crate::test_store::{LEASE, TestStore, keyed, name, numbers, task};

const SECOND: Duration = Duration::from_secs(1);

fn on(tasks: &[TaskId]) -> NewTask {
    NewTask { depends_on: Dependencies::on(tasks.iter().copied()), ..task("dependent") }
}

fn on_with(tasks: &[TaskId], on_failure: OnDependencyFailure) -> NewTask {
    let mut new = on(tasks);
    new.depends_on.on_failure = on_failure;
    new
}

fn on_position(position: usize) -> NewTask {
    NewTask { depends_on: Dependencies::on_positions([position]), ..task("dependent") }
}

fn submit(new: NewTask) -> Write {
    Write::Submit(Box::new(new))
}

fn purge(state: TaskState, limit: usize) -> Write {
    Write::Purge { queue: name("default"), states: vec![state], limit }
}

/// Ends a running task as a dead letter.
async fn kill(store: &TestStore, lease: onward_store::Lease) {
    assert_eq!(store.fail(lease, AfterFailure::Dead).await.state, TaskState::Dead);
}

/// Shows: T12
pub async fn a_dependent_is_blocked_until_its_dependency_has_completed(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    let record = store.record(dependent).await;
    assert_eq!((record.state, record.blocked_by), (TaskState::Blocked, vec![first.task]));
    let session = store.session().await;
    assert!(store.claim(session, 9).await.is_empty(), "a blocked task is not handed out");
    store.complete(first).await;
    let record = store.record(dependent).await;
    assert_eq!((record.state, record.blocked_by), (TaskState::Waiting, vec![]));
    assert_eq!(numbers(&store.claim(session, 9).await), [dependent]);
}

/// Shows: T12, B6
pub async fn a_blocked_task_names_those_it_waits_for_that_have_not_ended(store: TestStore) {
    let (first, second) = (store.running(task("k")).await, store.running(task("k")).await);
    let dependent = store.submit_new(on(&[first.task, second.task])).await;
    let reasons = async || store.inner().why(dependent).await.ok().flatten().unwrap_or_default();
    assert_eq!(reasons().await, [WaitReason::Blocked { by: vec![first.task, second.task] }]);
    store.complete(first).await;
    assert_eq!(reasons().await, [WaitReason::Blocked { by: vec![second.task] }]);
    store.complete(second).await;
    assert_eq!(reasons().await, []);
}

/// Shows: T12
pub async fn a_claim_in_the_call_of_the_last_end_gets_the_dependent(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    let claim = onward_store::Claim::any(first.session, 1);
    let outcomes = store.apply(vec![Write::Complete { lease: first, result: None }, Write::Claim(claim)]).await;
    let Some(Outcome::Claimed(claimed)) = outcomes.last() else { panic!("no claim: {outcomes:?}") };
    assert_eq!(numbers(&claimed.tasks), [dependent]);
}

/// Shows: T12
pub async fn a_dependent_waits_for_the_last_of_its_dependencies(store: TestStore) {
    let session = store.session().await;
    let dependencies = [store.submit("k").await, store.submit("k").await, store.submit("k").await];
    let dependent = store.submit_new(on(&dependencies)).await;
    for claimed in store.claim(session, 3).await {
        assert_eq!(store.state(dependent).await, TaskState::Blocked);
        store.complete(claimed.lease).await;
    }
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn completions_of_one_call_unblock_together(store: TestStore) {
    let session = store.session().await;
    let dependencies: Vec<TaskId> = [store.submit("k").await, store.submit("k").await].to_vec();
    let dependent = store.submit_new(on(&dependencies)).await;
    let complete = |task: onward_store::ClaimedTask| Write::Complete { lease: task.lease, result: None };
    store.apply(store.claim(session, 2).await.into_iter().map(complete).collect()).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn a_dependency_may_have_a_key(store: TestStore) {
    let first = store.running(keyed("a", OnDuplicate::Skip)).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    store.complete(first).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn a_dependency_named_twice_is_named_once(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task, first.task])).await;
    assert_eq!(store.record(dependent).await.blocked_by, [first.task]);
    store.complete(first).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn one_end_unblocks_all_dependents_in_their_order(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependents = [store.submit_new(on(&[first.task])).await, store.submit_new(on(&[first.task])).await];
    store.complete(first).await;
    assert_eq!(numbers(&store.claim(first.session, 9).await), dependents);
}

/// Shows: T12
pub async fn a_failed_attempt_that_is_retried_unblocks_nothing(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on_with(&[first.task], OnDependencyFailure::Ignore)).await;
    store.fail(first, crate::test_store::after(Duration::ZERO)).await;
    assert_eq!(store.state(dependent).await, TaskState::Blocked);
}

/// Shows: T12
pub async fn a_dependent_is_cancelled_when_its_dependency_dies(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    kill(&store, first).await;
    let record = store.record(dependent).await;
    assert_eq!((record.state, record.attempts), (TaskState::Cancelled, 0));
    assert!(record.errors[0].message.contains("task 1, on which it depends, ended as dead"), "{:?}", record.errors);
    assert_eq!(record.errors[0].attempt, 0);
}

/// Shows: T12
pub async fn a_dependent_fails_where_it_asked_for_that(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on_with(&[first.task], OnDependencyFailure::Fail)).await;
    store.fail(first, AfterFailure::Fail).await;
    assert_eq!(store.state(dependent).await, TaskState::Failed);
}

/// Shows: T12
pub async fn a_dependent_that_ignores_failures_runs_anyway(store: TestStore) {
    let first = store.running(task("k")).await;
    let other = store.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    let dependent = store.submit_new(on_with(&[first.task, other], OnDependencyFailure::Ignore)).await;
    kill(&store, first).await;
    assert_eq!(store.state(dependent).await, TaskState::Blocked, "it waits for the other");
    store.cancel(other).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

/// Shows: T12
pub async fn every_way_to_end_is_an_end(store: TestStore) {
    let ways = ["cancelled", "expired", "purged", "lost", "confirmed"];
    for way in ways {
        let ttl = (way == "expired").then_some(Ttl { duration: SECOND, from: TtlFrom::Submission });
        let first = store.submit_new(NewTask { ttl, ..task("k") }).await;
        let dependent = store.submit_new(on_with(&[first], OnDependencyFailure::Ignore)).await;
        match way {
            "cancelled" => drop(store.cancel(first).await),
            "expired" => {
                store.advance(SECOND);
                store.sweep().await;
            }
            "purged" => assert_eq!(store.removed(purge(TaskState::Waiting, 1)).await, (1, false)),
            "lost" => {
                for _ in 0..bounds::LOST_LEASES {
                    store.start_one().await;
                    store.lapse().await;
                }
                assert_eq!(store.state(first).await, TaskState::Dead);
            }
            _ => {
                let lease = store.start_one().await;
                store.cancel(first).await;
                store.done(Write::ConfirmCancel { lease, reason: "stopped".into() }).await;
            }
        }
        assert_eq!(store.state(dependent).await, TaskState::Waiting, "{way}");
        store.cancel(dependent).await;
    }
}

pub async fn a_purged_dependency_did_not_complete(store: TestStore) {
    let first = store.submit("k").await;
    let dependent = store.submit_new(on(&[first])).await;
    store.removed(purge(TaskState::Waiting, 9)).await;
    let record = store.record(dependent).await;
    assert_eq!(record.state, TaskState::Cancelled);
    assert!(record.errors[0].message.contains("task 1, on which it depends, was removed"), "{:?}", record.errors);
}

pub async fn a_closed_sessions_cancelled_task_is_an_end(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    store.cancel(first.task).await;
    store.done(Write::CloseSession { session: first.session }).await;
    assert_eq!(store.state(dependent).await, TaskState::Cancelled);
}

/// Shows: T12
pub async fn a_completed_dependency_delays_nothing(store: TestStore) {
    let first = store.completed(task("k")).await;
    let dependent = store.submit_new(on(&[first])).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

/// Shows: T12
pub async fn a_dependency_that_has_not_completed_counts_at_once(store: TestStore) {
    let first = store.submit("k").await;
    store.cancel(first).await;
    let policies = [OnDependencyFailure::Cancel, OnDependencyFailure::Fail, OnDependencyFailure::Ignore];
    let expected = [TaskState::Cancelled, TaskState::Failed, TaskState::Waiting];
    for (policy, expected) in policies.into_iter().zip(expected) {
        let dependent = store.submit_new(on_with(&[first], policy)).await;
        assert_eq!(store.state(dependent).await, expected, "{policy:?}");
    }
}

pub async fn a_dependent_that_ends_at_once_frees_its_key(store: TestStore) {
    let first = store.submit("k").await;
    store.cancel(first).await;
    let depends_on = Dependencies::on([first]);
    let ended = store.submitted(NewTask { depends_on, ..keyed("a", OnDuplicate::Skip) }).await;
    let next = store.submitted(keyed("a", OnDuplicate::Skip)).await;
    assert!(ended.is_new() && next.is_new(), "{ended:?}, {next:?}");
}

/// Shows: T12
pub async fn an_unknown_dependency_is_refused(store: TestStore) {
    let refusal = store.refused(submit(on(&[TaskId(7)]))).await;
    assert_eq!(refusal, Refusal::DependencyNotFound(TaskId(7)));
    assert_eq!(store.list(TaskFilter::default()).await, []);
    assert_eq!(store.queue("default").await, None);
}

/// Shows: T12
pub async fn a_task_cannot_depend_on_itself(store: TestStore) {
    assert_eq!(store.refused(submit(on(&[TaskId(1)]))).await, Refusal::DependencyNotFound(TaskId(1)));
}

pub async fn a_pruned_dependency_is_unknown(store: TestStore) {
    let first = store.completed(task("k")).await;
    store.removed(Write::Prune(Prune { keep: Some(0), limit: 9, ..Prune::default() })).await;
    assert_eq!(store.refused(submit(on(&[first]))).await, Refusal::DependencyNotFound(first));
}

pub async fn more_dependencies_than_the_limit_are_refused(store: TestStore) {
    let first = store.submit("k").await;
    let text = store.invalid(submit(on(&vec![first; bounds::DEPENDENCIES + 1]))).await;
    assert!(text.contains("1001 tasks and the limit is 1000"), "{text}");
    store.submit_new(on(&vec![first; bounds::DEPENDENCIES])).await;
}

/// Shows: T12
pub async fn tasks_submitted_together_may_depend_on_each_other(store: TestStore) {
    let join = NewTask { depends_on: Dependencies::on_positions([1, 2]), ..task("dependent") };
    let batch = [task("k"), on_position(0), on_position(0), join];
    let outcome = store.write(Write::All(batch.into_iter().map(submit).collect())).await;
    let inserted = |id| Outcome::Submitted(Submitted::Inserted { id: TaskId(id) });
    assert_eq!(outcome, Outcome::All((1..=4).map(inserted).collect()));
    assert_eq!(store.record(TaskId(4)).await.blocked_by, [TaskId(2), TaskId(3)]);
    for expected in [vec![1], vec![2, 3], vec![4]] {
        let session = store.session().await;
        let claimed = store.claim(session, 9).await;
        assert_eq!(numbers(&claimed), expected.into_iter().map(TaskId).collect::<Vec<_>>());
        for task in claimed {
            store.complete(task.lease).await;
        }
    }
}

pub async fn a_position_may_stand_for_a_duplicate(store: TestStore) {
    let first = store.submitted(keyed("a", OnDuplicate::Skip)).await.id();
    store.write(Write::All(vec![submit(keyed("a", OnDuplicate::Skip)), submit(on_position(0))])).await;
    assert_eq!(store.record(TaskId(2)).await.blocked_by, [first]);
}

/// Shows: T12
pub async fn a_position_that_is_not_before_is_refused(store: TestStore) {
    for position in [0, 1, 7] {
        let refusal = store.refused(Write::All(vec![submit(on_position(position)), submit(task("k"))])).await;
        let Refusal::InAll { index: 0, refusal } = refusal else { panic!("{refusal:?}") };
        assert!(refusal.to_string().contains(&format!("number {position}")), "{refusal}");
    }
    assert_eq!(store.list(TaskFilter::default()).await, []);
}

pub async fn a_position_that_is_not_a_submit_is_refused(store: TestStore) {
    let refusal = store.refused(Write::All(vec![Write::Sweep, submit(on_position(0))])).await;
    assert!(matches!(refusal, Refusal::InAll { index: 1, .. }), "{refusal:?}");
}

pub async fn a_position_outside_a_batch_is_refused(store: TestStore) {
    store.invalid(submit(on_position(0))).await;
}

pub async fn a_refused_write_of_an_all_undoes_dependencies(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    let complete = Write::Complete { lease: first, result: None };
    let unknown = Write::Cancel { task: TaskId(999) };
    store.refused(Write::All(vec![submit(on(&[first.task])), complete, unknown])).await;
    assert_eq!(store.record(dependent).await.blocked_by, [first.task]);
    assert_eq!(store.find(TaskId(3)).await, None);
    store.complete(first).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn an_unblocked_task_that_is_not_due_is_scheduled(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(NewTask { when: When::After(SECOND * 5), ..on(&[first.task]) }).await;
    store.advance(SECOND);
    store.complete(first).await;
    assert_eq!(store.state(dependent).await, TaskState::Scheduled);
    store.advance(SECOND * 4);
    store.sweep().await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn an_unblocked_task_is_due_from_then_on(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    store.advance(SECOND);
    let waiting = store.submit("k").await;
    store.advance(SECOND);
    store.complete(first).await;
    assert_eq!(store.record(dependent).await.run_at, store.now());
    assert_eq!(numbers(&store.claim(first.session, 9).await), [waiting, dependent]);
}

pub async fn a_blocked_task_is_not_made_due_by_time(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(NewTask { when: When::After(SECOND), ..on(&[first.task]) }).await;
    store.advance(SECOND * 2);
    assert_eq!(store.sweep().await.due, 0);
    assert_eq!(store.state(dependent).await, TaskState::Blocked);
}

/// Shows: T12
pub async fn a_blocked_task_expires(store: TestStore) {
    let first = store.running(task("k")).await;
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    let dependent = store.submit_new(NewTask { ttl, ..on(&[first.task]) }).await;
    let last = store.submit_new(on(&[dependent])).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 1);
    assert_eq!(store.state(last).await, TaskState::Cancelled);
    store.complete(first).await;
    assert_eq!(store.state(dependent).await, TaskState::Expired);
}

/// Shows: T12
pub async fn a_blocked_task_can_be_cancelled_and_purged(store: TestStore) {
    let first = store.running(task("k")).await;
    let cancelled = store.submit_new(on(&[first.task])).await;
    assert_eq!(store.cancel(cancelled).await, Outcome::Cancelled);
    let purged = store.submit_new(on(&[first.task])).await;
    assert_eq!(store.removed(purge(TaskState::Blocked, 9)).await, (1, false));
    assert_eq!(store.find(purged).await, None);
    store.complete(first).await;
    assert_eq!(store.state(cancelled).await, TaskState::Cancelled);
}

pub async fn a_blocked_task_has_its_key_and_may_become_more_urgent(store: TestStore) {
    let first = store.running(task("k")).await;
    let new = |priority| NewTask {
        priority: onward_store::Priority(priority),
        depends_on: Dependencies::on([first.task]),
        ..keyed("a", OnDuplicate::Skip)
    };
    let id = store.submit_new(new(100)).await;
    assert_eq!(store.submitted(new(200)).await, Submitted::PriorityRaised { id });
    let record = store.record(id).await;
    assert_eq!((record.state, record.priority.0), (TaskState::Blocked, 200));
}

pub async fn superseding_a_dependency_is_its_end(store: TestStore) {
    let first = store.submitted(keyed("a", OnDuplicate::Skip)).await.id();
    let dependent = store.submit_new(on(&[first])).await;
    store.submitted(keyed("a", OnDuplicate::Supersede)).await;
    assert_eq!(store.state(dependent).await, TaskState::Cancelled);
}

pub async fn what_follows_a_task_may_depend_on_it(store: TestStore) {
    let first = store.running(keyed("a", OnDuplicate::Skip)).await;
    let depends_on = Dependencies::on([first.task]);
    store.submitted(NewTask { depends_on, ..keyed("a", OnDuplicate::Requeue) }).await;
    store.complete(first).await;
    assert_eq!(store.state(TaskId(2)).await, TaskState::Waiting);
}

pub async fn a_follower_ends_if_its_dependency_was_removed(store: TestStore) {
    let gone = store.submit_new(NewTask { queue: name("other"), ..task("k") }).await;
    let session = store.session().await;
    let key = store.submitted(keyed("a", OnDuplicate::Skip)).await.id();
    let claimed = store.claim(session, 2).await;
    let held = claimed.iter().find(|claimed| claimed.lease.task == key).expect("it was claimed").lease;
    store.release(claimed[usize::from(claimed[0].lease == held)].lease, Duration::ZERO).await;
    let depends_on = Dependencies::on([gone]);
    store.submitted(NewTask { depends_on, ..keyed("a", OnDuplicate::Requeue) }).await;
    store.removed(Write::Purge { queue: name("other"), states: vec![TaskState::Waiting], limit: 1 }).await;
    store.complete(held).await;
    assert_eq!(store.state(TaskId(3)).await, TaskState::Cancelled);
}

pub async fn a_retried_task_waits_for_no_dependency_again(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    kill(&store, first).await;
    store.retry(first.task).await;
    store.retry(dependent).await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

/// A cycle would need a task that depends on one accepted after it. No write that starts an ended
/// task again adds dependencies to it.
///
/// Shows: T12
pub async fn a_retry_makes_no_cycle(store: TestStore) {
    let first = store.submit("k").await;
    store.cancel(first).await;
    let dependent = store.submit_new(on_with(&[first], OnDependencyFailure::Ignore)).await;
    store.retry(first).await;
    assert_eq!(store.record(first).await.blocked_by, []);
    let last = store.submit_new(on(&[first, dependent])).await;
    assert_eq!(store.record(last).await.blocked_by, [first, dependent]);
    for _ in 0..3 {
        store.complete_next().await;
    }
    assert_eq!(store.state(last).await, TaskState::Completed);
}

/// Shows: T12
pub async fn a_failure_runs_down_a_chain(store: TestStore) {
    let first = store.running(task("k")).await;
    let mut chain = vec![first.task];
    for _ in 0..5 {
        chain.push(store.submit_new(on(&chain[chain.len() - 1..])).await);
    }
    kill(&store, first).await;
    for task in &chain[1..] {
        assert_eq!(store.state(*task).await, TaskState::Cancelled);
    }
    let changes: Vec<_> =
        store.changes().await.into_iter().filter(|(_, change)| *change == Change::Cancelled).collect();
    assert_eq!(changes.iter().map(|(task, _)| *task).collect::<Vec<_>>(), chain[1..]);
}

/// Shows: T12
pub async fn a_long_chain_is_ended_in_bounded_steps_and_in_order(mut store: TestStore) {
    let first = store.running(task("k")).await;
    let length = 2 * bounds::CASCADE;
    let mut batch = vec![submit(on(&[first.task]))];
    batch.extend((0..length - 1).map(|before| submit(on_position(before))));
    store.write(Write::All(batch)).await;
    kill(&store, first).await;
    let cancelled = |queue: Option<QueueRecord>| queue.map_or(0, |queue| queue.ended.cancelled);
    let some = cancelled(store.queue("default").await);
    assert!(some > 0 && some <= bounds::CASCADE as u64, "one write ended {some} of {length}");
    store.reopen().await;
    assert_eq!(store.sweep().await.next_due, Some(Duration::ZERO), "the rest is due at once");
    for _ in 0..4 {
        store.sweep().await;
    }
    assert_eq!(cancelled(store.queue("default").await), length as u64);
    assert_eq!(store.sweep().await.next_due, None);
}

pub async fn many_dependents_of_one_task_are_unblocked_in_bounded_steps(store: TestStore) {
    let first = store.running(task("k")).await;
    let count = bounds::CASCADE + 10;
    store.write(Write::All((0..count).map(|_| submit(on(&[first.task]))).collect())).await;
    store.complete(first).await;
    let waiting = |queue: Option<QueueRecord>| queue.map(|queue| (queue.blocked, queue.waiting));
    assert_eq!(waiting(store.queue("default").await), Some((10, bounds::CASCADE as u64)));
    store.sweep().await;
    assert_eq!(waiting(store.queue("default").await), Some((0, count as u64)));
}

pub async fn a_dependent_of_a_retried_task_ignores_its_first_end(store: TestStore) {
    let first = store.running(task("k")).await;
    let before = (0..bounds::CASCADE + 10).map(|_| submit(on(&[first.task]))).collect();
    store.write(Write::All(before)).await;
    kill(&store, first).await;
    store.apply(vec![Write::Retry { task: first.task }, submit(on(&[first.task]))]).await;
    for _ in 0..3 {
        store.sweep().await;
    }
    let blocked = TaskFilter { states: vec![TaskState::Blocked], ..TaskFilter::default() };
    assert_eq!(store.list(blocked).await.len(), 1);
}

pub async fn dependencies_survive_a_restart(mut store: TestStore) {
    let first = store.submit("k").await;
    let dependent = store.submit_new(on(&[first])).await;
    store.reopen().await;
    assert_eq!(store.record(dependent).await.blocked_by, [first]);
    store.complete_next().await;
    assert_eq!(store.state(dependent).await, TaskState::Waiting);
}

pub async fn blocked_tasks_are_counted_and_listed(store: TestStore) {
    let first = store.submit("k").await;
    let dependent = store.submit_new(on(&[first])).await;
    assert_eq!(store.queue("default").await.map(|queue| (queue.blocked, queue.waiting)), Some((1, 1)));
    let blocked = TaskFilter { states: vec![TaskState::Blocked], ..TaskFilter::default() };
    assert_eq!(store.list(blocked).await, [dependent]);
}

pub async fn an_unblocked_task_is_an_event(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    store.complete(first).await;
    assert!(store.changes().await.contains(&(dependent, Change::Unblocked)));
}

pub async fn an_unblocked_task_hints_at_work(store: TestStore) {
    let first = store.running(task("k")).await;
    store.submit_new(on(&[first.task])).await;
    let mut changes = store.inner().changes();
    let before = changes.hint().work;
    store.complete(first).await;
    assert!(changes.hint().work > before);
}

pub async fn a_dependency_lost_with_its_session_is_waited_for(store: TestStore) {
    let first = store.running(task("k")).await;
    let dependent = store.submit_new(on(&[first.task])).await;
    store.advance(LEASE);
    assert_eq!(store.sweep().await.lost, 1);
    assert_eq!(store.state(dependent).await, TaskState::Blocked);
}

pub async fn positions_and_numbers_may_be_mixed(store: TestStore) {
    let first = store.submit("k").await;
    let tasks = vec![Dependency::Task(first), Dependency::Position(0)];
    let depends_on = Dependencies { tasks, ..Dependencies::default() };
    store.write(Write::All(vec![submit(task("k")), submit(NewTask { depends_on, ..task("k") })])).await;
    assert_eq!(store.record(TaskId(3)).await.blocked_by, [first, TaskId(2)]);
}
