//! Groups that share queues by weights and minimums.
#![expect(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, Lease, Limit, LimitScope, NewTask, Outcome, Priority, QueueMode, QueueSelection, SetLimit,
    SetQueue, StoreReads, TaskId, Ttl, TtlFrom, WaitReason, Write,
};

use crate::test_store::{TestStore, all_of, name, numbers, task};

fn of(group: &str) -> NewTask {
    NewTask { group: Some(name(group)), ..task("k") }
}

fn urgent(new: NewTask) -> NewTask {
    NewTask { priority: Priority::URGENT, ..new }
}

fn group(group: &str) -> SetLimit {
    SetLimit::group(name(group))
}

/// Returns a setting for every group without a limit of its own.
fn each() -> SetLimit {
    SetLimit::new(LimitScope::Groups(String::new()))
}

async fn set(store: &TestStore, set: SetLimit) -> Limit {
    match store.write(Write::SetLimit(set)).await {
        Outcome::LimitSet(limit) => limit,
        other => panic!("the limit should have been set: {other:?}"),
    }
}

async fn submit(store: &TestStore, new: NewTask, tasks: usize) {
    for _ in 0..tasks {
        store.submit_new(new.clone()).await;
    }
}

/// Returns the groups of tasks, in their order; `-` for none.
fn groups(tasks: &[ClaimedTask]) -> String {
    tasks.iter().map(|task| task.group.as_ref().map_or("-", |group| group.as_str())).collect()
}

async fn given(store: &TestStore, claim: Claim) -> String {
    groups(&store.claimed(claim).await.tasks)
}

fn count(given: &str, group: char) -> usize {
    given.chars().filter(|one| *one == group).count()
}

/// Shows: T9
pub async fn groups_get_starts_in_proportion_to_their_weights(store: TestStore) {
    set(&store, group("a").weight(3)).await;
    submit(&store, of("b"), 40).await;
    submit(&store, of("a"), 40).await;
    let session = store.session().await;
    let given = given(&store, all_of(session, 40)).await;
    assert_eq!((count(&given, 'a'), count(&given, 'b')), (30, 10), "{given}");
    let window = given.get(5..25).expect("forty were given");
    assert!((14..=16).contains(&count(window, 'a')), "in every window: {window}");
}

/// Shows: T9
pub async fn claims_of_one_task_share_as_a_claim_of_many_does(store: TestStore) {
    set(&store, group("a").weight(2)).await;
    let session = store.session().await;
    let mut given_in_queues = Vec::new();
    for (queue, limit) in [("together", 16), ("one-by-one", 1)] {
        let queued = |new: NewTask| NewTask { queue: name(queue), ..new };
        submit(&store, queued(of("a")), 12).await;
        submit(&store, queued(of("b")), 4).await;
        submit(&store, queued(NewTask { kind: name("other"), ..of("b") }), 4).await;
        submit(&store, queued(task("k")), 4).await;
        submit(&store, queued(task("other")), 4).await;
        let mut given_so_far = String::new();
        while given_so_far.len() < 16 {
            let queues = QueueSelection::Only(vec![(name(queue), limit)]);
            given_so_far += &given(&store, Claim { queues, ..all_of(session, limit) }).await;
        }
        given_in_queues.push(given_so_far);
    }
    assert_eq!(given_in_queues.first(), given_in_queues.last());
    assert_eq!(count(given_in_queues.first().expect("two were tried"), 'a'), 8);
}

/// Shows: T9
pub async fn a_flood_of_urgent_tasks_of_one_group_does_not_starve_another(store: TestStore) {
    set(&store, each().weight(1)).await;
    submit(&store, urgent(of("a")), 50).await;
    submit(&store, of("b"), 5).await;
    let session = store.session().await;
    let given = given(&store, all_of(session, 10)).await;
    assert_eq!((count(&given, 'a'), count(&given, 'b')), (5, 5), "{given}");
}

pub async fn priorities_order_the_tasks_of_a_group_that_shares(store: TestStore) {
    set(&store, each().weight(1)).await;
    let normal = store.submit_new(of("a")).await;
    let first = store.submit_new(urgent(of("a"))).await;
    let session = store.session().await;
    let given: Vec<_> = store.claim(session, 2).await.iter().map(|task| task.lease.task).collect();
    assert_eq!(given, [first, normal]);
}

/// Shows: T9
pub async fn tasks_without_a_group_share_as_one_group_of_weight_one(store: TestStore) {
    set(&store, group("a").weight(2)).await;
    submit(&store, task("k"), 10).await;
    submit(&store, task("other"), 10).await;
    submit(&store, of("a"), 20).await;
    let session = store.session().await;
    let given = given(&store, all_of(session, 15)).await;
    assert_eq!((count(&given, 'a'), count(&given, '-')), (10, 5), "{given}");
}

/// Shows: T9
pub async fn a_group_is_owed_nothing_for_a_time_when_it_had_no_work(store: TestStore) {
    set(&store, each().weight(1)).await;
    submit(&store, of("a"), 40).await;
    let session = store.session().await;
    store.claim(session, 20).await;
    submit(&store, of("b"), 20).await;
    let given = given(&store, all_of(session, 10)).await;
    assert_eq!((count(&given, 'a'), count(&given, 'b')), (5, 5), "{given}");
}

pub async fn a_group_held_back_by_a_limit_is_owed_nothing_for_that_time(store: TestStore) {
    set(&store, each().weight(1)).await;
    set(&store, group("b").weight(1).concurrency(1)).await;
    submit(&store, of("a"), 40).await;
    submit(&store, of("b"), 20).await;
    let session = store.session().await;
    let first = given(&store, all_of(session, 20)).await;
    assert_eq!((count(&first, 'a'), count(&first, 'b')), (19, 1), "{first}");
    set(&store, group("b").concurrency(100)).await;
    let given = given(&store, all_of(session, 10)).await;
    assert_eq!((count(&given, 'a'), count(&given, 'b')), (5, 5), "{given}");
}

/// Shows: T9
pub async fn a_group_below_its_minimum_goes_before_the_others(store: TestStore) {
    set(&store, group("a").minimum(2)).await;
    set(&store, group("b").weight(9)).await;
    submit(&store, urgent(of("b")), 20).await;
    let session = store.session().await;
    store.claim(session, 4).await;
    submit(&store, of("a"), 20).await;
    assert_eq!(given(&store, all_of(session, 2)).await, "aa");
    let rest = given(&store, all_of(session, 10)).await;
    assert_eq!((count(&rest, 'a'), count(&rest, 'b')), (1, 9), "weights divide what minimums leave: {rest}");
}

/// Shows: T9
pub async fn a_group_that_falls_below_its_minimum_goes_first_again(store: TestStore) {
    set(&store, group("a").minimum(1)).await;
    submit(&store, of("a"), 9).await;
    submit(&store, urgent(of("b")), 20).await;
    let session = store.session().await;
    let leases: Vec<Lease> = store.claim(session, 9).await.iter().map(|task| task.lease).collect();
    let of_a = store.list(onward_store::TaskFilter { group: Some(name("a")), ..Default::default() }).await;
    for lease in leases.into_iter().filter(|lease| of_a.contains(&lease.task)) {
        store.complete(lease).await;
    }
    assert_eq!(given(&store, all_of(session, 1)).await, "a");
}

/// A minimum that is used in one queue counts in all of them.
pub async fn a_minimum_counts_over_all_queues(store: TestStore) {
    set(&store, group("a").minimum(1)).await;
    let in_queue = |new: NewTask, queue: &str| NewTask { queue: name(queue), ..new };
    submit(&store, in_queue(urgent(of("b")), "q"), 3).await;
    submit(&store, in_queue(of("a"), "q"), 3).await;
    submit(&store, in_queue(of("a"), "r"), 3).await;
    let session = store.session().await;
    let from = |queue: &str, limit| Claim {
        queues: QueueSelection::Only(vec![(name(queue), limit)]),
        ..all_of(session, limit)
    };
    assert_eq!(given(&store, from("r", 1)).await, "a");
    assert_eq!(given(&store, from("q", 1)).await, "b", "its minimum runs in the other queue");
}

pub async fn each_queue_is_shared_for_itself(store: TestStore) {
    set(&store, each().weight(1)).await;
    for queue in ["q", "r"] {
        for group in ["a", "b"] {
            submit(&store, NewTask { queue: name(queue), ..of(group) }, 20).await;
        }
    }
    let session = store.session().await;
    let from = |queue: &str, limit| Claim {
        queues: QueueSelection::Only(vec![(name(queue), limit)]),
        ..all_of(session, limit)
    };
    store.claimed(from("q", 20)).await;
    let given = given(&store, from("r", 6)).await;
    assert_eq!((count(&given, 'a'), count(&given, 'b')), (3, 3), "{given}");
}

/// Shows: T9
pub async fn without_weights_and_minimums_tasks_start_in_queue_order(store: TestStore) {
    set(&store, each().weight(1)).await;
    submit(&store, of("a"), 10).await;
    submit(&store, of("b"), 10).await;
    submit(&store, task("k"), 1).await;
    let session = store.session().await;
    assert_eq!(given(&store, all_of(session, 4)).await, "ab-a");
    set(&store, each().unlimited()).await;
    assert_eq!(given(&store, all_of(session, 10)).await, "aaaaaaaabb");
}

/// Shows: T9
pub async fn shares_survive_a_restart(mut store: TestStore) {
    set(&store, group("a").weight(3)).await;
    for group in ["a", "b"] {
        submit(&store, of(group), 40).await;
    }
    let session = store.session().await;
    let before = given(&store, all_of(session, 7)).await;
    store.reopen().await;
    let session = store.session().await;
    let given = before + &given(&store, all_of(session, 14)).await;
    assert_eq!((count(&given, 'a'), count(&given, 'b')), (16, 5), "{given}");
}

pub async fn peek_returns_a_task_of_the_group_whose_turn_it_is(store: TestStore) {
    set(&store, each().weight(1)).await;
    submit(&store, of("a"), 3).await;
    submit(&store, of("b"), 1).await;
    let session = store.session().await;
    store.claim(session, 1).await;
    let next = store.inner().peek(all_of(session, 1)).await.expect("the store can be read");
    assert_eq!(next.and_then(|task| task.group), Some(name("b")));
}

pub async fn peek_passes_over_expired_tasks_of_the_group_whose_turn_it_is(store: TestStore) {
    set(&store, each().weight(1)).await;
    submit(&store, of("b"), 2).await;
    let session = store.session().await;
    store.claim(session, 1).await;
    let short = Some(Ttl { duration: Duration::from_secs(1), from: TtlFrom::Submission });
    submit(&store, NewTask { ttl: short, ..of("a") }, 3).await;
    let last = store.submit_new(of("a")).await;
    store.advance(Duration::from_secs(1));
    let next = store.inner().peek(all_of(session, 1)).await.expect("the store can be read");
    assert_eq!(next.map(|task| task.id), Some(last));
}

pub async fn weights_and_minimums_are_shown(store: TestStore) {
    let limit = set(&store, group("a").weight(3).minimum(2)).await;
    assert_eq!((limit.weight, limit.minimum), (Some(3), Some(2)));
    let limits = store.inner().limits().await.expect("the store can be read");
    assert_eq!(limits.iter().map(|record| record.limit).collect::<Vec<_>>(), [limit]);
}

pub async fn weights_and_minimums_out_of_their_range_are_refused_with_the_range(store: TestStore) {
    for (set, expected) in [
        (group("a").weight(0), "1 to 1000"),
        (group("a").weight(1001), "1 to 1000"),
        (group("a").minimum(0), "1 to 1000000"),
        (SetLimit::new(LimitScope::Queue(name("q"))).weight(2), "only groups"),
    ] {
        let text = store.invalid(Write::SetLimit(set)).await;
        assert!(text.contains(expected), "{text}");
    }
}

/// Shows: B6
pub async fn why_says_how_many_groups_go_before_a_task(store: TestStore) {
    set(&store, each().weight(1)).await;
    submit(&store, of("a"), 1).await;
    let last = store.submit_new(of("a")).await;
    submit(&store, of("b"), 5).await;
    submit(&store, of("c"), 5).await;
    let session = store.session().await;
    store.claim(session, 1).await;
    let reasons = store.inner().why(last).await.expect("the store can be read");
    assert_eq!(reasons.as_ref().and_then(|reasons| reasons.first()), Some(&WaitReason::Turn { groups: 2 }));
}

/// Returns the reasons why a task waits, and whether a claim of everything takes the task.
async fn why_and_claim(store: &TestStore, task: TaskId) -> (Vec<WaitReason>, bool) {
    let session = store.session().await;
    let reasons = store.inner().why(task).await.ok().flatten().unwrap_or_default();
    (reasons, numbers(&store.claim(session, 10).await).contains(&task))
}

/// Sets a limit on all tasks. Returns the reason that others can use it up first.
async fn limit_all(store: &TestStore, concurrency: u32) -> WaitReason {
    set(store, SetLimit::new(LimitScope::All).concurrency(concurrency)).await;
    WaitReason::Contended { limit_on: LimitScope::All, room: u64::from(concurrency) }
}

/// The order of sort keys is `a`, the task, `b`. The start of `a` puts its group behind `b`.
///
/// Shows: B6
pub async fn why_names_a_limit_that_a_group_uses_up_between_two_tasks_of_another(store: TestStore) {
    set(&store, each().weight(1)).await;
    let contended = limit_all(&store, 2).await;
    submit(&store, of("a"), 1).await;
    let waiting = store.submit_new(NewTask { kind: name("other"), ..of("a") }).await;
    submit(&store, of("b"), 1).await;
    assert_eq!(why_and_claim(&store, waiting).await, (vec![contended], false));
}

/// The first start of group `a` puts it level with the group of the task, which is more urgent.
///
/// Shows: B6
pub async fn why_names_no_limit_that_a_group_with_a_lower_tag_uses_up_too_late(store: TestStore) {
    set(&store, each().weight(1)).await;
    store.complete(store.running(of("b")).await).await;
    limit_all(&store, 2).await;
    let waiting = store.submit_new(urgent(NewTask { kind: name("other"), ..of("b") })).await;
    submit(&store, of("a"), 2).await;
    assert_eq!(why_and_claim(&store, waiting).await, (Vec::new(), true));
}

/// In strict mode the heavier queue starts a task of group `a`, which then has its minimum.
///
/// Shows: B6
pub async fn why_counts_the_minimum_of_a_group_that_starts_first_in_another_queue(store: TestStore) {
    set(&store, group("a").minimum(1)).await;
    let contended = limit_all(&store, 2).await;
    store.write(Write::SetQueueMode(QueueMode::Strict)).await;
    store.write(Write::SetQueue(SetQueue::new(name("heavy")).weight(2))).await;
    let waiting = store.submit_new(NewTask { kind: name("other"), ..of("a") }).await;
    submit(&store, urgent(of("b")), 1).await;
    assert_eq!(store.inner().why(waiting).await.ok().flatten(), Some(vec![WaitReason::NoWorker]), "it goes first");
    submit(&store, NewTask { queue: name("heavy"), ..of("a") }, 1).await;
    assert_eq!(why_and_claim(&store, waiting).await, (vec![contended], false));
}
