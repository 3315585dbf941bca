//! Tasks with a retention of their own after their end.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, NewTask, OnDuplicate, Outcome, Prune, Refusal, TaskId, TaskState, Ttl, TtlFrom, When, Write,
};

use crate::test_store::{TestStore, after, keyed, task};

const MICROSECOND: Duration = Duration::from_micros(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn kept_for(retention: Duration) -> NewTask {
    NewTask { retention: Some(retention), ..task("k") }
}

/// Returns a prune that removes only tasks with a retention of their own.
fn prune(limit: usize) -> Write {
    Write::Prune(Prune { older_than: None, keep: None, limit })
}

fn prune_older_than(age: Duration) -> Write {
    Write::Prune(Prune { older_than: Some(age), keep: None, limit: 10 })
}

fn prune_but(keep: u64) -> Write {
    Write::Prune(Prune { older_than: None, keep: Some(keep), limit: 10 })
}

/// Shows: Q6, T17
pub async fn a_task_is_retained_with_its_result(store: TestStore) {
    let lease = store.running(kept_for(SECOND * 2)).await;
    store.done(Write::Complete { lease, result: Some("sent".into()) }).await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune(10)).await, (0, false));
    assert_eq!(store.record(lease.task).await.result.as_deref(), Some(&b"sent"[..]));
    store.advance(MICROSECOND);
    assert_eq!(store.removed(prune(10)).await, (1, false));
    assert_eq!(store.find(lease.task).await, None);
}

/// Shows: Q6
pub async fn many_tasks_without_a_result_are_retained(store: TestStore) {
    let tasks: Vec<Write> = (0..8).map(|_| Write::Submit(Box::new(kept_for(SECOND)))).collect();
    store.apply(tasks).await;
    let session = store.session().await;
    let claimed = store.claim(session, 8).await;
    store.apply(claimed.iter().map(|task| Write::Complete { lease: task.lease, result: None }).collect()).await;
    store.advance(SECOND + MICROSECOND);
    assert_eq!(store.removed(prune(10)).await, (8, false));
}

/// Shows: Q6
pub async fn a_task_may_be_retained_longer_than_others(store: TestStore) {
    let kept = store.completed(kept_for(MINUTE)).await;
    store.completed(task("k")).await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune_older_than(SECOND)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [kept]);
}

/// Shows: Q6
pub async fn a_task_may_be_forgotten_sooner_than_others(store: TestStore) {
    let other = store.completed(task("k")).await;
    store.completed(kept_for(SECOND)).await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune_older_than(MINUTE)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [other]);
}

/// Shows: Q6
pub async fn a_task_with_its_own_retention_is_not_counted_among_the_newest_kept(store: TestStore) {
    let kept = store.completed(kept_for(MINUTE)).await;
    store.completed(task("k")).await;
    let newest = store.completed(task("k")).await;
    store.completed(kept_for(MINUTE)).await;
    assert_eq!(store.removed(prune_but(1)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [TaskId(4), newest, kept]);
}

/// Shows: Q6
pub async fn however_a_task_ends_its_retention_holds(store: TestStore) {
    let dead = store.running(kept_for(SECOND)).await;
    store.fail(dead, AfterFailure::Dead).await;
    let failed = store.running(kept_for(SECOND)).await;
    store.fail(failed, AfterFailure::Fail).await;
    let cancelled = store.submit_new(kept_for(SECOND)).await;
    store.cancel(cancelled).await;
    let ttl = Some(Ttl { duration: MICROSECOND, from: TtlFrom::Submission });
    let expired = store.submit_new(NewTask { ttl, ..kept_for(SECOND) }).await;
    store.advance(MICROSECOND);
    store.sweep().await;
    let states = [store.state(dead.task).await, store.state(cancelled).await, store.state(expired).await];
    assert_eq!(states, [TaskState::Dead, TaskState::Cancelled, TaskState::Expired]);
    store.advance(SECOND);
    assert_eq!(store.removed(prune(10)).await, (3, false));
    store.advance(MICROSECOND);
    assert_eq!(store.removed(prune(10)).await, (1, false));
}

/// Shows: Q6
pub async fn the_first_to_be_over_is_forgotten_first_and_before_others(store: TestStore) {
    let other = store.completed(task("k")).await;
    let long = store.completed(kept_for(SECOND * 2)).await;
    let short = store.completed(kept_for(SECOND)).await;
    store.advance(MINUTE);
    let prune = |limit| Write::Prune(Prune { older_than: Some(SECOND), keep: None, limit });
    assert_eq!(store.removed(prune(1)).await, (1, true));
    assert_eq!(store.list(Default::default()).await, [long, other]);
    assert_eq!(store.find(short).await, None);
    assert_eq!(store.removed(prune(1)).await, (1, true));
    assert_eq!(store.list(Default::default()).await, [other]);
    assert_eq!(store.removed(prune(0)).await, (0, true));
    assert_eq!(store.removed(prune(1)).await, (1, false));
}

/// Shows: Q6
pub async fn a_task_to_be_kept_for_no_time_is_forgotten_by_the_next_prune(store: TestStore) {
    store.completed(kept_for(Duration::ZERO)).await;
    store.advance(MICROSECOND);
    assert_eq!(store.removed(prune(10)).await, (1, false));
}

/// Shows: Q6
pub async fn a_retention_without_end_is_never_over(store: TestStore) {
    let kept = store.completed(kept_for(Duration::MAX)).await;
    store.advance(Duration::from_secs(1000 * 365 * 24 * 3600));
    assert_eq!(
        store.removed(Write::Prune(Prune { older_than: Some(SECOND), keep: Some(0), limit: 9 })).await,
        (0, false)
    );
    assert_eq!(store.list(Default::default()).await, [kept]);
}

/// Shows: Q6
pub async fn a_retention_begins_with_the_last_end(store: TestStore) {
    let id = store.completed(kept_for(SECOND)).await;
    store.retry(id).await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune(10)).await, (0, false));
    store.complete_next().await;
    store.advance(SECOND);
    assert_eq!(store.removed(prune(10)).await, (0, false));
    store.advance(MICROSECOND);
    assert_eq!(store.removed(prune(10)).await, (1, false));
}

/// Shows: Q6
pub async fn a_task_that_has_not_ended_is_not_forgotten(store: TestStore) {
    let later = store.submit_new(NewTask { when: When::After(MINUTE), ..kept_for(Duration::ZERO) }).await;
    let runs = store.running(kept_for(Duration::ZERO)).await;
    store.fail(runs, after(MINUTE)).await;
    store.advance(SECOND);
    assert_eq!(store.removed(prune(10)).await, (0, false));
    assert_eq!(store.list(Default::default()).await, [runs.task, later]);
}

/// Shows: Q6
pub async fn no_prune_counts_a_task_that_was_purged(store: TestStore) {
    store.completed(kept_for(SECOND)).await;
    let purge =
        Write::Purge { queue: crate::test_store::name("default"), states: vec![TaskState::Completed], limit: 9 };
    assert_eq!(store.removed(purge).await, (1, false));
    store.advance(MINUTE);
    assert_eq!(store.removed(prune(10)).await, (0, false));
}

/// Shows: Q6
pub async fn a_tasks_retention_survives_a_restart(mut store: TestStore) {
    let kept = store.completed(kept_for(MINUTE)).await;
    store.completed(kept_for(SECOND)).await;
    store.reopen().await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune_older_than(SECOND)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [kept]);
}

/// Shows: Q6
pub async fn a_follower_has_its_own_retention(store: TestStore) {
    let first = store.running(NewTask { retention: Some(SECOND), ..keyed("a", OnDuplicate::Requeue) }).await;
    store.submitted(NewTask { retention: Some(MINUTE), ..keyed("a", OnDuplicate::Requeue) }).await;
    store.complete(first).await;
    let follower = store.complete_next().await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune_older_than(SECOND)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [follower]);
}

/// Shows: T16
pub async fn events_of_forgotten_tasks_go_but_none_of_a_task_that_is_kept_without_end(store: TestStore) {
    store.completed(kept_for(SECOND)).await;
    let other = store.completed(task("k")).await;
    store.completed(kept_for(SECOND)).await;
    store.advance(SECOND * 2);
    assert_eq!(store.removed(prune(10)).await, (2, false));
    let changes = store.changes().await;
    assert_eq!(changes.first().map(|(task, _)| *task), Some(other));
    assert!(changes.contains(&(other, Change::Completed)), "{changes:?}");
}

/// Shows: T16
pub async fn events_are_forgotten_though_a_task_that_ended_before_is_retained(store: TestStore) {
    let kept = store.completed(kept_for(MINUTE)).await;
    store.completed(task("k")).await;
    let newest = store.completed(task("k")).await;
    assert_eq!(store.removed(prune_but(1)).await, (1, false));
    assert_eq!(store.list(Default::default()).await, [newest, kept]);
    let ends: Vec<_> = store.changes().await.into_iter().filter(|(_, change)| *change == Change::Completed).collect();
    assert_eq!(ends, [(newest, Change::Completed)]);
}

/// Shows: Q6
pub async fn a_refused_write_of_an_all_undoes_a_prune_of_what_was_over(store: TestStore) {
    let (kept, other) = (store.completed(kept_for(SECOND)).await, store.completed(task("k")).await);
    store.advance(MINUTE);
    let unknown = Write::Cancel { task: TaskId(99) };
    let refusal = store.refused(Write::All(vec![prune_older_than(SECOND), unknown])).await;
    assert!(matches!(refusal, Refusal::InAll { .. }), "{refusal:?}");
    assert_eq!(store.list(Default::default()).await, [other, kept]);
    assert_eq!(store.removed(prune_older_than(SECOND)).await, (2, false));
}

/// Shows: Q6
pub async fn a_task_that_ends_in_the_call_of_a_prune_is_retained(store: TestStore) {
    let task = store.submit_new(kept_for(SECOND)).await;
    let outcomes = store.apply(vec![Write::Cancel { task }, prune_but(0)]).await;
    assert_eq!(outcomes[1], Outcome::Removed { tasks: 0, more: false });
    assert_eq!(store.list(Default::default()).await, [task]);
}
