//! Batches: tasks that are collected and run as one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{
    AfterFailure, Aggregate, Change, CollectionRecord, CollectionSelection, ConcurrencyLimit, Dependencies, Lease,
    NewTask, OnDuplicate, Outcome, Page, Priority, Refusal, SetLimit, StoreReads, Submitted, TaskFilter, TaskId,
    TaskRecord, TaskState, Ttl, TtlFrom, UniqueKey, WaitReason, When, Write, bounds,
};

use crate::test_store::{LEASE, TestStore, after, name, task};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Returns the batching of up to `size` items. A batch is ready ten seconds after its newest item,
/// and a minute after its first at the latest.
fn up_to(size: u32) -> Aggregate {
    Aggregate { size, delay: MINUTE, grace: SECOND * 10 }
}

fn item(size: u32) -> NewTask {
    NewTask { aggregate: Some(up_to(size)), ..task("digest") }
}

fn with_key(size: u32, key: &str, on_duplicate: OnDuplicate) -> NewTask {
    let unique = Some(UniqueKey { key: key.to_owned(), on_duplicate, keep_for: Duration::ZERO });
    NewTask { unique, ..item(size) }
}

fn living(size: u32, duration: Duration) -> NewTask {
    NewTask { ttl: Some(Ttl { duration, from: TtlFrom::Submission }), ..item(size) }
}

/// Submits the items of a full batch. Returns their numbers and that of the batch.
async fn batch(store: &TestStore, size: u32) -> (Vec<TaskId>, TaskId) {
    let mut items = Vec::new();
    for _ in 0..size {
        items.push(store.submit_new(item(size)).await);
    }
    let batch = store.record(items[0]).await.bundle.unwrap();
    (items, batch)
}

/// Submits the items of a full batch and starts the batch.
async fn running(store: &TestStore, size: u32) -> (Vec<TaskId>, Lease) {
    let (items, batch) = batch(store, size).await;
    let lease = store.start_one().await;
    assert_eq!(lease.task, batch);
    (items, lease)
}

async fn states(store: &TestStore, tasks: &[TaskId]) -> Vec<TaskState> {
    let mut states = Vec::new();
    for task in tasks {
        states.push(store.state(*task).await);
    }
    states
}

async fn items_of(store: &TestStore, batch: TaskId) -> Vec<TaskRecord> {
    let filter = TaskFilter { bundle: Some(batch), with_payload: true, ..TaskFilter::default() };
    let mut items = store.inner().tasks(filter, Page { before: None, limit: bounds::PAGE }).await.unwrap().tasks;
    items.reverse();
    items
}

async fn numbers_of(store: &TestStore, batch: TaskId) -> Vec<TaskId> {
    items_of(store, batch).await.into_iter().map(|item| item.id).collect()
}

async fn error(store: &TestStore, task: TaskId) -> String {
    store.record(task).await.errors.last().map(|error| error.message.clone()).unwrap_or_default()
}

async fn why(store: &TestStore, task: TaskId) -> Vec<WaitReason> {
    store.inner().why(task).await.unwrap().unwrap()
}

/// Shows: Q9
pub async fn enough_items_are_delivered_as_one_batch(store: TestStore) {
    let session = store.session().await;
    let mut items = Vec::new();
    for payload in ["a", "b", "c"] {
        assert!(store.claim(session, 9).await.is_empty());
        items.push(store.submit_new(NewTask { payload: payload.into(), ..item(3) }).await);
    }
    let claimed = store.claim(session, 9).await;
    let batch = claimed[0].lease.task;
    assert_eq!((claimed.len(), claimed[0].members, claimed[0].payload.len()), (1, 3, 0));
    assert_eq!(store.record(batch).await.members, 3);
    let found = items_of(&store, batch).await;
    let payloads: Vec<_> = found.iter().map(|item| item.payload.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        (found.iter().map(|item| item.id).collect::<Vec<_>>(), payloads.concat()),
        (items.clone(), b"abc".to_vec())
    );
    assert_eq!(states(&store, &items).await, [TaskState::Blocked; 3]);
    let changes: Vec<_> =
        store.changes().await.into_iter().filter(|(_, change)| *change != Change::Submitted).collect();
    assert_eq!(changes[..3], [0, 1, 2].map(|index| (items[index], Change::Bundled { bundle: batch })));
}

/// Shows: Q9
pub async fn a_pending_batch_is_delivered_after_its_grace_period(store: TestStore) {
    let session = store.session_for(MINUTE * 10).await;
    store.submit_new(item(100)).await;
    store.advance(SECOND * 9);
    store.submit_new(item(100)).await;
    store.advance(SECOND * 9);
    assert!(store.claim(session, 9).await.is_empty());
    store.advance(SECOND);
    assert_eq!(store.claim(session, 9).await[0].members, 2);
}

/// Shows: Q9
pub async fn a_pending_batch_is_delivered_after_its_longest_delay_although_items_arrive(store: TestStore) {
    let session = store.session_for(MINUTE * 10).await;
    for _ in 0..12 {
        assert!(store.claim(session, 9).await.is_empty());
        store.submit_new(item(100)).await;
        store.advance(SECOND * 5);
    }
    assert_eq!(store.claim(session, 9).await[0].members, 12);
}

/// Shows: Q9
/// Beats: stuck-aggregation
pub async fn the_next_due_time_includes_when_a_pending_batch_becomes_ready(store: TestStore) {
    store.submit_new(item(100)).await;
    store.advance(SECOND * 4);
    assert_eq!(store.sweep().await.next_due, Some(SECOND * 6));
    store.advance(SECOND * 6);
    let swept = store.sweep().await;
    assert_eq!((swept.due, swept.next_due), (1, None));
}

/// Shows: Q9
pub async fn only_tasks_of_one_queue_kind_and_group_share_a_batch(store: TestStore) {
    let of_group = |group: &str| NewTask { group: Some(name(group)), ..item(2) };
    let one = store.submit_new(of_group("one")).await;
    for other in [
        of_group("two"),
        item(2),
        NewTask { queue: name("slow"), ..of_group("one") },
        NewTask { kind: name("mail"), ..of_group("one") },
    ] {
        store.submit_new(other).await;
        assert_eq!(store.record(one).await.bundle, None);
    }
    store.submit_new(of_group("one")).await;
    let batch = store.record(store.record(one).await.bundle.unwrap()).await;
    assert_eq!((batch.kind, batch.queue, batch.group), (name("digest"), name("default"), Some(name("one"))));
}

/// Shows: Q9
pub async fn a_batch_is_as_urgent_as_its_most_urgent_item(store: TestStore) {
    let (high, low) = (store.submit_new(NewTask { priority: Priority::HIGH, ..item(2) }).await, item(2));
    store.submit_new(NewTask { priority: Priority::LOW, ..low }).await;
    let batch = store.record(high).await.bundle.unwrap();
    assert_eq!(store.record(batch).await.priority, Priority::HIGH);
}

/// Shows: Q9
pub async fn a_batch_takes_timeouts_and_retries_from_its_oldest_item(store: TestStore) {
    let policy = |attempts| Some(RetryPolicy { attempts, backoff: Backoff::default() });
    let of = |limit, retry| NewTask { timeout: Some(limit), heartbeat_timeout: Some(limit / 2), retry, ..item(2) };
    store.submit_new(of(SECOND, policy(7))).await;
    store.submit_new(of(MINUTE, policy(9))).await;
    let session = store.session().await;
    let claimed = store.claim(session, 1).await;
    let taken = (claimed[0].timeout, claimed[0].heartbeat_timeout, claimed[0].retry);
    assert_eq!(taken, (Some(SECOND), Some(SECOND / 2), policy(7)));
}

/// Shows: Q6, Q9
pub async fn a_batch_is_retained_as_long_as_the_item_that_is_retained_longest(store: TestStore) {
    store.submit_new(NewTask { retention: Some(MINUTE), ..item(3) }).await;
    store.submit_new(NewTask { retention: Some(SECOND), ..item(3) }).await;
    let last = store.submit_new(item(3)).await;
    let batch = store.record(last).await.bundle.unwrap();
    assert_eq!(store.record(batch).await.retention, Some(MINUTE));
}

/// Shows: Q9
pub async fn a_batch_counts_as_one_under_a_limit(store: TestStore) {
    let concurrency = Some(ConcurrencyLimit::AtMost(1));
    let scope = onward_store::LimitScope::Kind(name("digest"));
    store.write(Write::SetLimit(SetLimit { scope, concurrency, rate: None, weight: None, minimum: None })).await;
    let (_, first) = batch(&store, 2).await;
    let (_, second) = batch(&store, 2).await;
    let session = store.session().await;
    let claimed = store.claim(session, 9).await;
    assert_eq!(claimed.iter().map(|task| task.lease.task).collect::<Vec<_>>(), [first]);
    store.complete(claimed[0].lease).await;
    assert_eq!(store.claim_one(session).await.task, second);
}

/// Shows: Q9
pub async fn items_complete_with_their_batch(store: TestStore) {
    let (items, lease) = running(&store, 3).await;
    store.advance(SECOND);
    store.complete(lease).await;
    assert_eq!(states(&store, &items).await, [TaskState::Completed; 3]);
    let record = store.record(items[0]).await;
    assert_eq!((record.finished_at, record.errors.len(), record.bundle), (Some(store.now()), 0, Some(lease.task)));
    assert_eq!(store.inner().statistics().await.unwrap()[0].ended.completed, 4);
    assert_eq!(store.queue("default").await.map(|queue| (queue.blocked, queue.ended.completed)), Some((0, 4)));
}

/// Shows: Q9
pub async fn an_item_has_the_result_of_its_batch(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.done(Write::Complete { lease, result: Some("sent".into()) }).await;
    assert_eq!(store.record(items[0]).await.result.as_deref(), Some(&b"sent"[..]));
    assert_eq!(items_of(&store, lease.task).await[1].result.as_deref(), Some(&b"sent"[..]));
    let without = store.inner().tasks(TaskFilter::default(), Page::default()).await.unwrap().tasks;
    assert!(without.iter().all(|task| !task.result.is_read()));
}

/// Shows: Q9
pub async fn items_die_with_their_batch_with_the_same_error(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.fail(lease, AfterFailure::Dead).await;
    assert_eq!(states(&store, &items).await, [TaskState::Dead; 2]);
    let message = error(&store, items[1]).await;
    assert!(message.contains(&lease.task.to_string()) && message.contains("oops"), "{message}");
}

/// Shows: Q9
pub async fn items_are_cancelled_with_their_batch(store: TestStore) {
    let (items, batch) = batch(&store, 2).await;
    assert_eq!(store.cancel(batch).await, Outcome::Cancelled);
    assert_eq!(states(&store, &items).await, [TaskState::Cancelled; 2]);
    assert!(error(&store, items[0]).await.contains("ended as cancelled"));
}

/// Shows: Q9
pub async fn items_of_a_removed_batch_are_cancelled(store: TestStore) {
    let (items, batch) = batch(&store, 2).await;
    store.done(Write::Delete { task: batch }).await;
    assert_eq!(states(&store, &items).await, [TaskState::Cancelled; 2]);
    assert!(error(&store, items[0]).await.contains("was removed"));
}

/// Shows: Q9
pub async fn a_batch_that_is_retried_keeps_its_items(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.fail(lease, after(SECOND)).await;
    assert_eq!(states(&store, &items).await, [TaskState::Blocked; 2]);
    store.advance(SECOND);
    let again = store.claim(lease.session, 9).await;
    assert_eq!((again[0].members, again[0].attempt), (2, 2));
    assert_eq!(numbers_of(&store, lease.task).await, items);
    store.complete(again[0].lease).await;
    assert_eq!(states(&store, &items).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_batch_whose_lease_is_lost_keeps_its_items(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.lapse().await;
    assert_eq!(states(&store, &items).await, [TaskState::Blocked; 2]);
    let again = store.start_one().await;
    assert_eq!((again.task, numbers_of(&store, lease.task).await), (lease.task, items));
}

/// Shows: Q9
pub async fn a_dependent_of_an_item_waits_for_its_batch(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    let next = store.submit_new(NewTask { depends_on: Dependencies::on([items[0]]), ..task("next") }).await;
    assert_eq!(store.state(next).await, TaskState::Blocked);
    store.complete(lease).await;
    assert_eq!(store.state(next).await, TaskState::Waiting);
}

/// Shows: Q9
pub async fn a_batch_of_the_largest_size_ends_with_all_of_its_items(store: TestStore) {
    let submit = || Write::Submit(Box::new(item(bounds::BUNDLE)));
    store.apply(vec![Write::All((0..bounds::BUNDLE).map(|_| submit()).collect())]).await;
    let lease = store.start_one().await;
    store.complete(lease).await;
    let left = TaskFilter { states: vec![TaskState::Blocked], ..TaskFilter::default() };
    assert_eq!(store.inner().count(left).await.unwrap(), 0);
    let completed = TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() };
    assert_eq!(store.inner().count(completed).await.unwrap(), u64::from(bounds::BUNDLE) + 1);
}

/// Shows: Q9
pub async fn a_cancelled_item_leaves_its_pending_batch(store: TestStore) {
    let first = store.submit_new(item(2)).await;
    assert_eq!(store.cancel(first).await, Outcome::Cancelled);
    assert_eq!(store.state(first).await, TaskState::Cancelled);
    assert_eq!(store.sweep().await.next_due, None);
    let second = store.submit_new(item(2)).await;
    assert_eq!(store.record(second).await.bundle, None);
    let third = store.submit_new(item(2)).await;
    let batch = store.record(third).await.bundle.unwrap();
    assert_eq!(numbers_of(&store, batch).await, [second, third]);
}

/// Shows: Q9
pub async fn a_cancelled_item_leaves_a_waiting_batch(store: TestStore) {
    let (items, batch) = batch(&store, 2).await;
    assert_eq!(store.cancel(items[0]).await, Outcome::Cancelled);
    assert_eq!(numbers_of(&store, batch).await, items[1..]);
    store.complete_next().await;
    assert_eq!(states(&store, &items).await, [TaskState::Cancelled, TaskState::Completed]);
}

/// Shows: Q9
pub async fn a_batch_without_items_is_cancelled(store: TestStore) {
    let (items, batch) = batch(&store, 2).await;
    store.cancel(items[1]).await;
    assert_eq!(store.state(batch).await, TaskState::Waiting);
    store.cancel(items[0]).await;
    assert_eq!(store.state(batch).await, TaskState::Cancelled);
    assert!(error(&store, batch).await.contains("members"));
}

/// Shows: Q9
pub async fn an_item_of_a_running_batch_ends_with_it_though_it_was_to_be_cancelled(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    assert_eq!(store.cancel(items[0]).await, Outcome::CancelRequested);
    let record = store.record(items[0]).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Blocked, true));
    store.complete(lease).await;
    assert_eq!(states(&store, &items).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn an_item_to_be_cancelled_is_left_out_of_a_further_attempt(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.cancel(items[0]).await;
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    assert_eq!(store.fail(lease, hold).await.state, TaskState::Waiting);
    assert_eq!(states(&store, &items).await, [TaskState::Cancelled, TaskState::Blocked]);
    assert_eq!(numbers_of(&store, lease.task).await, items[1..]);
}

/// Shows: Q9
pub async fn an_item_of_a_running_batch_is_neither_killed_nor_deleted(store: TestStore) {
    let (items, _) = running(&store, 2).await;
    let task = items[0];
    for write in [Write::Kill { task }, Write::Delete { task }, Write::RunNow { task }] {
        assert_eq!(store.refused(write).await, Refusal::Running(task));
    }
}

/// Shows: Q9
pub async fn a_killed_item_leaves_its_batch(store: TestStore) {
    let (items, batch) = batch(&store, 2).await;
    store.done(Write::Kill { task: items[0] }).await;
    assert_eq!(store.state(items[0]).await, TaskState::Dead);
    assert_eq!(numbers_of(&store, batch).await, items[1..]);
}

/// Shows: Q9
pub async fn a_purged_item_leaves_its_batch(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    let pending = store.submit_new(item(2)).await;
    let purge = Write::Purge { queue: name("default"), states: vec![TaskState::Blocked], limit: 9 };
    assert_eq!(store.removed(purge).await, (3, false));
    assert!(store.find(pending).await.is_none() && store.find(items[0]).await.is_none());
    assert!(numbers_of(&store, lease.task).await.is_empty());
    assert_eq!(store.state(lease.task).await, TaskState::Running);
    let alone = store.submit_new(item(2)).await;
    assert_eq!(store.record(alone).await.bundle, None);
}

/// Shows: Q9
pub async fn an_item_that_expires_leaves_its_batch(store: TestStore) {
    let pending = store.submit_new(living(2, SECOND)).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 1);
    assert_eq!(store.state(pending).await, TaskState::Expired);
    let items = [store.submit_new(living(2, SECOND)).await, store.submit_new(item(2)).await];
    let batch = store.record(items[1]).await.bundle.unwrap();
    store.advance(SECOND);
    store.start_one().await;
    assert_eq!(states(&store, &items).await, [TaskState::Expired, TaskState::Blocked]);
    assert_eq!(numbers_of(&store, batch).await, items[1..]);
}

/// Shows: Q9
pub async fn an_item_of_a_started_batch_does_not_expire(store: TestStore) {
    let items = [store.submit_new(living(2, SECOND * 5)).await, store.submit_new(item(2)).await];
    let lease = store.start_one().await;
    store.advance(SECOND * 5);
    assert_eq!(store.sweep().await.expired, 0);
    assert_eq!(store.record(items[0]).await.expires_at, None);
    store.complete(lease).await;
    assert_eq!(states(&store, &items).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn an_item_of_a_batch_released_unstarted_expires(store: TestStore) {
    let items = [store.submit_new(living(2, SECOND * 5)).await, store.submit_new(item(2)).await];
    let lease = store.start_one().await;
    store.release(lease, Duration::ZERO).await;
    store.advance(SECOND * 5);
    store.sweep().await;
    assert_eq!(states(&store, &items).await, [TaskState::Expired, TaskState::Blocked]);
}

/// Shows: Q9
pub async fn an_item_of_an_ended_parent_joins_no_batch(store: TestStore) {
    let parent = store.submit("parent").await;
    store.cancel(parent).await;
    let child = store.submit_new(NewTask { parent: Some(parent), ..item(1) }).await;
    assert_eq!(store.state(child).await, TaskState::Cancelled);
    assert_eq!(store.sweep().await.next_due, None);
}

/// Shows: Q9
pub async fn a_batch_retried_after_its_end_retries_its_items(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.fail(lease, AfterFailure::Dead).await;
    store.retry(lease.task).await;
    assert_eq!(states(&store, &items).await, [TaskState::Blocked; 2]);
    let again = store.claim_one(lease.session).await;
    assert_eq!((again.task, numbers_of(&store, again.task).await), (lease.task, items.clone()));
    store.complete(again).await;
    assert_eq!(states(&store, &items).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_batch_is_not_retried_while_an_items_key_is_taken(store: TestStore) {
    let keyed = store.submit_new(with_key(1, "a", OnDuplicate::Skip)).await;
    let batch = store.complete_next().await;
    let by = store.submit_new(with_key(9, "a", OnDuplicate::Skip)).await;
    assert_eq!(store.refused(Write::Retry { task: batch }).await, Refusal::KeyTaken { task: keyed, by });
    assert_eq!(store.state(batch).await, TaskState::Completed);
    store.cancel(by).await;
    store.retry(batch).await;
    assert_eq!(store.submitted(with_key(9, "a", OnDuplicate::Skip)).await, Submitted::Duplicate { id: keyed });
}

/// Shows: Q9
pub async fn a_batch_without_items_is_not_retried(store: TestStore) {
    let (items, lease) = running(&store, 1).await;
    store.complete(lease).await;
    store.done(Write::Delete { task: items[0] }).await;
    assert!(store.invalid(Write::Retry { task: lease.task }).await.contains("without items"));
}

/// Shows: Q9
pub async fn a_retried_item_joins_a_pending_batch_again(store: TestStore) {
    let (items, lease) = running(&store, 2).await;
    store.fail(lease, AfterFailure::Fail).await;
    store.retry(items[0]).await;
    let record = store.record(items[0]).await;
    assert_eq!((record.state, record.bundle), (TaskState::Blocked, None));
    let other = store.submit_new(item(2)).await;
    let batch = store.record(other).await.bundle.unwrap();
    assert_eq!(numbers_of(&store, batch).await, [items[0], other]);
    assert_eq!(numbers_of(&store, lease.task).await, items[1..]);
}

/// Shows: Q9
pub async fn a_moved_item_joins_a_pending_batch_of_the_other_queue(store: TestStore) {
    let moved = store.submit_new(item(2)).await;
    let slow = name("slow");
    assert_eq!(store.write(Write::Move { task: moved, queue: slow.clone() }).await, Outcome::Moved);
    let here = store.submit_new(item(2)).await;
    assert_eq!(store.record(here).await.bundle, None);
    store.submit_new(NewTask { queue: slow.clone(), ..item(2) }).await;
    let batch = store.record(moved).await.bundle.unwrap();
    assert_eq!(store.record(batch).await.queue, slow);
}

/// Shows: Q9
pub async fn an_item_has_its_key_until_its_batch_has_ended(store: TestStore) {
    let keyed = with_key(2, "a", OnDuplicate::Skip);
    let id = store.submit_new(keyed.clone()).await;
    assert_eq!(store.submitted(keyed.clone()).await, Submitted::Duplicate { id });
    store.submit_new(item(2)).await;
    let lease = store.start_one().await;
    assert_eq!(store.submitted(keyed.clone()).await, Submitted::Duplicate { id });
    store.complete(lease).await;
    assert!(store.submitted(keyed).await.is_new());
}

/// Shows: Q9
pub async fn a_more_urgent_duplicate_raises_the_priority_of_the_batch(store: TestStore) {
    let keyed = with_key(1, "a", OnDuplicate::Skip);
    let id = store.submit_new(keyed.clone()).await;
    let urgent = NewTask { priority: Priority::URGENT, ..keyed.clone() };
    assert_eq!(store.submitted(urgent.clone()).await, Submitted::PriorityRaised { id });
    let batch = store.record(id).await.bundle.unwrap();
    assert_eq!(store.record(batch).await.priority, Priority::URGENT);
    store.submit("other").await;
    assert_eq!(store.start_one().await.task, batch);
    assert_eq!(store.submitted(urgent).await, Submitted::Duplicate { id });
}

/// Shows: Q9
pub async fn a_duplicate_of_a_running_item_follows_it(store: TestStore) {
    let keyed = with_key(1, "a", OnDuplicate::Requeue);
    let id = store.submit_new(keyed.clone()).await;
    let lease = store.start_one().await;
    assert_eq!(store.submitted(keyed).await, Submitted::Requeued { id });
    store.complete(lease).await;
    let next = store.start_one().await;
    assert_ne!(next.task, lease.task);
    assert_eq!(items_of(&store, next.task).await[0].key.as_deref(), Some("a"));
}

/// Shows: Q9
pub async fn a_superseded_item_leaves_its_batch(store: TestStore) {
    let keyed = with_key(2, "a", OnDuplicate::Supersede);
    let old = store.submit_new(keyed.clone()).await;
    let id = store.submitted(keyed).await.id();
    assert_eq!(states(&store, &[old, id]).await, [TaskState::Cancelled, TaskState::Blocked]);
    let other = store.submit_new(item(2)).await;
    let batch = store.record(id).await.bundle.unwrap();
    assert_eq!(numbers_of(&store, batch).await, [id, other]);
}

/// Shows: Q9
pub async fn payloads_of_one_batch_are_bounded(store: TestStore) {
    let large = store.payload_limit();
    let room = usize::try_from(bounds::BUNDLE_BYTES).unwrap() / large;
    let of = |bytes: usize| Write::Submit(Box::new(NewTask { payload: vec![0; bytes].into(), ..item(bounds::BUNDLE) }));
    let fits = (1..room).map(|_| of(large)).chain([of(1)]);
    store.apply(vec![Write::All(fits.collect())]).await;
    let last = TaskId(i64::try_from(room).unwrap());
    assert_eq!(store.record(last).await.bundle, None);
    let next = store.submit_new(NewTask { payload: vec![0; large].into(), ..item(bounds::BUNDLE) }).await;
    let batch = store.record(last).await.bundle.unwrap();
    assert_eq!((numbers_of(&store, batch).await.len(), store.record(next).await.bundle), (room, None));
}

/// Shows: Q9, B6
pub async fn why_says_what_a_batch_item_waits_for(store: TestStore) {
    let task = store.submit_new(item(2)).await;
    let ripe_at = store.now().plus(SECOND * 10);
    assert_eq!(why(&store, task).await, [WaitReason::Collecting { members: 1, size: 2, ripe_at }]);
    store.submit_new(item(2)).await;
    let batch = store.record(task).await.bundle.unwrap();
    assert_eq!(why(&store, task).await, [WaitReason::InBundle { bundle: batch }]);
}

/// Shows: Q9, Q10
pub async fn pending_batches_are_listed_in_delivery_order(store: TestStore) {
    let began_at = store.now();
    let payload = "a comment".into();
    store.submit_new(NewTask { group: Some(name("ada")), payload, ..item(3) }).await;
    store.submit_new(item(5)).await;
    store.advance(SECOND);
    store.submit_new(NewTask { group: Some(name("ada")), payload: "another".into(), ..item(4) }).await;
    let record = CollectionRecord {
        queue: name("default"),
        kind: name("digest"),
        group: None,
        members: 1,
        size: 5,
        payload_bytes: 0,
        began_at,
        ripe_at: began_at.plus(SECOND * 10),
    };
    let (group, ripe_at) = (Some(name("ada")), began_at.plus(SECOND * 11));
    let later = CollectionRecord { group, members: 2, size: 4, payload_bytes: 16, ripe_at, ..record.clone() };
    let expected = vec![record, later.clone()];
    assert_eq!(store.inner().collections(CollectionSelection::default()).await.ok(), Some(expected));
    store.advance(SECOND * 9);
    store.sweep().await;
    assert_eq!(store.inner().collections(CollectionSelection::default()).await.ok(), Some(vec![later]));
}

/// Shows: Q9, Q10
pub async fn pending_batches_are_listed_by_queue_up_to_a_limit(store: TestStore) {
    for (queue, group) in [("slow", "one"), ("default", "two"), ("slow", "three"), ("slow", "four")] {
        store.submit_new(NewTask { queue: name(queue), group: Some(name(group)), ..item(9) }).await;
    }
    let which = CollectionSelection { queue: Some(name("slow")), limit: 2 };
    let listed = store.inner().collections(which).await.unwrap();
    let groups: Vec<_> = listed.into_iter().map(|collection| collection.group).collect();
    assert_eq!(groups, [Some(name("one")), Some(name("three"))]);
}

/// Shows: Q9
pub async fn a_pending_batch_survives_a_restart(mut store: TestStore) {
    let first = store.submit_new(item(2)).await;
    store.reopen().await;
    assert_eq!(store.sweep().await.next_due, Some(SECOND * 10));
    store.submit_new(item(2)).await;
    assert!(store.record(first).await.bundle.is_some());
}

/// Shows: Q9
pub async fn a_batch_survives_a_restart(mut store: TestStore) {
    let (items, batch) = batch(&store, 2).await;
    store.reopen().await;
    let lease = store.start_one().await;
    assert_eq!((lease.task, numbers_of(&store, batch).await), (batch, items.clone()));
    store.reopen().await;
    store.advance(LEASE);
    let lease = store.start_one().await;
    store.complete(lease).await;
    assert_eq!(states(&store, &items).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_refused_all_adds_to_no_pending_batch(store: TestStore) {
    let first = store.submit_new(item(3)).await;
    let writes =
        vec![Write::Submit(Box::new(item(3))), Write::Submit(Box::new(item(3))), Write::Cancel { task: TaskId(99) }];
    store.refused(Write::All(writes)).await;
    assert_eq!(store.record(first).await.bundle, None);
    store.submit_new(item(3)).await;
    assert_eq!(store.record(first).await.bundle, None);
    store.submit_new(item(3)).await;
    assert!(store.record(first).await.bundle.is_some());
}

/// Shows: Q9
pub async fn a_task_that_cannot_be_batched_is_refused_with_the_remedy(store: TestStore) {
    let other = store.submit("other").await;
    let of = |aggregate| NewTask { aggregate: Some(aggregate), ..task("digest") };
    let from_start = Ttl { duration: SECOND, from: TtlFrom::FirstAttempt };
    for (wrong, message) in [
        (of(Aggregate { size: 0, ..up_to(1) }), "size of 0"),
        (of(up_to(bounds::BUNDLE + 1)), "size of 1001"),
        (of(Aggregate { delay: Duration::ZERO, ..up_to(2) }), "delay of 0"),
        (of(Aggregate { delay: bounds::BUNDLE_DELAY + SECOND, ..up_to(2) }), "delay of"),
        (of(Aggregate { grace: Duration::ZERO, ..up_to(2) }), "grace of 0"),
        (of(Aggregate { grace: MINUTE + SECOND, ..up_to(2) }), "grace of 61"),
        (NewTask { when: When::After(SECOND), ..item(2) }, "time at which it is due"),
        (NewTask { depends_on: Dependencies::on([other]), ..item(2) }, "dependencies"),
        (NewTask { deadline: Some(store.now()), ..item(2) }, "deadline"),
        (NewTask { affinity: Some(name("customer-7")), ..item(2) }, "affinity"),
        (NewTask { ttl: Some(from_start), ..item(2) }, "first attempt"),
    ] {
        let text = store.invalid(Write::Submit(Box::new(wrong))).await;
        assert!(text.contains(message) && text.contains("digest"), "{text}");
    }
}
