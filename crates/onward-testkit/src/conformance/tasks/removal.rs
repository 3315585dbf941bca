//! Purges, prunes and deletion of queues.

use std::time::Duration;

use onward_store::{Change, NewTask, OnDuplicate, Prune, Refusal, Scope, StoreReads, TaskId, TaskState, When, Write};

use crate::test_store::{TestStore, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);

fn purge(states: &[TaskState], limit: usize) -> Write {
    Write::Purge { queue: name("default"), states: states.to_vec(), limit }
}

async fn complete_some(store: &TestStore, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(store.completed(task("k")).await);
        store.advance(SECOND);
    }
    ids
}

pub async fn a_purge_removes_without_a_trace(store: TestStore) {
    let id = store.submit("k").await;
    assert_eq!(store.removed(purge(&[TaskState::Waiting], 10)).await, (1, false));
    assert_eq!(store.find(id).await, None);
    assert_eq!(store.queue("default").await.map(|queue| queue.waiting), Some(0));
}

/// Shows: T8, Q1
pub async fn a_purge_removes_only_the_states_it_names(store: TestStore) {
    let waiting = store.submit("k").await;
    let scheduled = store.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    store.removed(purge(&[TaskState::Scheduled, TaskState::Dead], 10)).await;
    assert_eq!(store.list(Default::default()).await, [waiting]);
    assert_eq!(store.find(scheduled).await, None);
}

pub async fn a_purge_removes_ended_tasks_too(store: TestStore) {
    complete_some(&store, 2).await;
    assert_eq!(store.removed(purge(&[TaskState::Completed], 10)).await, (2, false));
    assert_eq!(store.queue("default").await.map(|queue| queue.ended.total()), Some(0));
}

pub async fn a_purge_removes_only_of_its_queue(store: TestStore) {
    let other = store.submit_new(NewTask { queue: name("other"), ..task("k") }).await;
    store.submit("k").await;
    store.removed(purge(&[TaskState::Waiting], 10)).await;
    assert_eq!(store.list(Default::default()).await, [other]);
}

pub async fn a_purge_removes_the_oldest_first_and_returns_whether_there_are_more(store: TestStore) {
    for _ in 0..3 {
        store.submit("k").await;
    }
    assert_eq!(store.removed(purge(&[TaskState::Waiting], 2)).await, (2, true));
    assert_eq!(store.list(Default::default()).await, [TaskId(3)]);
    assert_eq!(store.removed(purge(&[TaskState::Waiting], 1)).await, (1, false));
}

pub async fn a_purge_of_none_removes_none(store: TestStore) {
    store.submit("k").await;
    assert_eq!(store.removed(purge(&[TaskState::Waiting], 0)).await, (0, true));
}

pub async fn a_purge_of_running_tasks_is_refused(store: TestStore) {
    store.running(task("k")).await;
    let text = store.invalid(purge(&[TaskState::Waiting, TaskState::Running], 10)).await;
    assert!(text.contains("running"), "{text}");
}

pub async fn a_purge_of_no_state_is_refused(store: TestStore) {
    store.submit("k").await;
    store.invalid(purge(&[], 10)).await;
}

pub async fn a_purge_of_an_unknown_queue_is_refused(store: TestStore) {
    assert_eq!(store.refused(purge(&[TaskState::Dead], 1)).await, Refusal::QueueNotFound(name("default")));
}

/// Beats: reused-ids
pub async fn a_purged_tasks_number_is_not_used_again(store: TestStore) {
    store.submit("k").await;
    store.removed(purge(&[TaskState::Waiting], 10)).await;
    assert_eq!(store.submit("k").await, TaskId(2));
}

pub async fn a_purged_tasks_key_is_free(store: TestStore) {
    store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    store.removed(purge(&[TaskState::Waiting], 10)).await;
    store.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

pub async fn a_purge_does_not_free_a_key_that_another_task_has(store: TestStore) {
    store.completed(keyed("a", OnDuplicate::Skip)).await;
    let id = store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    store.removed(purge(&[TaskState::Completed], 10)).await;
    let duplicate = store.submitted(keyed("a", OnDuplicate::Skip)).await;
    assert_eq!(duplicate, onward_store::Submitted::Duplicate { id });
}

pub async fn a_purged_task_takes_its_follower_along(store: TestStore) {
    let lease = store.running(keyed("a", OnDuplicate::Requeue)).await;
    store.submitted(keyed("a", OnDuplicate::Requeue)).await;
    store.release(lease, Duration::ZERO).await;
    store.removed(purge(&[TaskState::Waiting], 10)).await;
    assert_eq!(store.list(Default::default()).await, []);
}

/// Shows: T16
pub async fn a_purge_makes_events(store: TestStore) {
    store.submit("k").await;
    store.cancel(TaskId(1)).await;
    store.removed(purge(&[TaskState::Cancelled], 10)).await;
    assert_eq!(store.changes().await, [(TaskId(1), Change::Cancelled), (TaskId(1), Change::Purged)]);
}

/// Shows: T17
pub async fn pruning_by_age_forgets_what_ended_longer_ago(store: TestStore) {
    let ids = complete_some(&store, 3).await;
    let prune = Prune { older_than: Some(SECOND * 2), keep: None, limit: 10 };
    assert_eq!(store.removed(Write::Prune(prune)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [ids[2], ids[1]]);
}

/// Shows: T17
pub async fn pruning_by_number_forgets_the_oldest(store: TestStore) {
    let ids = complete_some(&store, 3).await;
    let prune = Prune { keep: Some(1), older_than: None, limit: 10 };
    assert_eq!(store.removed(Write::Prune(prune)).await, (2, false));
    assert_eq!(store.list(Default::default()).await, [ids[2]]);
}

pub async fn what_is_old_or_too_many_is_pruned(store: TestStore) {
    let ids = complete_some(&store, 4).await;
    let prune = Prune { keep: Some(2), older_than: Some(SECOND), limit: 10 };
    assert_eq!(store.removed(Write::Prune(prune)).await, (3, false));
    assert_eq!(store.list(Default::default()).await, [ids[3]]);
}

pub async fn the_oldest_end_is_pruned_first(store: TestStore) {
    let first = store.running(task("k")).await;
    let second = store.running(task("k")).await;
    store.complete(second).await;
    store.complete(first).await;
    let prune = Prune { keep: Some(0), older_than: None, limit: 1 };
    assert_eq!(store.removed(Write::Prune(prune)).await, (1, true));
    assert_eq!(store.list(Default::default()).await, [first.task]);
}

pub async fn pruning_stops_at_the_first_end_that_it_keeps(store: TestStore) {
    let ids = complete_some(&store, 1).await;
    store.clock().set_wall(store.now().minus(SECOND * 60));
    let behind = store.completed(task("k")).await;
    store.clock().set_wall(store.now().plus(SECOND * 60));
    let prune = |age| Write::Prune(Prune { older_than: Some(age), keep: None, limit: 10 });
    assert_eq!(store.removed(prune(SECOND * 2)).await, (0, false));
    assert_eq!(store.list(Default::default()).await, [behind, ids[0]]);
}

pub async fn a_task_that_ended_twice_in_a_call_is_pruned_by_its_last_end(store: TestStore) {
    let (one, other) = (store.submit("k").await, store.submit("k").await);
    let cancel = |task| Write::Cancel { task };
    store.apply(vec![cancel(one), cancel(other), Write::Retry { task: one }, cancel(one)]).await;
    store.removed(Write::Prune(Prune { keep: Some(1), older_than: None, limit: 10 })).await;
    assert_eq!((store.find(one).await.is_some(), store.find(other).await), (true, None));
}

pub async fn a_task_that_ended_in_the_same_call_can_be_pruned(store: TestStore) {
    let task = store.submit("k").await;
    let prune = Write::Prune(Prune { keep: Some(0), older_than: None, limit: 10 });
    let outcomes = store.apply(vec![Write::Cancel { task }, prune]).await;
    assert_eq!(outcomes[1], onward_store::Outcome::Removed { tasks: 1, more: false });
    assert_eq!(store.list(Default::default()).await, []);
}

pub async fn pruning_without_a_condition_forgets_nothing(store: TestStore) {
    complete_some(&store, 2).await;
    let prune = Prune { keep: None, older_than: None, limit: 10 };
    assert_eq!(store.removed(Write::Prune(prune)).await, (0, false));
}

pub async fn pruning_leaves_live_tasks(store: TestStore) {
    let waiting = store.submit("k").await;
    store.advance(SECOND);
    store.removed(Write::Prune(Prune { keep: Some(0), older_than: Some(SECOND), limit: 10 })).await;
    assert_eq!(store.list(Default::default()).await, [waiting]);
}

pub async fn pruning_does_not_change_statistics(store: TestStore) {
    complete_some(&store, 2).await;
    let before = store.inner().statistics().await.ok();
    store.removed(Write::Prune(Prune { keep: Some(0), older_than: None, limit: 10 })).await;
    assert_eq!(store.inner().statistics().await.ok(), before);
}

/// Shows: Q1
pub async fn an_empty_queue_can_be_deleted(store: TestStore) {
    let id = store.completed(task("k")).await;
    store.done(Write::DeleteQueue { queue: name("default") }).await;
    assert_eq!(store.queue("default").await, None);
    assert_eq!(store.state(id).await, TaskState::Completed);
}

pub async fn a_deleted_queues_pause_is_gone(store: TestStore) {
    store.pause(Scope::Queue(name("q")), None).await;
    store.done(Write::DeleteQueue { queue: name("q") }).await;
    assert_eq!(store.inner().pauses().await.ok(), Some(vec![]));
}

pub async fn a_queue_with_live_tasks_is_not_deleted(store: TestStore) {
    store.running(task("k")).await;
    store.submit("k").await;
    let queue = name("default");
    let refusal = store.refused(Write::DeleteQueue { queue: queue.clone() }).await;
    assert_eq!(refusal, Refusal::QueueInUse { queue, live: 2 });
}

pub async fn an_unknown_queue_is_not_deleted(store: TestStore) {
    let queue = name("never");
    assert_eq!(store.refused(Write::DeleteQueue { queue: queue.clone() }).await, Refusal::QueueNotFound(queue));
}

/// Shows: Q1
pub async fn a_submit_makes_a_deleted_queue_again(store: TestStore) {
    store.completed(task("k")).await;
    store.done(Write::DeleteQueue { queue: name("default") }).await;
    store.submit("k").await;
    let queue = store.queue("default").await;
    assert_eq!(queue.map(|queue| (queue.waiting, queue.ended.completed)), Some((1, 1)));
}

pub async fn a_retry_makes_a_deleted_queue_again(store: TestStore) {
    let id = store.completed(task("k")).await;
    store.done(Write::DeleteQueue { queue: name("default") }).await;
    store.retry(id).await;
    assert_eq!(store.queue("default").await.map(|queue| queue.waiting), Some(1));
}
