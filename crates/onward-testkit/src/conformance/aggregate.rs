//! Batches: tasks that are collected and run as one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{
    AfterFailure, Aggregate, Change, CollectionRecord, CollectionSelection, ConcurrencyLimit, Dependencies, Lease,
    NewTask, OnDuplicate, Outcome, Page, Priority, Refusal, SetLimit, StoreReads, Submitted, TaskFilter, TaskId,
    TaskRecord, TaskState, Ttl, TtlFrom, UniqueKey, WaitReason, When, Write, bounds,
};

use crate::bench::{Bench, LEASE, after, name, task};

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
async fn bundle(bench: &Bench, size: u32) -> (Vec<TaskId>, TaskId) {
    let mut members = Vec::new();
    for _ in 0..size {
        members.push(bench.submit_new(member(size)).await);
    }
    let bundle = bench.record(members[0]).await.bundle.unwrap();
    (members, bundle)
}

/// Submits the items of a full batch and starts the batch.
async fn running(bench: &Bench, size: u32) -> (Vec<TaskId>, Lease) {
    let (members, bundle) = bundle(bench, size).await;
    let lease = bench.start_one().await;
    assert_eq!(lease.task, bundle);
    (members, lease)
}

async fn states(bench: &Bench, tasks: &[TaskId]) -> Vec<TaskState> {
    let mut states = Vec::new();
    for task in tasks {
        states.push(bench.state(*task).await);
    }
    states
}

async fn members_of(bench: &Bench, bundle: TaskId) -> Vec<TaskRecord> {
    let filter = TaskFilter { bundle: Some(bundle), with_payload: true, ..TaskFilter::default() };
    let mut members = bench.store().tasks(filter, Page { before: None, limit: bounds::PAGE }).await.unwrap().tasks;
    members.reverse();
    members
}

async fn numbers_of(bench: &Bench, bundle: TaskId) -> Vec<TaskId> {
    members_of(bench, bundle).await.into_iter().map(|member| member.id).collect()
}

async fn error(bench: &Bench, task: TaskId) -> String {
    bench.record(task).await.errors.last().map(|error| error.message.clone()).unwrap_or_default()
}

async fn why(bench: &Bench, task: TaskId) -> Vec<WaitReason> {
    bench.store().why(task).await.unwrap().unwrap()
}

/// Shows: Q9
pub async fn as_many_as_are_enough_are_handed_over_as_one(bench: Bench) {
    let session = bench.session().await;
    let mut members = Vec::new();
    for payload in ["a", "b", "c"] {
        assert!(bench.claim(session, 9).await.is_empty());
        members.push(bench.submit_new(NewTask { payload: payload.into(), ..member(3) }).await);
    }
    let claimed = bench.claim(session, 9).await;
    let bundle = claimed[0].lease.task;
    assert_eq!((claimed.len(), claimed[0].members, claimed[0].payload.len()), (1, 3, 0));
    assert_eq!(bench.record(bundle).await.members, 3);
    let found = members_of(&bench, bundle).await;
    let payloads: Vec<_> = found.iter().map(|member| member.payload.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        (found.iter().map(|member| member.id).collect::<Vec<_>>(), payloads.concat()),
        (members.clone(), b"abc".to_vec())
    );
    assert_eq!(states(&bench, &members).await, [TaskState::Blocked; 3]);
    let told: Vec<_> = bench.changes().await.into_iter().filter(|(_, change)| *change != Change::Submitted).collect();
    assert_eq!(told[..3], [0, 1, 2].map(|place| (members[place], Change::Bundled { bundle })));
}

/// Shows: Q9
pub async fn what_is_collected_is_handed_over_when_no_more_come(bench: Bench) {
    let session = bench.session_for(MINUTE * 10).await;
    bench.submit_new(member(100)).await;
    bench.advance(SECOND * 9);
    bench.submit_new(member(100)).await;
    bench.advance(SECOND * 9);
    assert!(bench.claim(session, 9).await.is_empty());
    bench.advance(SECOND);
    assert_eq!(bench.claim(session, 9).await[0].members, 2);
}

/// Shows: Q9
pub async fn what_is_collected_is_handed_over_in_time_although_more_come(bench: Bench) {
    let session = bench.session_for(MINUTE * 10).await;
    for _ in 0..12 {
        assert!(bench.claim(session, 9).await.is_empty());
        bench.submit_new(member(100)).await;
        bench.advance(SECOND * 5);
    }
    assert_eq!(bench.claim(session, 9).await[0].members, 12);
}

/// Shows: Q9
/// Beats: stuck-aggregation
pub async fn what_time_makes_ripe_is_due_then(bench: Bench) {
    bench.submit_new(member(100)).await;
    bench.advance(SECOND * 4);
    assert_eq!(bench.sweep().await.next_due, Some(SECOND * 6));
    bench.advance(SECOND * 6);
    let swept = bench.sweep().await;
    assert_eq!((swept.due, swept.next_due), (1, None));
}

/// Shows: Q9
pub async fn only_what_has_queue_kind_and_group_in_common_is_collected_together(bench: Bench) {
    let of_group = |group: &str| NewTask { group: Some(name(group)), ..member(2) };
    let one = bench.submit_new(of_group("one")).await;
    for other in [
        of_group("two"),
        member(2),
        NewTask { queue: name("slow"), ..of_group("one") },
        NewTask { kind: name("mail"), ..of_group("one") },
    ] {
        bench.submit_new(other).await;
        assert_eq!(bench.record(one).await.bundle, None);
    }
    bench.submit_new(of_group("one")).await;
    let bundle = bench.record(bench.record(one).await.bundle.unwrap()).await;
    assert_eq!((bundle.kind, bundle.queue, bundle.group), (name("digest"), name("default"), Some(name("one"))));
}

/// Shows: Q9
pub async fn a_bundle_is_as_urgent_as_its_most_urgent_member(bench: Bench) {
    let (high, low) = (bench.submit_new(NewTask { priority: Priority::HIGH, ..member(2) }).await, member(2));
    bench.submit_new(NewTask { priority: Priority::LOW, ..low }).await;
    let bundle = bench.record(high).await.bundle.unwrap();
    assert_eq!(bench.record(bundle).await.priority, Priority::HIGH);
}

/// Shows: Q9
pub async fn a_bundle_takes_timeouts_and_retries_from_its_oldest_member(bench: Bench) {
    let policy = |attempts| Some(RetryPolicy { attempts, backoff: Backoff::default() });
    let of = |limit, retry| NewTask { timeout: Some(limit), heartbeat_timeout: Some(limit / 2), retry, ..member(2) };
    bench.submit_new(of(SECOND, policy(7))).await;
    bench.submit_new(of(MINUTE, policy(9))).await;
    let session = bench.session().await;
    let claimed = bench.claim(session, 1).await;
    let taken = (claimed[0].timeout, claimed[0].heartbeat_timeout, claimed[0].retry);
    assert_eq!(taken, (Some(SECOND), Some(SECOND / 2), policy(7)));
}

/// Shows: Q6, Q9
pub async fn a_bundle_is_kept_as_long_as_the_member_that_is_kept_longest(bench: Bench) {
    bench.submit_new(NewTask { retention: Some(MINUTE), ..member(3) }).await;
    bench.submit_new(NewTask { retention: Some(SECOND), ..member(3) }).await;
    let last = bench.submit_new(member(3)).await;
    let bundle = bench.record(last).await.bundle.unwrap();
    assert_eq!(bench.record(bundle).await.retention, Some(MINUTE));
}

/// Shows: Q9
pub async fn a_bundle_counts_as_one_under_a_limit(bench: Bench) {
    let concurrency = Some(ConcurrencyLimit::AtMost(1));
    let scope = onward_store::LimitScope::Kind(name("digest"));
    bench.write(Write::SetLimit(SetLimit { scope, concurrency, rate: None, weight: None, minimum: None })).await;
    let (_, first) = bundle(&bench, 2).await;
    let (_, second) = bundle(&bench, 2).await;
    let session = bench.session().await;
    let claimed = bench.claim(session, 9).await;
    assert_eq!(claimed.iter().map(|task| task.lease.task).collect::<Vec<_>>(), [first]);
    bench.complete(claimed[0].lease).await;
    assert_eq!(bench.claim_one(session).await.task, second);
}

/// Shows: Q9
pub async fn members_complete_with_their_bundle(bench: Bench) {
    let (members, lease) = running(&bench, 3).await;
    bench.advance(SECOND);
    bench.complete(lease).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Completed; 3]);
    let record = bench.record(members[0]).await;
    assert_eq!((record.finished_at, record.errors.len(), record.bundle), (Some(bench.now()), 0, Some(lease.task)));
    assert_eq!(bench.store().statistics().await.unwrap()[0].ended.completed, 4);
    assert_eq!(bench.queue("default").await.map(|queue| (queue.blocked, queue.ended.completed)), Some((0, 4)));
}

/// Shows: Q9
pub async fn a_member_has_the_result_of_its_bundle(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.done(Write::Complete { lease, result: Some("sent".into()) }).await;
    assert_eq!(bench.record(members[0]).await.result.as_deref(), Some(&b"sent"[..]));
    assert_eq!(members_of(&bench, lease.task).await[1].result.as_deref(), Some(&b"sent"[..]));
    let without = bench.store().tasks(TaskFilter::default(), Page::default()).await.unwrap().tasks;
    assert!(without.iter().all(|task| !task.result.is_read()));
}

/// Shows: Q9
pub async fn members_die_with_their_bundle_and_say_why(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.fail(lease, AfterFailure::Dead).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Dead; 2]);
    let said = error(&bench, members[1]).await;
    assert!(said.contains(&lease.task.to_string()) && said.contains("oops"), "{said}");
}

/// Shows: Q9
pub async fn members_are_cancelled_with_their_bundle(bench: Bench) {
    let (members, bundle) = bundle(&bench, 2).await;
    assert_eq!(bench.cancel(bundle).await, Outcome::Cancelled);
    assert_eq!(states(&bench, &members).await, [TaskState::Cancelled; 2]);
    assert!(error(&bench, members[0]).await.contains("ended as cancelled"));
}

/// Shows: Q9
pub async fn members_of_a_removed_bundle_are_cancelled(bench: Bench) {
    let (members, bundle) = bundle(&bench, 2).await;
    bench.done(Write::Delete { task: bundle }).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Cancelled; 2]);
    assert!(error(&bench, members[0]).await.contains("was removed"));
}

/// Shows: Q9
pub async fn a_bundle_that_is_tried_again_keeps_its_members(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.fail(lease, after(SECOND)).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Blocked; 2]);
    bench.advance(SECOND);
    let again = bench.claim(lease.session, 9).await;
    assert_eq!((again[0].members, again[0].attempt), (2, 2));
    assert_eq!(numbers_of(&bench, lease.task).await, members);
    bench.complete(again[0].lease).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_bundle_whose_lease_is_lost_keeps_its_members(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.lapse().await;
    assert_eq!(states(&bench, &members).await, [TaskState::Blocked; 2]);
    let again = bench.start_one().await;
    assert_eq!((again.task, numbers_of(&bench, lease.task).await), (lease.task, members));
}

/// Shows: Q9
pub async fn who_depends_on_a_member_waits_for_its_bundle(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    let next = bench.submit_new(NewTask { depends_on: Dependencies::on([members[0]]), ..task("next") }).await;
    assert_eq!(bench.state(next).await, TaskState::Blocked);
    bench.complete(lease).await;
    assert_eq!(bench.state(next).await, TaskState::Waiting);
}

/// Shows: Q9
pub async fn a_bundle_of_the_most_members_ends_with_all_of_them(bench: Bench) {
    let submit = || Write::Submit(Box::new(member(bounds::BUNDLE)));
    bench.apply(vec![Write::All((0..bounds::BUNDLE).map(|_| submit()).collect())]).await;
    let lease = bench.start_one().await;
    bench.complete(lease).await;
    let left = TaskFilter { states: vec![TaskState::Blocked], ..TaskFilter::default() };
    assert_eq!(bench.store().count(left).await.unwrap(), 0);
    let completed = TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() };
    assert_eq!(bench.store().count(completed).await.unwrap(), u64::from(bounds::BUNDLE) + 1);
}

/// Shows: Q9
pub async fn a_cancelled_member_is_taken_out_of_what_is_collected(bench: Bench) {
    let first = bench.submit_new(member(2)).await;
    assert_eq!(bench.cancel(first).await, Outcome::Cancelled);
    assert_eq!(bench.state(first).await, TaskState::Cancelled);
    assert_eq!(bench.sweep().await.next_due, None);
    let second = bench.submit_new(member(2)).await;
    assert_eq!(bench.record(second).await.bundle, None);
    let third = bench.submit_new(member(2)).await;
    let bundle = bench.record(third).await.bundle.unwrap();
    assert_eq!(numbers_of(&bench, bundle).await, [second, third]);
}

/// Shows: Q9
pub async fn a_cancelled_member_is_taken_out_of_a_bundle_that_waits(bench: Bench) {
    let (members, bundle) = bundle(&bench, 2).await;
    assert_eq!(bench.cancel(members[0]).await, Outcome::Cancelled);
    assert_eq!(numbers_of(&bench, bundle).await, members[1..]);
    bench.complete_next().await;
    assert_eq!(states(&bench, &members).await, [TaskState::Cancelled, TaskState::Completed]);
}

/// Shows: Q9
pub async fn a_bundle_without_members_is_cancelled(bench: Bench) {
    let (members, bundle) = bundle(&bench, 2).await;
    bench.cancel(members[1]).await;
    assert_eq!(bench.state(bundle).await, TaskState::Waiting);
    bench.cancel(members[0]).await;
    assert_eq!(bench.state(bundle).await, TaskState::Cancelled);
    assert!(error(&bench, bundle).await.contains("members"));
}

/// Shows: Q9
pub async fn a_member_whose_bundle_runs_ends_with_it_though_it_was_to_be_cancelled(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    assert_eq!(bench.cancel(members[0]).await, Outcome::CancelRequested);
    let record = bench.record(members[0]).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Blocked, true));
    bench.complete(lease).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_member_that_was_to_be_cancelled_is_left_out_of_a_further_attempt(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.cancel(members[0]).await;
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    assert_eq!(bench.fail(lease, hold).await.state, TaskState::Waiting);
    assert_eq!(states(&bench, &members).await, [TaskState::Cancelled, TaskState::Blocked]);
    assert_eq!(numbers_of(&bench, lease.task).await, members[1..]);
}

/// Shows: Q9
pub async fn a_member_whose_bundle_runs_is_neither_killed_nor_deleted(bench: Bench) {
    let (members, _) = running(&bench, 2).await;
    let task = members[0];
    for write in [Write::Kill { task }, Write::Delete { task }, Write::RunNow { task }] {
        assert_eq!(bench.refused(write).await, Refusal::Running(task));
    }
}

/// Shows: Q9
pub async fn a_killed_member_is_taken_out(bench: Bench) {
    let (members, bundle) = bundle(&bench, 2).await;
    bench.done(Write::Kill { task: members[0] }).await;
    assert_eq!(bench.state(members[0]).await, TaskState::Dead);
    assert_eq!(numbers_of(&bench, bundle).await, members[1..]);
}

/// Shows: Q9
pub async fn a_purged_member_is_taken_out(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    let collected = bench.submit_new(member(2)).await;
    let purge = Write::Purge { queue: name("default"), states: vec![TaskState::Blocked], limit: 9 };
    assert_eq!(bench.removed(purge).await, (3, false));
    assert!(bench.find(collected).await.is_none() && bench.find(members[0]).await.is_none());
    assert!(numbers_of(&bench, lease.task).await.is_empty());
    assert_eq!(bench.state(lease.task).await, TaskState::Running);
    let alone = bench.submit_new(member(2)).await;
    assert_eq!(bench.record(alone).await.bundle, None);
}

/// Shows: Q9
pub async fn a_member_that_expires_is_taken_out(bench: Bench) {
    let collected = bench.submit_new(living(2, SECOND)).await;
    bench.advance(SECOND);
    assert_eq!(bench.sweep().await.expired, 1);
    assert_eq!(bench.state(collected).await, TaskState::Expired);
    let members = [bench.submit_new(living(2, SECOND)).await, bench.submit_new(member(2)).await];
    let bundle = bench.record(members[1]).await.bundle.unwrap();
    bench.advance(SECOND);
    bench.start_one().await;
    assert_eq!(states(&bench, &members).await, [TaskState::Expired, TaskState::Blocked]);
    assert_eq!(numbers_of(&bench, bundle).await, members[1..]);
}

/// Shows: Q9
pub async fn a_member_of_a_bundle_that_has_started_does_not_expire(bench: Bench) {
    let members = [bench.submit_new(living(2, SECOND * 5)).await, bench.submit_new(member(2)).await];
    let lease = bench.start_one().await;
    bench.advance(SECOND * 5);
    assert_eq!(bench.sweep().await.expired, 0);
    assert_eq!(bench.record(members[0]).await.expires_at, None);
    bench.complete(lease).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_member_of_a_bundle_that_was_given_back_unstarted_expires(bench: Bench) {
    let members = [bench.submit_new(living(2, SECOND * 5)).await, bench.submit_new(member(2)).await];
    let lease = bench.start_one().await;
    bench.release(lease, Duration::ZERO).await;
    bench.advance(SECOND * 5);
    bench.sweep().await;
    assert_eq!(states(&bench, &members).await, [TaskState::Expired, TaskState::Blocked]);
}

/// Shows: Q9
pub async fn a_member_of_an_ended_parent_is_not_collected(bench: Bench) {
    let parent = bench.submit("parent").await;
    bench.cancel(parent).await;
    let child = bench.submit_new(NewTask { parent: Some(parent), ..member(1) }).await;
    assert_eq!(bench.state(child).await, TaskState::Cancelled);
    assert_eq!(bench.sweep().await.next_due, None);
}

/// Shows: Q9
pub async fn a_bundle_tried_again_after_its_end_takes_its_members_with_it(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.fail(lease, AfterFailure::Dead).await;
    bench.retry(lease.task).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Blocked; 2]);
    let again = bench.claim_one(lease.session).await;
    assert_eq!((again.task, numbers_of(&bench, again.task).await), (lease.task, members.clone()));
    bench.complete(again).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_bundle_is_not_tried_again_while_a_members_key_is_taken(bench: Bench) {
    let keyed = bench.submit_new(with_key(1, "a", OnDuplicate::Skip)).await;
    let bundle = bench.complete_next().await;
    let by = bench.submit_new(with_key(9, "a", OnDuplicate::Skip)).await;
    assert_eq!(bench.refused(Write::Retry { task: bundle }).await, Refusal::KeyTaken { task: keyed, by });
    assert_eq!(bench.state(bundle).await, TaskState::Completed);
    bench.cancel(by).await;
    bench.retry(bundle).await;
    assert_eq!(bench.submitted(with_key(9, "a", OnDuplicate::Skip)).await, Submitted::Duplicate { id: keyed });
}

/// Shows: Q9
pub async fn a_bundle_without_members_is_not_tried_again(bench: Bench) {
    let (members, lease) = running(&bench, 1).await;
    bench.complete(lease).await;
    bench.done(Write::Delete { task: members[0] }).await;
    assert!(bench.invalid(Write::Retry { task: lease.task }).await.contains("without members"));
}

/// Shows: Q9
pub async fn a_member_tried_again_by_itself_is_collected_again(bench: Bench) {
    let (members, lease) = running(&bench, 2).await;
    bench.fail(lease, AfterFailure::Fail).await;
    bench.retry(members[0]).await;
    let record = bench.record(members[0]).await;
    assert_eq!((record.state, record.bundle), (TaskState::Blocked, None));
    let other = bench.submit_new(member(2)).await;
    let bundle = bench.record(other).await.bundle.unwrap();
    assert_eq!(numbers_of(&bench, bundle).await, [members[0], other]);
    assert_eq!(numbers_of(&bench, lease.task).await, members[1..]);
}

/// Shows: Q9
pub async fn a_moved_member_is_collected_in_the_other_queue(bench: Bench) {
    let moved = bench.submit_new(member(2)).await;
    let slow = name("slow");
    assert_eq!(bench.write(Write::Move { task: moved, queue: slow.clone() }).await, Outcome::Moved);
    let here = bench.submit_new(member(2)).await;
    assert_eq!(bench.record(here).await.bundle, None);
    bench.submit_new(NewTask { queue: slow.clone(), ..member(2) }).await;
    let bundle = bench.record(moved).await.bundle.unwrap();
    assert_eq!(bench.record(bundle).await.queue, slow);
}

/// Shows: Q9
pub async fn a_member_has_its_key_until_its_bundle_has_ended(bench: Bench) {
    let keyed = with_key(2, "a", OnDuplicate::Skip);
    let id = bench.submit_new(keyed.clone()).await;
    assert_eq!(bench.submitted(keyed.clone()).await, Submitted::Duplicate { id });
    bench.submit_new(member(2)).await;
    let lease = bench.start_one().await;
    assert_eq!(bench.submitted(keyed.clone()).await, Submitted::Duplicate { id });
    bench.complete(lease).await;
    assert!(bench.submitted(keyed).await.is_new());
}

/// Shows: Q9
pub async fn a_duplicate_that_is_more_urgent_makes_the_bundle_so(bench: Bench) {
    let keyed = with_key(1, "a", OnDuplicate::Skip);
    let id = bench.submit_new(keyed.clone()).await;
    let urgent = NewTask { priority: Priority::URGENT, ..keyed.clone() };
    assert_eq!(bench.submitted(urgent.clone()).await, Submitted::PriorityRaised { id });
    let bundle = bench.record(id).await.bundle.unwrap();
    assert_eq!(bench.record(bundle).await.priority, Priority::URGENT);
    bench.submit("other").await;
    assert_eq!(bench.start_one().await.task, bundle);
    assert_eq!(bench.submitted(urgent).await, Submitted::Duplicate { id });
}

/// Shows: Q9
pub async fn a_duplicate_of_a_member_that_runs_follows_it(bench: Bench) {
    let keyed = with_key(1, "a", OnDuplicate::Requeue);
    let id = bench.submit_new(keyed.clone()).await;
    let lease = bench.start_one().await;
    assert_eq!(bench.submitted(keyed).await, Submitted::Requeued { id });
    bench.complete(lease).await;
    let next = bench.start_one().await;
    assert_ne!(next.task, lease.task);
    assert_eq!(members_of(&bench, next.task).await[0].key.as_deref(), Some("a"));
}

/// Shows: Q9
pub async fn a_superseded_member_is_taken_out(bench: Bench) {
    let keyed = with_key(2, "a", OnDuplicate::Supersede);
    let old = bench.submit_new(keyed.clone()).await;
    let id = bench.submitted(keyed).await.id();
    assert_eq!(states(&bench, &[old, id]).await, [TaskState::Cancelled, TaskState::Blocked]);
    let other = bench.submit_new(member(2)).await;
    let bundle = bench.record(id).await.bundle.unwrap();
    assert_eq!(numbers_of(&bench, bundle).await, [id, other]);
}

/// Shows: Q9
pub async fn payloads_of_one_bundle_are_bounded(bench: Bench) {
    let large = bench.payload_limit();
    let room = usize::try_from(bounds::BUNDLE_BYTES).unwrap() / large;
    let of =
        |bytes: usize| Write::Submit(Box::new(NewTask { payload: vec![0; bytes].into(), ..member(bounds::BUNDLE) }));
    let fits = (1..room).map(|_| of(large)).chain([of(1)]);
    bench.apply(vec![Write::All(fits.collect())]).await;
    let last = TaskId(i64::try_from(room).unwrap());
    assert_eq!(bench.record(last).await.bundle, None);
    let next = bench.submit_new(NewTask { payload: vec![0; large].into(), ..member(bounds::BUNDLE) }).await;
    let bundle = bench.record(last).await.bundle.unwrap();
    assert_eq!((numbers_of(&bench, bundle).await.len(), bench.record(next).await.bundle), (room, None));
}

/// Shows: Q9, B6
pub async fn it_is_said_what_a_member_waits_for(bench: Bench) {
    let task = bench.submit_new(member(2)).await;
    let ripe_at = bench.now().plus(SECOND * 10);
    assert_eq!(why(&bench, task).await, [WaitReason::Collecting { members: 1, size: 2, ripe_at }]);
    bench.submit_new(member(2)).await;
    let bundle = bench.record(task).await.bundle.unwrap();
    assert_eq!(why(&bench, task).await, [WaitReason::InBundle { bundle }]);
}

/// Shows: Q9, Q10
pub async fn what_is_collected_is_listed_in_the_order_in_which_it_is_handed_over(bench: Bench) {
    let began_at = bench.now();
    let payload = "a comment".into();
    bench.submit_new(NewTask { group: Some(name("ada")), payload, ..member(3) }).await;
    bench.submit_new(member(5)).await;
    bench.advance(SECOND);
    bench.submit_new(NewTask { group: Some(name("ada")), payload: "another".into(), ..member(4) }).await;
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
    assert_eq!(bench.store().collections(CollectionSelection::default()).await.ok(), Some(expected));
    bench.advance(SECOND * 9);
    bench.sweep().await;
    assert_eq!(bench.store().collections(CollectionSelection::default()).await.ok(), Some(vec![later]));
}

/// Shows: Q9, Q10
pub async fn what_is_collected_is_listed_of_a_queue_and_no_more_than_asked_for(bench: Bench) {
    for (queue, group) in [("slow", "one"), ("default", "two"), ("slow", "three"), ("slow", "four")] {
        bench.submit_new(NewTask { queue: name(queue), group: Some(name(group)), ..member(9) }).await;
    }
    let which = CollectionSelection { queue: Some(name("slow")), limit: 2 };
    let listed = bench.store().collections(which).await.unwrap();
    let groups: Vec<_> = listed.into_iter().map(|collection| collection.group).collect();
    assert_eq!(groups, [Some(name("one")), Some(name("three"))]);
}

/// Shows: Q9
pub async fn what_is_collected_survives_a_restart(mut bench: Bench) {
    let first = bench.submit_new(member(2)).await;
    bench.reopen().await;
    assert_eq!(bench.sweep().await.next_due, Some(SECOND * 10));
    bench.submit_new(member(2)).await;
    assert!(bench.record(first).await.bundle.is_some());
}

/// Shows: Q9
pub async fn a_bundle_survives_a_restart(mut bench: Bench) {
    let (members, bundle) = bundle(&bench, 2).await;
    bench.reopen().await;
    let lease = bench.start_one().await;
    assert_eq!((lease.task, numbers_of(&bench, bundle).await), (bundle, members.clone()));
    bench.reopen().await;
    bench.advance(LEASE);
    let lease = bench.start_one().await;
    bench.complete(lease).await;
    assert_eq!(states(&bench, &members).await, [TaskState::Completed; 2]);
}

/// Shows: Q9
pub async fn a_refused_all_collects_nothing(bench: Bench) {
    let first = bench.submit_new(member(3)).await;
    let writes = vec![
        Write::Submit(Box::new(member(3))),
        Write::Submit(Box::new(member(3))),
        Write::Cancel { task: TaskId(99) },
    ];
    bench.refused(Write::All(writes)).await;
    assert_eq!(bench.record(first).await.bundle, None);
    bench.submit_new(member(3)).await;
    assert_eq!(bench.record(first).await.bundle, None);
    bench.submit_new(member(3)).await;
    assert!(bench.record(first).await.bundle.is_some());
}

/// Shows: Q9
pub async fn what_cannot_be_collected_is_refused_with_the_remedy(bench: Bench) {
    let other = bench.submit("other").await;
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
        (NewTask { deadline: Some(bench.now()), ..member(2) }, "deadline"),
        (NewTask { affinity: Some(name("customer-7")), ..member(2) }, "affinity"),
        (NewTask { ttl: Some(from_start), ..member(2) }, "first attempt"),
    ] {
        let text = bench.invalid(Write::Submit(Box::new(wrong))).await;
        assert!(text.contains(said) && text.contains("digest"), "{text}");
    }
}
