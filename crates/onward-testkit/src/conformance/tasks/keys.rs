//! Unique keys and the handling of duplicates.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, NewTask, OnDuplicate, Outcome, Priority, Submitted, TaskId, TaskState, UniqueKey, When, Write,
};

use crate::test_store::{TestStore, after, keyed, name, task};

use OnDuplicate::{Reject, Requeue, Skip, Supersede};

const MINUTE: Duration = Duration::from_secs(60);

fn kept(key: &str, keep_for: Duration) -> NewTask {
    NewTask { unique: Some(UniqueKey { key: key.into(), on_duplicate: Skip, keep_for }), ..task("keyed") }
}

fn scheduled(new: NewTask) -> NewTask {
    NewTask { when: When::After(MINUTE), ..new }
}

pub async fn a_key_is_shown(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    assert_eq!(store.record(id).await.key.as_deref(), Some("a"));
}

/// Shows: T2, T3
pub async fn a_duplicate_of_a_waiting_task_is_skipped(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id });
}

pub async fn a_duplicate_of_a_scheduled_task_is_skipped(store: TestStore) {
    let id = store.submit_new(scheduled(keyed("a", Skip))).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id });
}

/// Shows: T3
pub async fn a_duplicate_of_a_running_task_is_skipped(store: TestStore) {
    let lease = store.running(keyed("a", Skip)).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id: lease.task });
}

pub async fn a_duplicate_within_one_call_is_seen(store: TestStore) {
    let submit = || Write::Submit(Box::new(keyed("a", Skip)));
    store.apply(vec![submit(), submit()]).await;
    assert_eq!(store.list(Default::default()).await, [TaskId(1)]);
}

pub async fn a_duplicate_changes_nothing(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    let before = store.record(id).await;
    store.submitted(NewTask { payload: "other".into(), queue: name("other"), ..keyed("a", Skip) }).await;
    assert_eq!(store.record(id).await, before);
    assert_eq!(store.queue("other").await, None);
}

pub async fn the_same_key_of_another_kind_is_another_key(store: TestStore) {
    store.submit_new(keyed("a", Reject)).await;
    store.submit_new(NewTask { kind: name("other"), ..keyed("a", Reject) }).await;
}

pub async fn the_same_key_in_another_queue_is_the_same_key(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    let other = NewTask { queue: name("other"), ..keyed("a", Skip) };
    assert_eq!(store.submitted(other).await, Submitted::Duplicate { id });
}

pub async fn keys_differ_by_their_bytes(store: TestStore) {
    for key in ["a", "A", "a ", "a\0", "ä", "a\u{308}"] {
        store.submit_new(keyed(key, Reject)).await;
    }
}

/// Shows: T2
pub async fn a_more_urgent_duplicate_raises_the_priority(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    let urgent = NewTask { priority: Priority::URGENT, ..keyed("a", Skip) };
    assert_eq!(store.submitted(urgent).await, Submitted::PriorityRaised { id });
    assert_eq!(store.record(id).await.priority, Priority::URGENT);
}

pub async fn a_raised_task_is_claimed_by_its_new_priority(store: TestStore) {
    let plain = store.submit("k").await;
    let raised = store.submit_new(NewTask { priority: Priority::LOW, ..keyed("a", Skip) }).await;
    store.submitted(NewTask { priority: Priority::HIGH, ..keyed("a", Skip) }).await;
    let first = store.start_one().await;
    assert_eq!((first.task, store.start_one().await.task), (raised, plain));
}

pub async fn a_less_urgent_duplicate_lowers_nothing(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    let low = NewTask { priority: Priority::LOW, ..keyed("a", Skip) };
    assert_eq!(store.submitted(low).await, Submitted::Duplicate { id });
    assert_eq!(store.record(id).await.priority, Priority::NORMAL);
}

pub async fn a_running_task_is_not_raised(store: TestStore) {
    let id = store.running(keyed("a", Skip)).await.task;
    let urgent = NewTask { priority: Priority::URGENT, ..keyed("a", Skip) };
    assert_eq!(store.submitted(urgent).await, Submitted::Duplicate { id });
}

/// Shows: T2, T3
pub async fn a_duplicate_can_be_rejected(store: TestStore) {
    let id = store.submit_new(keyed("a", Reject)).await;
    assert_eq!(store.submitted(keyed("a", Reject)).await, Submitted::Rejected { id });
}

/// Shows: T2, T3
pub async fn superseding_cancels_what_waits(store: TestStore) {
    let old = store.submit_new(keyed("a", Skip)).await;
    let id = TaskId(2);
    assert_eq!(store.submitted(keyed("a", Supersede)).await, Submitted::Superseded { id, old });
    assert_eq!((store.state(old).await, store.state(id).await), (TaskState::Cancelled, TaskState::Waiting));
}

pub async fn superseding_cancels_what_is_scheduled(store: TestStore) {
    let old = store.submit_new(scheduled(keyed("a", Skip))).await;
    store.submitted(keyed("a", Supersede)).await;
    assert_eq!(store.state(old).await, TaskState::Cancelled);
}

/// Shows: T3
pub async fn superseding_asks_a_running_task_to_stop(store: TestStore) {
    let old = store.running(keyed("a", Skip)).await;
    let superseded = store.submitted(keyed("a", Supersede)).await;
    assert_eq!(superseded, Submitted::Superseded { id: TaskId(2), old: old.task });
    let record = store.record(old.task).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Running, true));
}

pub async fn a_superseded_task_does_not_free_its_successors_key(store: TestStore) {
    let old = store.running(keyed("a", Skip)).await;
    let id = store.submitted(keyed("a", Supersede)).await.id();
    store.complete(old).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id });
}

pub async fn a_superseded_task_keeps_no_key_when_it_ends(store: TestStore) {
    let old = store.running(kept("a", MINUTE)).await;
    let id = store.submitted(keyed("a", Supersede)).await.id();
    store.complete(old).await;
    store.advance(MINUTE);
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id });
}

pub async fn superseding_a_task_with_a_follower_replaces_the_follower_too(store: TestStore) {
    let old = store.running(keyed("a", Skip)).await;
    store.submitted(keyed("a", Requeue)).await;
    let id = store.submitted(keyed("a", Supersede)).await.id();
    store.complete(old).await;
    assert_eq!(store.list(Default::default()).await, [id, old.task]);
}

pub async fn superseding_a_waiting_task_with_a_follower_replaces_the_follower_too(store: TestStore) {
    let old = store.running(keyed("a", Skip)).await;
    store.submitted(keyed("a", Requeue)).await;
    store.release(old, Duration::ZERO).await;
    let id = store.submitted(keyed("a", Supersede)).await.id();
    assert_eq!(store.list(Default::default()).await, [id, old.task]);
}

pub async fn requeue_of_a_waiting_task_keeps_it(store: TestStore) {
    let id = store.submit_new(keyed("a", Requeue)).await;
    assert_eq!(store.submitted(keyed("a", Requeue)).await, Submitted::Duplicate { id });
}

/// Shows: T2, T3
pub async fn requeue_of_a_running_task_follows_it(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    let follower = NewTask { payload: "again".into(), ..keyed("a", Requeue) };
    assert_eq!(store.submitted(follower).await, Submitted::Requeued { id: lease.task });
    assert_eq!(store.find(TaskId(2)).await, None);
    store.complete(lease).await;
    assert_eq!(store.record(TaskId(2)).await.payload.as_deref(), Some(b"again".as_slice()));
}

/// Shows: T3
pub async fn a_follower_is_submitted_when_its_predecessor_ends(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    store.submitted(scheduled(keyed("a", Requeue))).await;
    store.advance(Duration::from_secs(5));
    store.complete(lease).await;
    let follower = store.record(TaskId(2)).await;
    assert_eq!((follower.submitted_at, follower.run_at), (store.now(), store.now().plus(MINUTE)));
}

pub async fn the_newest_follower_replaces_an_earlier_one(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    for payload in ["first", "second"] {
        store.submitted(NewTask { payload: payload.into(), ..keyed("a", Requeue) }).await;
    }
    store.complete(lease).await;
    assert_eq!(store.record(TaskId(2)).await.payload.as_deref(), Some(b"second".as_slice()));
    assert_eq!(store.find(TaskId(3)).await, None);
}

pub async fn a_follower_comes_after_a_failure(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    store.submitted(keyed("a", Requeue)).await;
    store.fail(lease, AfterFailure::Dead).await;
    assert_eq!(store.state(TaskId(2)).await, TaskState::Waiting);
}

pub async fn a_follower_comes_after_a_confirmed_cancellation(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    store.submitted(keyed("a", Requeue)).await;
    store.done(Write::ConfirmCancel { lease, reason: "stopped".into() }).await;
    assert_eq!(store.state(TaskId(2)).await, TaskState::Waiting);
}

pub async fn a_follower_waits_while_its_predecessor_is_retried(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    store.submitted(keyed("a", Requeue)).await;
    store.fail(lease, after(MINUTE)).await;
    assert_eq!(store.find(TaskId(2)).await, None);
    store.cancel(lease.task).await;
    assert_eq!(store.state(TaskId(2)).await, TaskState::Waiting);
}

pub async fn a_follower_takes_the_key(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    store.submitted(keyed("a", Requeue)).await;
    store.complete(lease).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id: TaskId(2) });
}

pub async fn a_follower_takes_a_key_that_would_have_been_reserved(store: TestStore) {
    let lease = store.running(kept("a", MINUTE)).await;
    store.submitted(keyed("a", Requeue)).await;
    store.complete(lease).await;
    store.complete_next().await;
    store.submit_new(keyed("a", Skip)).await;
}

/// Shows: T3
pub async fn a_key_is_free_once_its_task_has_ended(store: TestStore) {
    store.completed(keyed("a", Skip)).await;
    store.submit_new(keyed("a", Reject)).await;
}

/// Completes a task and submits another with its key, in one call.
async fn complete_and_submit(store: &TestStore, first: NewTask, next: NewTask) -> Outcome {
    let lease = store.running(first).await;
    let writes = vec![Write::Complete { lease, result: None }, Write::Submit(Box::new(next))];
    store.apply(writes).await.pop().expect("an outcome for each write")
}

pub async fn a_key_is_free_for_a_submit_in_the_call_of_its_tasks_completion(store: TestStore) {
    let outcome = complete_and_submit(&store, keyed("a", Skip), keyed("a", Reject)).await;
    assert_eq!(outcome, Outcome::Submitted(Submitted::Inserted { id: TaskId(2) }));
}

pub async fn a_reserved_key_is_taken_for_a_submit_in_the_call_of_its_tasks_completion(store: TestStore) {
    let outcome = complete_and_submit(&store, kept("a", MINUTE), keyed("a", Skip)).await;
    assert_eq!(outcome, Outcome::Submitted(Submitted::Duplicate { id: TaskId(1) }));
}

pub async fn a_task_with_a_follower_can_be_completed_in_the_call_that_gave_it_one(store: TestStore) {
    let lease = store.running(keyed("a", Requeue)).await;
    store.apply(vec![Write::Submit(Box::new(keyed("a", Requeue))), Write::Complete { lease, result: None }]).await;
    assert_eq!(store.record(TaskId(2)).await.state, TaskState::Waiting);
}

pub async fn a_key_is_free_once_its_task_was_cancelled(store: TestStore) {
    let id = store.submit_new(keyed("a", Skip)).await;
    store.cancel(id).await;
    store.submit_new(keyed("a", Reject)).await;
}

/// Shows: T3
pub async fn a_key_stays_taken_between_attempts(store: TestStore) {
    let lease = store.running(keyed("a", Skip)).await;
    store.fail(lease, after(MINUTE)).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id: lease.task });
}

/// Shows: T3, Q6
pub async fn a_key_can_be_reserved_after_the_end(store: TestStore) {
    let id = store.completed(kept("a", MINUTE)).await;
    store.advance(MINUTE - Duration::from_micros(1));
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id });
}

/// Shows: T3, Q6
pub async fn a_reserved_key_is_free_when_its_time_is_over(store: TestStore) {
    store.completed(kept("a", MINUTE)).await;
    store.advance(MINUTE);
    store.submit_new(keyed("a", Reject)).await;
}

pub async fn a_key_that_another_task_took_is_not_reserved_again_when_the_clock_is_set_back(store: TestStore) {
    store.completed(kept("a", MINUTE)).await;
    store.advance(MINUTE);
    let second = store.submit_new(keyed("a", Skip)).await;
    store.clock().set_wall(store.now().minus(MINUTE));
    store.cancel(second).await;
    store.submit_new(keyed("a", Skip)).await;
}

/// Shows: Q6
pub async fn a_reserved_key_rejects(store: TestStore) {
    let id = store.completed(kept("a", MINUTE)).await;
    assert_eq!(store.submitted(keyed("a", Reject)).await, Submitted::Rejected { id });
}

pub async fn a_reserved_key_is_not_superseded(store: TestStore) {
    let id = store.completed(kept("a", MINUTE)).await;
    assert_eq!(store.submitted(keyed("a", Supersede)).await, Submitted::Duplicate { id });
}

pub async fn a_reserved_key_outlives_the_pruning_of_its_task(store: TestStore) {
    let id = store.completed(kept("a", MINUTE)).await;
    store.write(Write::Prune(onward_store::Prune { keep: Some(0), limit: 10, older_than: None })).await;
    assert_eq!(store.submitted(keyed("a", Skip)).await, Submitted::Duplicate { id });
}

pub async fn a_prune_forgets_a_key_whose_time_is_over(store: TestStore) {
    store.completed(kept("a", MINUTE)).await;
    store.advance(MINUTE);
    store.write(Write::Prune(onward_store::Prune { limit: 10, ..Default::default() })).await;
    store.clock().set_wall(store.now().minus(MINUTE));
    store.submit_new(keyed("a", Reject)).await;
}

pub async fn a_purge_frees_a_reserved_key(store: TestStore) {
    store.completed(kept("a", MINUTE)).await;
    let (queue, states) = (name("default"), vec![TaskState::Completed]);
    store.write(Write::Purge { queue, states, limit: 10 }).await;
    store.submit_new(keyed("a", Reject)).await;
}

/// Shows: T16
pub async fn the_handling_of_duplicates_makes_events(store: TestStore) {
    let old = store.submit_new(keyed("a", Skip)).await;
    store.submitted(NewTask { priority: Priority::HIGH, ..keyed("a", Skip) }).await;
    let new = store.submitted(keyed("a", Supersede)).await.id();
    let expected =
        [(old, Change::Submitted), (old, Change::PriorityRaised), (new, Change::Submitted), (old, Change::Cancelled)];
    assert_eq!(store.changes().await, expected);
}
