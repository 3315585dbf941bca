//! Batches: tasks that are collected and run as one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{
    AfterFailure, Aggregate, Change, CollectionRecord, CollectionSelection, ConcurrencyLimit, Dependencies, Lease,
    NewTask, OnDuplicate, Outcome, Page, Priority, Refusal, SetLimit, Submitted, TaskFilter, TaskId, TaskRecord,
    TaskState, Ttl, TtlFrom, UniqueKey, WaitReason, When, Write, bounds,
};

use crate::test_store::{LEASE, TestStore, after, name, task};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Returns the batching of up to `size` items. A batch is ready ten seconds after its newest item,
/// and a minute after its first at the latest.
fn up_to(size: u32) -> Aggregate {
    Aggregate { size, delay: MINUTE, grace: SECOND * 10 }
}

fn member(size: u32) -> NewTask {
    NewTask { aggregate: Some(up_to(size)), ..task("digest") }
}

fn with_key(size: u32, key: &str, on_duplicate: OnDuplicate) -> NewTask {
    let unique = Some(UniqueKey { key: key.to_owned(), on_duplicate, keep_for: Duration::ZERO });
    NewTask { unique, ..member(size) }
}

fn living(size: u32, duration: Duration) -> NewTask {
    NewTask { ttl: Some(Ttl { duration, from: TtlFrom::Submission }), ..member(size) }
}

/// Submits the items of a full batch. Returns their numbers and that of the batch.
async fn bundle(store: &TestStore, size: u32) -> (Vec<TaskId>, TaskId) {
    let mut members = Vec::new();
    for _ in 0..size {
        members.push(store.submit_new(member(size)).await);
    }
    let bundle = store.record(members[0]).await.bundle.unwrap();
    (members, bundle)
}

/// Submits the items of a full batch and starts the batch.
async fn running(store: &TestStore, size: u32) -> (Vec<TaskId>, Lease) {
    let (members, bundle) = bundle(store, size).await;
    let lease = store.start_one().await;
    assert_eq!(lease.task, bundle);
    (members, lease)
}

async fn states(store: &TestStore, tasks: &[TaskId]) -> Vec<TaskState> {
    let mut states = Vec::new();
    for task in tasks {
        states.push(store.state(*task).await);
    }
    states
}

async fn members_of(store: &TestStore, bundle: TaskId) -> Vec<TaskRecord> {
    let filter = TaskFilter { bundle: Some(bundle), with_payload: true, ..TaskFilter::default() };
    let mut members = store.inner().tasks(filter, Page { before: None, limit: bounds::PAGE }).await.unwrap().tasks;
    members.reverse();
    members
}

async fn numbers_of(store: &TestStore, bundle: TaskId) -> Vec<TaskId> {
    members_of(store, bundle).await.into_iter().map(|member| member.id).collect()
}

async fn error(store: &TestStore, task: TaskId) -> String {
    store.record(task).await.errors.last().map(|error| error.message.clone()).unwrap_or_default()
}

async fn why(store: &TestStore, task: TaskId) -> Vec<WaitReason> {
    store.inner().why(task).await.unwrap().unwrap()
}

/// Shows: Q9
pub async fn as_many_as_are_enough_are_handed_over_as_one(store: TestStore) {
    let session = store.session().await;
    let mut members = Vec::new();
    for payload in ["a", "b", "c"] {
        assert!(store.claim(session, 9).await.is_empty());
        members.push(store.submit_new(NewTask { payload: payload.into(), ..member(3) }).await);
    }
    let claimed = store.claim(session, 9).await;
    let bundle = claimed[0].lease.task;
    assert_eq!((claimed.len(), claimed[0].members, claimed[0].payload.len()), (1, 3, 0));
    assert_eq!(store.record(bundle).await.members, 3);
    let found = members_of(&store, bundle).await;
    let payloads: Vec<_> = found.iter().map(|member| member.payload.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        (found.iter().map(|member| member.id).collect::<Vec<_>>(), payloads.concat()),
        (members.clone(), b"abc".to_vec())
    );
    assert_eq!(states(&store, &members).await, [TaskState::Blocked; 3]);
    let told: Vec<_> = store.changes().await.into_iter().filter(|(_, change)| *change != Change::Submitted).collect();
    assert_eq!(told[..3], [0, 1, 2].map(|place| (members[place], Change::Bundled { bundle })));
}

/// Shows: Q9
pub async fn what_is_collected_is_handed_over_when_no_more_come(store: TestStore) {
    let session = store.session_for(MINUTE * 10).await;
    store.submit_new(member(100)).await;
    store.advance(SECOND * 9);
    store.submit_new(member(100)).await;
    store.advance(SECOND * 9);
    assert!(store.claim(session, 9).await.is_empty());
    store.advance(SECOND);
    assert_eq!(store.claim(session, 9).await[0].members, 2);
}

/// Shows: Q9
pub async fn what_is_collected_is_handed_over_in_time_although_more_come(store: TestStore) {
    let session = store.session_for(MINUTE * 10).await;
    for _ in 0..12 {
        assert!(store.claim(session, 9).await.is_empty());
        store.submit_new(member(100)).await;
        store.advance(SECOND * 5);
    }
    assert_eq!(store.claim(session, 9).await[0].members, 12);
}

/// Shows: Q9
/// Beats: stuck-aggregation
pub async fn what_time_makes_ripe_is_due_then(store: TestStore) {
    store.submit_new(member(100)).await;
    store.advance(SECOND * 4);
    assert_eq!(store.sweep().await.next_due, Some(SECOND * 6));
    store.advance(SECOND * 6);
    let swept = store.sweep().await;
    assert_eq!((swept.due, swept.next_due), (1, None));
}

/// Shows: Q9
pub async fn only_what_has_queue_kind_and_group_in_common_is_collected_together(store: TestStore) {
    let of_group = |group: &str| NewTask { group: Some(name(group)), ..member(2) };
    let one = store.submit_new(of_group("one")).await;
    for other in [
        of_group("two"),
        member(2),
        NewTask { queue: name("slow"), ..of_group("one") },
        NewTask { kind: name("mail"), ..of_group("one") },
    ] {
        store.submit_new(other).await;
        assert_eq!(store.record(one).await.bundle, None);
    }
    store.submit_new(of_group("one")).await;
    let bundle = store.record(store.record(one).await.bundle.unwrap()).await;
    assert_eq!((bundle.kind, bundle.queue, bundle.group), (name("digest"), name("default"), Some(name("one"))));
}

/// Shows: Q9
pub async fn a_bundle_is_as_urgent_as_its_most_urgent_member(store: TestStore) {
    let (high, low) = (store.submit_new(NewTask { priority: Priority::HIGH, ..member(2) }).await, member(2));
    store.submit_new(NewTask { priority: Priority::LOW, ..low }).await;
    let bundle = store.record(high).await.bundle.unwrap();
    assert_eq!(store.record(bundle).await.priority, Priority::HIGH);
}

/// Shows: Q9
pub async fn a_bundle_takes_timeouts_and_retries_from_its_oldest_member(store: TestStore) {
    let policy = |attempts| Some(RetryPolicy { attempts, backoff: Backoff::default() });
    let of = |limit, retry| NewTask { timeout: Some(limit), heartbeat_timeout: Some(limit / 2), retry, ..member(2) };
    store.submit_new(of(SECOND, policy(7))).await;
    store.submit_new(of(MINUTE, policy(9))).await;
    let session = store.session().await;
    let claimed = store.claim(session, 1).await;
    let taken = (claimed[0].timeout, claimed[0].heartbeat_timeout, claimed[0].retry);
    assert_eq!(taken, (Some(SECOND), Some(SECOND / 2), policy(7)));
}

/// Shows: Q6, Q9
pub async fn a_bundle_is_kept_as_long_as_the_member_that_is_kept_longest(store: TestStore) {
    store.submit_new(NewTask { retention: Some(MINUTE), ..member(3) }).await;
    store.submit_new(NewTask { retention: Some(SECOND), ..member(3) }).await;
    let last = store.submit_new(member(3)).await;
    let bundle = store.record(last).await.bundle.unwrap();
    assert_eq!(store.record(bundle).await.retention, Some(MINUTE));
}

/// Shows: Q9
pub async fn a_bundle_counts_as_one_under_a_limit(store: TestStore) {
    let concurrency = Some(ConcurrencyLimit::AtMost(1));
    let scope = onward_store::LimitScope::Kind(name("digest"));
    store.write(Write::SetLimit(SetLimit { scope, concurrency, rate: None, weight: None, minimum: None })).await;
    let (_, first) = bundle(&store, 2).await;
    let (_, second) = bundle(&store, 2).await;
    let session = store.session().await;
    let claimed = store.claim(session, 9).await;
    assert_eq!(claimed.iter().map(|task| task.lease.task).collect::<Vec<_>>(), [first]);
    store.complete(claimed[0].lease).await;
    assert_eq!(store.claim_one(session).await.task, second);
}

/// Shows: Q9
pub async fn members_complete_with_their_bundle(store: TestStore) {
    let (members, lease) = running(&store, 3).await;
    store.advance(SECOND);
    store.complete(lease).await;
    assert_eq!(states(&store, &members).await, [TaskState::Completed; 3]);
    let record = store.record(members[0]).await;
    assert_eq!((record.finished_at, record.errors.len(), record.bundle), (Some(store.now()), 0, Some(lease.task)));
    assert_eq!(store.inner().statistics().await.unwrap()[0].ended.completed, 4);
    assert_eq!(store.queue("default").await.map(|queue| (queue.blocked, queue.ended.completed)), Some((0, 4)));
}

/// Shows: Q9
pub async fn a_member_has_the_result_of_its_bundle(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.done(Write::Complete { lease, result: Some("sent".into()) }).await;
    assert_eq!(store.record(members[0]).await.result.as_deref(), Some(&b"sent"[..]));
    assert_eq!(members_of(&store, lease.task).await[1].result.as_deref(), Some(&b"sent"[..]));
    let without = store.inner().tasks(TaskFilter::default(), Page::default()).await.unwrap().tasks;
    assert!(without.iter().all(|task| !task.result.is_read()));
}

/// Shows: Q9
pub async fn members_die_with_their_bundle_and_say_why(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.fail(lease, AfterFailure::Dead).await;
    assert_eq!(states(&store, &members).await, [TaskState::Dead; 2]);
    let said = error(&store, members[1]).await;
    assert!(said.contains(&lease.task.to_string()) && said.contains("oops"), "{said}");
}

/// Shows: Q9
pub async fn members_are_cancelled_with_their_bundle(store: TestStore) {
    let (members, bundle) = bundle(&store, 2).await;
    assert_eq!(store.cancel(bundle).await, Outcome::Cancelled);
    assert_eq!(states(&store, &members).await, [TaskState::Cancelled; 2]);
    assert!(error(&store, members[0]).await.contains("ended as cancelled"));
}

/// Shows: Q9
pub async fn members_of_a_removed_bundle_are_cancelled(store: TestStore) {
    let (members, bundle) = bundle(&store, 2).await;
    store.done(Write::Delete { task: bundle }).await;
    assert_eq!(states(&store, &members).await, [TaskState::Cancelled; 2]);
    assert!(error(&store, members[0]).await.contains("was removed"));
}

/// Shows: Q9
pub async fn a_bundle_that_is_tried_again_keeps_its_members(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.fail(lease, after(SECOND)).await;
    assert_eq!(states(&store, &members).await, [TaskState::Blocked; 2]);
    store.advance(SECOND);
    let again = store.claim(lease.session, 9).await;
    assert_eq!((again[0].members, again[0].attempt), (2, 2));
    assert_eq!(numbers_of(&store, lease.task).await, members);
    store.complete(again[0].lease).await;
    assert_eq!(states(&store, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_bundle_whose_lease_is_lost_keeps_its_members(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.lapse().await;
    assert_eq!(states(&store, &members).await, [TaskState::Blocked; 2]);
    let again = store.start_one().await;
    assert_eq!((again.task, numbers_of(&store, lease.task).await), (lease.task, members));
}

/// Shows: Q9
pub async fn who_depends_on_a_member_waits_for_its_bundle(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    let next = store.submit_new(NewTask { depends_on: Dependencies::on([members[0]]), ..task("next") }).await;
    assert_eq!(store.state(next).await, TaskState::Blocked);
    store.complete(lease).await;
    assert_eq!(store.state(next).await, TaskState::Waiting);
}

/// Shows: Q9
pub async fn a_bundle_of_the_most_members_ends_with_all_of_them(store: TestStore) {
    let submit = || Write::Submit(Box::new(member(bounds::BUNDLE)));
    store.apply(vec![Write::All((0..bounds::BUNDLE).map(|_| submit()).collect())]).await;
    let lease = store.start_one().await;
    store.complete(lease).await;
    let left = TaskFilter { states: vec![TaskState::Blocked], ..TaskFilter::default() };
    assert_eq!(store.inner().count(left).await.unwrap(), 0);
    let completed = TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() };
    assert_eq!(store.inner().count(completed).await.unwrap(), u64::from(bounds::BUNDLE) + 1);
}

/// Shows: Q9
pub async fn a_cancelled_member_is_taken_out_of_what_is_collected(store: TestStore) {
    let first = store.submit_new(member(2)).await;
    assert_eq!(store.cancel(first).await, Outcome::Cancelled);
    assert_eq!(store.state(first).await, TaskState::Cancelled);
    assert_eq!(store.sweep().await.next_due, None);
    let second = store.submit_new(member(2)).await;
    assert_eq!(store.record(second).await.bundle, None);
    let third = store.submit_new(member(2)).await;
    let bundle = store.record(third).await.bundle.unwrap();
    assert_eq!(numbers_of(&store, bundle).await, [second, third]);
}

/// Shows: Q9
pub async fn a_cancelled_member_is_taken_out_of_a_bundle_that_waits(store: TestStore) {
    let (members, bundle) = bundle(&store, 2).await;
    assert_eq!(store.cancel(members[0]).await, Outcome::Cancelled);
    assert_eq!(numbers_of(&store, bundle).await, members[1..]);
    store.complete_next().await;
    assert_eq!(states(&store, &members).await, [TaskState::Cancelled, TaskState::Completed]);
}

/// Shows: Q9
pub async fn a_bundle_without_members_is_cancelled(store: TestStore) {
    let (members, bundle) = bundle(&store, 2).await;
    store.cancel(members[1]).await;
    assert_eq!(store.state(bundle).await, TaskState::Waiting);
    store.cancel(members[0]).await;
    assert_eq!(store.state(bundle).await, TaskState::Cancelled);
    assert!(error(&store, bundle).await.contains("members"));
}

/// Shows: Q9
pub async fn a_member_whose_bundle_runs_ends_with_it_though_it_was_to_be_cancelled(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    assert_eq!(store.cancel(members[0]).await, Outcome::CancelRequested);
    let record = store.record(members[0]).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Blocked, true));
    store.complete(lease).await;
    assert_eq!(states(&store, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_member_that_was_to_be_cancelled_is_left_out_of_a_further_attempt(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.cancel(members[0]).await;
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    assert_eq!(store.fail(lease, hold).await.state, TaskState::Waiting);
    assert_eq!(states(&store, &members).await, [TaskState::Cancelled, TaskState::Blocked]);
    assert_eq!(numbers_of(&store, lease.task).await, members[1..]);
}

/// Shows: Q9
pub async fn a_member_whose_bundle_runs_is_neither_killed_nor_deleted(store: TestStore) {
    let (members, _) = running(&store, 2).await;
    let task = members[0];
    for write in [Write::Kill { task }, Write::Delete { task }, Write::RunNow { task }] {
        assert_eq!(store.refused(write).await, Refusal::Running(task));
    }
}

/// Shows: Q9
pub async fn a_killed_member_is_taken_out(store: TestStore) {
    let (members, bundle) = bundle(&store, 2).await;
    store.done(Write::Kill { task: members[0] }).await;
    assert_eq!(store.state(members[0]).await, TaskState::Dead);
    assert_eq!(numbers_of(&store, bundle).await, members[1..]);
}

/// Shows: Q9
pub async fn a_purged_member_is_taken_out(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    let collected = store.submit_new(member(2)).await;
    let purge = Write::Purge { queue: name("default"), states: vec![TaskState::Blocked], limit: 9 };
    assert_eq!(store.removed(purge).await, (3, false));
    assert!(store.find(collected).await.is_none() && store.find(members[0]).await.is_none());
    assert!(numbers_of(&store, lease.task).await.is_empty());
    assert_eq!(store.state(lease.task).await, TaskState::Running);
    let alone = store.submit_new(member(2)).await;
    assert_eq!(store.record(alone).await.bundle, None);
}

/// Shows: Q9
pub async fn a_member_that_expires_is_taken_out(store: TestStore) {
    let collected = store.submit_new(living(2, SECOND)).await;
    store.advance(SECOND);
    assert_eq!(store.sweep().await.expired, 1);
    assert_eq!(store.state(collected).await, TaskState::Expired);
    let members = [store.submit_new(living(2, SECOND)).await, store.submit_new(member(2)).await];
    let bundle = store.record(members[1]).await.bundle.unwrap();
    store.advance(SECOND);
    store.start_one().await;
    assert_eq!(states(&store, &members).await, [TaskState::Expired, TaskState::Blocked]);
    assert_eq!(numbers_of(&store, bundle).await, members[1..]);
}

/// Shows: Q9
pub async fn a_member_of_a_bundle_that_has_started_does_not_expire(store: TestStore) {
    let members = [store.submit_new(living(2, SECOND * 5)).await, store.submit_new(member(2)).await];
    let lease = store.start_one().await;
    store.advance(SECOND * 5);
    assert_eq!(store.sweep().await.expired, 0);
    assert_eq!(store.record(members[0]).await.expires_at, None);
    store.complete(lease).await;
    assert_eq!(states(&store, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_member_of_a_bundle_that_was_given_back_unstarted_expires(store: TestStore) {
    let members = [store.submit_new(living(2, SECOND * 5)).await, store.submit_new(member(2)).await];
    let lease = store.start_one().await;
    store.release(lease, Duration::ZERO).await;
    store.advance(SECOND * 5);
    store.sweep().await;
    assert_eq!(states(&store, &members).await, [TaskState::Expired, TaskState::Blocked]);
}

/// Shows: Q9
pub async fn a_member_of_an_ended_parent_is_not_collected(store: TestStore) {
    let parent = store.submit("parent").await;
    store.cancel(parent).await;
    let child = store.submit_new(NewTask { parent: Some(parent), ..member(1) }).await;
    assert_eq!(store.state(child).await, TaskState::Cancelled);
    assert_eq!(store.sweep().await.next_due, None);
}

/// Shows: Q9
pub async fn a_bundle_tried_again_after_its_end_takes_its_members_with_it(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.fail(lease, AfterFailure::Dead).await;
    store.retry(lease.task).await;
    assert_eq!(states(&store, &members).await, [TaskState::Blocked; 2]);
    let again = store.claim_one(lease.session).await;
    assert_eq!((again.task, numbers_of(&store, again.task).await), (lease.task, members.clone()));
    store.complete(again).await;
    assert_eq!(states(&store, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_bundle_is_not_tried_again_while_a_members_key_is_taken(store: TestStore) {
    let keyed = store.submit_new(with_key(1, "a", OnDuplicate::Skip)).await;
    let bundle = store.complete_next().await;
    let by = store.submit_new(with_key(9, "a", OnDuplicate::Skip)).await;
    assert_eq!(store.refused(Write::Retry { task: bundle }).await, Refusal::KeyTaken { task: keyed, by });
    assert_eq!(store.state(bundle).await, TaskState::Completed);
    store.cancel(by).await;
    store.retry(bundle).await;
    assert_eq!(store.submitted(with_key(9, "a", OnDuplicate::Skip)).await, Submitted::Duplicate { id: keyed });
}

/// Shows: Q9
pub async fn a_bundle_without_members_is_not_tried_again(store: TestStore) {
    let (members, lease) = running(&store, 1).await;
    store.complete(lease).await;
    store.done(Write::Delete { task: members[0] }).await;
    assert!(store.invalid(Write::Retry { task: lease.task }).await.contains("without members"));
}

/// Shows: Q9
pub async fn a_member_tried_again_by_itself_is_collected_again(store: TestStore) {
    let (members, lease) = running(&store, 2).await;
    store.fail(lease, AfterFailure::Fail).await;
    store.retry(members[0]).await;
    let record = store.record(members[0]).await;
    assert_eq!((record.state, record.bundle), (TaskState::Blocked, None));
    let other = store.submit_new(member(2)).await;
    let bundle = store.record(other).await.bundle.unwrap();
    assert_eq!(numbers_of(&store, bundle).await, [members[0], other]);
    assert_eq!(numbers_of(&store, lease.task).await, members[1..]);
}

/// Shows: Q9
pub async fn a_moved_member_is_collected_in_the_other_queue(store: TestStore) {
    let moved = store.submit_new(member(2)).await;
    let slow = name("slow");
    assert_eq!(store.write(Write::Move { task: moved, queue: slow.clone() }).await, Outcome::Moved);
    let here = store.submit_new(member(2)).await;
    assert_eq!(store.record(here).await.bundle, None);
    store.submit_new(NewTask { queue: slow.clone(), ..member(2) }).await;
    let bundle = store.record(moved).await.bundle.unwrap();
    assert_eq!(store.record(bundle).await.queue, slow);
}

/// Shows: Q9
pub async fn a_member_has_its_key_until_its_bundle_has_ended(store: TestStore) {
    let keyed = with_key(2, "a", OnDuplicate::Skip);
    let id = store.submit_new(keyed.clone()).await;
    assert_eq!(store.submitted(keyed.clone()).await, Submitted::Duplicate { id });
    store.submit_new(member(2)).await;
    let lease = store.start_one().await;
    assert_eq!(store.submitted(keyed.clone()).await, Submitted::Duplicate { id });
    store.complete(lease).await;
    assert!(store.submitted(keyed).await.is_new());
}

/// Shows: Q9
pub async fn a_duplicate_that_is_more_urgent_makes_the_bundle_so(store: TestStore) {
    let keyed = with_key(1, "a", OnDuplicate::Skip);
    let id = store.submit_new(keyed.clone()).await;
    let urgent = NewTask { priority: Priority::URGENT, ..keyed.clone() };
    assert_eq!(store.submitted(urgent.clone()).await, Submitted::PriorityRaised { id });
    let bundle = store.record(id).await.bundle.unwrap();
    assert_eq!(store.record(bundle).await.priority, Priority::URGENT);
    store.submit("other").await;
    assert_eq!(store.start_one().await.task, bundle);
    assert_eq!(store.submitted(urgent).await, Submitted::Duplicate { id });
}

/// Shows: Q9
pub async fn a_duplicate_of_a_member_that_runs_follows_it(store: TestStore) {
    let keyed = with_key(1, "a", OnDuplicate::Requeue);
    let id = store.submit_new(keyed.clone()).await;
    let lease = store.start_one().await;
    assert_eq!(store.submitted(keyed).await, Submitted::Requeued { id });
    store.complete(lease).await;
    let next = store.start_one().await;
    assert_ne!(next.task, lease.task);
    assert_eq!(members_of(&store, next.task).await[0].key.as_deref(), Some("a"));
}

/// Shows: Q9
pub async fn a_superseded_member_is_taken_out(store: TestStore) {
    let keyed = with_key(2, "a", OnDuplicate::Supersede);
    let old = store.submit_new(keyed.clone()).await;
    let id = store.submitted(keyed).await.id();
    assert_eq!(states(&store, &[old, id]).await, [TaskState::Cancelled, TaskState::Blocked]);
    let other = store.submit_new(member(2)).await;
    let bundle = store.record(id).await.bundle.unwrap();
    assert_eq!(numbers_of(&store, bundle).await, [id, other]);
}

/// Shows: Q9
pub async fn payloads_of_one_bundle_are_bounded(store: TestStore) {
    let large = store.payload_limit();
    let room = usize::try_from(bounds::BUNDLE_BYTES).unwrap() / large;
    let of =
        |bytes: usize| Write::Submit(Box::new(NewTask { payload: vec![0; bytes].into(), ..member(bounds::BUNDLE) }));
    let fits = (1..room).map(|_| of(large)).chain([of(1)]);
    store.apply(vec![Write::All(fits.collect())]).await;
    let last = TaskId(i64::try_from(room).unwrap());
    assert_eq!(store.record(last).await.bundle, None);
    let next = store.submit_new(NewTask { payload: vec![0; large].into(), ..member(bounds::BUNDLE) }).await;
    let bundle = store.record(last).await.bundle.unwrap();
    assert_eq!((numbers_of(&store, bundle).await.len(), store.record(next).await.bundle), (room, None));
}

/// Shows: Q9, B6
pub async fn it_is_said_what_a_member_waits_for(store: TestStore) {
    let task = store.submit_new(member(2)).await;
    let ripe_at = store.now().plus(SECOND * 10);
    assert_eq!(why(&store, task).await, [WaitReason::Collecting { members: 1, size: 2, ripe_at }]);
    store.submit_new(member(2)).await;
    let bundle = store.record(task).await.bundle.unwrap();
    assert_eq!(why(&store, task).await, [WaitReason::InBundle { bundle }]);
}

/// Shows: Q9, Q10
pub async fn what_is_collected_is_listed_in_the_order_in_which_it_is_handed_over(store: TestStore) {
    let began_at = store.now();
    let payload = "a comment".into();
    store.submit_new(NewTask { group: Some(name("ada")), payload, ..member(3) }).await;
    store.submit_new(member(5)).await;
    store.advance(SECOND);
    store.submit_new(NewTask { group: Some(name("ada")), payload: "another".into(), ..member(4) }).await;
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
pub async fn what_is_collected_is_listed_of_a_queue_and_no_more_than_asked_for(store: TestStore) {
    for (queue, group) in [("slow", "one"), ("default", "two"), ("slow", "three"), ("slow", "four")] {
        store.submit_new(NewTask { queue: name(queue), group: Some(name(group)), ..member(9) }).await;
    }
    let which = CollectionSelection { queue: Some(name("slow")), limit: 2 };
    let listed = store.inner().collections(which).await.unwrap();
    let groups: Vec<_> = listed.into_iter().map(|collection| collection.group).collect();
    assert_eq!(groups, [Some(name("one")), Some(name("three"))]);
}

/// Shows: Q9
pub async fn what_is_collected_survives_a_restart(mut store: TestStore) {
    let first = store.submit_new(member(2)).await;
    store.reopen().await;
    assert_eq!(store.sweep().await.next_due, Some(SECOND * 10));
    store.submit_new(member(2)).await;
    assert!(store.record(first).await.bundle.is_some());
}

/// Shows: Q9
pub async fn a_bundle_survives_a_restart(mut store: TestStore) {
    let (members, bundle) = bundle(&store, 2).await;
    store.reopen().await;
    let lease = store.start_one().await;
    assert_eq!((lease.task, numbers_of(&store, bundle).await), (bundle, members.clone()));
    store.reopen().await;
    store.advance(LEASE);
    let lease = store.start_one().await;
    store.complete(lease).await;
    assert_eq!(states(&store, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_refused_all_collects_nothing(store: TestStore) {
    let first = store.submit_new(member(3)).await;
    let writes = vec![
        Write::Submit(Box::new(member(3))),
        Write::Submit(Box::new(member(3))),
        Write::Cancel { task: TaskId(99) },
    ];
    store.refused(Write::All(writes)).await;
    assert_eq!(store.record(first).await.bundle, None);
    store.submit_new(member(3)).await;
    assert_eq!(store.record(first).await.bundle, None);
    store.submit_new(member(3)).await;
    assert!(store.record(first).await.bundle.is_some());
}

/// Shows: Q9
pub async fn what_cannot_be_collected_is_refused_with_the_remedy(store: TestStore) {
    let other = store.submit("other").await;
    let of = |aggregate| NewTask { aggregate: Some(aggregate), ..task("digest") };
    let from_start = Ttl { duration: SECOND, from: TtlFrom::FirstAttempt };
    for (wrong, said) in [
        (of(Aggregate { size: 0, ..up_to(1) }), "size of 0"),
        (of(up_to(bounds::BUNDLE + 1)), "size of 1001"),
        (of(Aggregate { delay: Duration::ZERO, ..up_to(2) }), "delay of 0"),
        (of(Aggregate { delay: bounds::BUNDLE_DELAY + SECOND, ..up_to(2) }), "delay of"),
        (of(Aggregate { grace: Duration::ZERO, ..up_to(2) }), "grace of 0"),
        (of(Aggregate { grace: MINUTE + SECOND, ..up_to(2) }), "grace of 61"),
        (NewTask { when: When::After(SECOND), ..member(2) }, "time at which it is due"),
        (NewTask { depends_on: Dependencies::on([other]), ..member(2) }, "dependencies"),
        (NewTask { deadline: Some(store.now()), ..member(2) }, "deadline"),
        (NewTask { affinity: Some(name("customer-7")), ..member(2) }, "affinity"),
        (NewTask { ttl: Some(from_start), ..member(2) }, "first attempt"),
    ] {
        let text = store.invalid(Write::Submit(Box::new(wrong))).await;
        assert!(text.contains(said) && text.contains("digest"), "{text}");
    }
}
