//! Purges, prunes and deletion of queues.

use std::time::Duration;

use onward_store::{Change, NewTask, OnDuplicate, Prune, Refusal, Scope, StoreReads, TaskId, TaskState, When, Write};

use crate::bench::{Bench, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);

fn purge(states: &[TaskState], limit: usize) -> Write {
    Write::Purge { queue: name("default"), states: states.to_vec(), limit }
}

async fn complete_some(bench: &Bench, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(bench.completed(task("k")).await);
        bench.advance(SECOND);
    }
    ids
}

pub async fn a_purge_removes_without_a_trace(bench: Bench) {
    let id = bench.submit("k").await;
    assert_eq!(bench.removed(purge(&[TaskState::Waiting], 10)).await, (1, false));
    assert_eq!(bench.find(id).await, None);
    assert_eq!(bench.queue("default").await.map(|queue| queue.waiting), Some(0));
}

/// Shows: T8, Q1
pub async fn a_purge_removes_only_the_states_it_names(bench: Bench) {
    let waiting = bench.submit("k").await;
    let scheduled = bench.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    bench.removed(purge(&[TaskState::Scheduled, TaskState::Dead], 10)).await;
    assert_eq!(bench.list(Default::default()).await, [waiting]);
    assert_eq!(bench.find(scheduled).await, None);
}

pub async fn a_purge_removes_ended_tasks_too(bench: Bench) {
    complete_some(&bench, 2).await;
    assert_eq!(bench.removed(purge(&[TaskState::Completed], 10)).await, (2, false));
    assert_eq!(bench.queue("default").await.map(|queue| queue.ended.total()), Some(0));
}

pub async fn a_purge_removes_only_of_its_queue(bench: Bench) {
    let other = bench.submit_new(NewTask { queue: name("other"), ..task("k") }).await;
    bench.submit("k").await;
    bench.removed(purge(&[TaskState::Waiting], 10)).await;
    assert_eq!(bench.list(Default::default()).await, [other]);
}

pub async fn a_purge_removes_the_oldest_first_and_says_whether_there_are_more(bench: Bench) {
    for _ in 0..3 {
        bench.submit("k").await;
    }
    assert_eq!(bench.removed(purge(&[TaskState::Waiting], 2)).await, (2, true));
    assert_eq!(bench.list(Default::default()).await, [TaskId(3)]);
    assert_eq!(bench.removed(purge(&[TaskState::Waiting], 1)).await, (1, false));
}

pub async fn a_purge_of_none_removes_none(bench: Bench) {
    bench.submit("k").await;
    assert_eq!(bench.removed(purge(&[TaskState::Waiting], 0)).await, (0, true));
}

pub async fn a_purge_of_running_tasks_is_refused(bench: Bench) {
    bench.running(task("k")).await;
    let text = bench.invalid(purge(&[TaskState::Waiting, TaskState::Running], 10)).await;
    assert!(text.contains("running"), "{text}");
}

pub async fn a_purge_of_no_state_is_refused(bench: Bench) {
    bench.submit("k").await;
    bench.invalid(purge(&[], 10)).await;
}

pub async fn a_purge_of_an_unknown_queue_is_refused(bench: Bench) {
    assert_eq!(bench.refused(purge(&[TaskState::Dead], 1)).await, Refusal::QueueNotFound(name("default")));
}

/// Beats: reused-ids
pub async fn a_purged_tasks_number_is_not_used_again(bench: Bench) {
    bench.submit("k").await;
    bench.removed(purge(&[TaskState::Waiting], 10)).await;
    assert_eq!(bench.submit("k").await, TaskId(2));
}

pub async fn a_purged_tasks_key_is_free(bench: Bench) {
    bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
    bench.removed(purge(&[TaskState::Waiting], 10)).await;
    bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

pub async fn a_purge_does_not_free_a_key_that_another_task_has(bench: Bench) {
    bench.completed(keyed("a", OnDuplicate::Skip)).await;
    let id = bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
    bench.removed(purge(&[TaskState::Completed], 10)).await;
    let duplicate = bench.submitted(keyed("a", OnDuplicate::Skip)).await;
    assert_eq!(duplicate, onward_store::Submitted::Duplicate { id });
}

pub async fn a_purged_task_takes_its_follower_along(bench: Bench) {
    let lease = bench.running(keyed("a", OnDuplicate::Requeue)).await;
    bench.submitted(keyed("a", OnDuplicate::Requeue)).await;
    bench.release(lease, Duration::ZERO).await;
    bench.removed(purge(&[TaskState::Waiting], 10)).await;
    assert_eq!(bench.list(Default::default()).await, []);
}

/// Shows: T16
pub async fn a_purge_is_told_as_events(bench: Bench) {
    bench.submit("k").await;
    bench.cancel(TaskId(1)).await;
    bench.removed(purge(&[TaskState::Cancelled], 10)).await;
    assert_eq!(bench.changes().await, [(TaskId(1), Change::Cancelled), (TaskId(1), Change::Purged)]);
}

/// Shows: T17
pub async fn pruning_by_age_forgets_what_ended_longer_ago(bench: Bench) {
    let ids = complete_some(&bench, 3).await;
    let prune = Prune { older_than: Some(SECOND * 2), keep: None, limit: 10 };
    assert_eq!(bench.removed(Write::Prune(prune)).await, (1, false));
    assert_eq!(bench.list(Default::default()).await, [ids[2], ids[1]]);
}

/// Shows: T17
pub async fn pruning_by_number_forgets_the_oldest(bench: Bench) {
    let ids = complete_some(&bench, 3).await;
    let prune = Prune { keep: Some(1), older_than: None, limit: 10 };
    assert_eq!(bench.removed(Write::Prune(prune)).await, (2, false));
    assert_eq!(bench.list(Default::default()).await, [ids[2]]);
}

pub async fn what_is_old_or_too_many_is_pruned(bench: Bench) {
    let ids = complete_some(&bench, 4).await;
    let prune = Prune { keep: Some(2), older_than: Some(SECOND), limit: 10 };
    assert_eq!(bench.removed(Write::Prune(prune)).await, (3, false));
    assert_eq!(bench.list(Default::default()).await, [ids[3]]);
}

pub async fn the_oldest_end_is_pruned_first(bench: Bench) {
    let first = bench.running(task("k")).await;
    let second = bench.running(task("k")).await;
    bench.complete(second).await;
    bench.complete(first).await;
    let prune = Prune { keep: Some(0), older_than: None, limit: 1 };
    assert_eq!(bench.removed(Write::Prune(prune)).await, (1, true));
    assert_eq!(bench.list(Default::default()).await, [first.task]);
}

pub async fn pruning_stops_at_the_first_end_that_it_keeps(bench: Bench) {
    let ids = complete_some(&bench, 1).await;
    bench.clock().set_wall(bench.now().minus(SECOND * 60));
    let behind = bench.completed(task("k")).await;
    bench.clock().set_wall(bench.now().plus(SECOND * 60));
    let prune = |age| Write::Prune(Prune { older_than: Some(age), keep: None, limit: 10 });
    assert_eq!(bench.removed(prune(SECOND * 2)).await, (0, false));
    assert_eq!(bench.list(Default::default()).await, [behind, ids[0]]);
}

pub async fn a_task_that_ended_twice_in_a_call_is_pruned_by_its_last_end(bench: Bench) {
    let (one, other) = (bench.submit("k").await, bench.submit("k").await);
    let cancel = |task| Write::Cancel { task };
    bench.apply(vec![cancel(one), cancel(other), Write::Retry { task: one }, cancel(one)]).await;
    bench.removed(Write::Prune(Prune { keep: Some(1), older_than: None, limit: 10 })).await;
    assert_eq!((bench.find(one).await.is_some(), bench.find(other).await), (true, None));
}

pub async fn a_task_that_ended_in_the_same_call_can_be_pruned(bench: Bench) {
    let task = bench.submit("k").await;
    let prune = Write::Prune(Prune { keep: Some(0), older_than: None, limit: 10 });
    let outcomes = bench.apply(vec![Write::Cancel { task }, prune]).await;
    assert_eq!(outcomes[1], onward_store::Outcome::Removed { tasks: 1, more: false });
    assert_eq!(bench.list(Default::default()).await, []);
}

pub async fn pruning_without_a_condition_forgets_nothing(bench: Bench) {
    complete_some(&bench, 2).await;
    let prune = Prune { keep: None, older_than: None, limit: 10 };
    assert_eq!(bench.removed(Write::Prune(prune)).await, (0, false));
}

pub async fn pruning_leaves_live_tasks(bench: Bench) {
    let waiting = bench.submit("k").await;
    bench.advance(SECOND);
    bench.removed(Write::Prune(Prune { keep: Some(0), older_than: Some(SECOND), limit: 10 })).await;
    assert_eq!(bench.list(Default::default()).await, [waiting]);
}

pub async fn pruning_does_not_change_statistics(bench: Bench) {
    complete_some(&bench, 2).await;
    let before = bench.store().statistics().await.ok();
    bench.removed(Write::Prune(Prune { keep: Some(0), older_than: None, limit: 10 })).await;
    assert_eq!(bench.store().statistics().await.ok(), before);
}

/// Shows: Q1
pub async fn an_empty_queue_can_be_deleted(bench: Bench) {
    let id = bench.completed(task("k")).await;
    bench.done(Write::DeleteQueue { queue: name("default") }).await;
    assert_eq!(bench.queue("default").await, None);
    assert_eq!(bench.state(id).await, TaskState::Completed);
}

pub async fn a_deleted_queues_pause_is_gone(bench: Bench) {
    bench.pause(Scope::Queue(name("q")), None).await;
    bench.done(Write::DeleteQueue { queue: name("q") }).await;
    assert_eq!(bench.store().pauses().await.ok(), Some(vec![]));
}

pub async fn a_queue_with_live_tasks_is_not_deleted(bench: Bench) {
    bench.running(task("k")).await;
    bench.submit("k").await;
    let queue = name("default");
    let refusal = bench.refused(Write::DeleteQueue { queue: queue.clone() }).await;
    assert_eq!(refusal, Refusal::QueueInUse { queue, live: 2 });
}

pub async fn an_unknown_queue_is_not_deleted(bench: Bench) {
    let queue = name("never");
    assert_eq!(bench.refused(Write::DeleteQueue { queue: queue.clone() }).await, Refusal::QueueNotFound(queue));
}

/// Shows: Q1
pub async fn a_submit_makes_a_deleted_queue_again(bench: Bench) {
    bench.completed(task("k")).await;
    bench.done(Write::DeleteQueue { queue: name("default") }).await;
    bench.submit("k").await;
    let queue = bench.queue("default").await;
    assert_eq!(queue.map(|queue| (queue.waiting, queue.ended.completed)), Some((1, 1)));
}

pub async fn trying_again_makes_a_deleted_queue_again(bench: Bench) {
    let id = bench.completed(task("k")).await;
    bench.done(Write::DeleteQueue { queue: name("default") }).await;
    bench.retry(id).await;
    assert_eq!(bench.queue("default").await.map(|queue| queue.waiting), Some(1));
}
