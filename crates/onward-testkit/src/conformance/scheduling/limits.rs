//! Limits of groups, kinds, queues and the whole store, and their combination.
#![expect(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, Lease, Limit, LimitRecord, LimitScope, NewTask, Outcome, Priority, QueueChoice, QueueMode,
    Rate, Scope, SessionId, SetLimit, SetQueue, StoreReads, TaskFilter, TaskId, TaskState, WaitReason, Write,
};

use crate::test_store::{LEASE, TestStore, after, all_of, name, numbers, task};

const TENTH: Duration = Duration::from_millis(100);

fn of(group: &str) -> NewTask {
    NewTask { group: Some(name(group)), ..task("k") }
}

fn group(group: &str) -> SetLimit {
    SetLimit::group(name(group))
}

fn groups(beginning: &str) -> SetLimit {
    SetLimit::new(LimitScope::Groups(beginning.to_owned()))
}

/// Returns a rate of ten tasks a second with a burst of this size.
fn ten_a_second(burst: u32) -> Rate {
    Rate { tasks: 10, per: Duration::from_secs(1), burst }
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

/// Limits the group `a`, and submits more tasks in it than the limit allows.
async fn limited(store: &TestStore, concurrency: u32) -> SessionId {
    set(store, group("a").concurrency(concurrency)).await;
    submit(store, of("a"), 6).await;
    store.session().await
}

async fn leases(store: &TestStore, session: SessionId) -> Vec<Lease> {
    store.claim(session, 100).await.iter().map(|task| task.lease).collect()
}

async fn limits(store: &TestStore) -> Vec<LimitRecord> {
    store.inner().limits().await.expect("the store can be read")
}

/// Returns the groups of the claimed tasks, in their order; `-` for none.
async fn given(store: &TestStore, claim: Claim) -> String {
    let tasks = store.claimed(claim).await.tasks;
    let groups: Vec<&str> = tasks.iter().map(|task| task.group.as_ref().map_or("-", |group| group.as_str())).collect();
    groups.join("")
}

pub async fn a_task_record_has_its_group(store: TestStore) {
    let id = store.submit_new(of("a")).await;
    let other = store.submit("k").await;
    let session = store.session().await;
    let claimed = store.claim(session, 1).await;
    assert_eq!(claimed.first().and_then(|task| task.group.clone()), Some(name("a")));
    store.complete(claimed.first().expect("it was claimed").lease).await;
    assert_eq!((store.record(id).await.group, store.record(other).await.group), (Some(name("a")), None));
}

pub async fn tasks_are_listed_by_group(store: TestStore) {
    let ended = store.completed(of("a")).await;
    store.submit_new(of("b")).await;
    let live = store.submit_new(of("a")).await;
    let filter = TaskFilter { group: Some(name("a")), ..TaskFilter::default() };
    assert_eq!(store.list(filter).await, [live, ended]);
}

/// Shows: T9
pub async fn a_group_runs_no_more_tasks_than_its_concurrency(store: TestStore) {
    let (one, other) = (limited(&store, 3).await, store.session().await);
    assert_eq!((store.claim(one, 2).await.len(), store.claim(other, 10).await.len()), (2, 1));
    assert_eq!(store.claim(one, 10).await, []);
}

/// Shows: T9
/// Beats: saturated-group
pub async fn a_saturated_group_does_not_delay_tasks_behind_it(store: TestStore) {
    let session = limited(&store, 1).await;
    submit(&store, of("b"), 2).await;
    store.submit("k").await;
    assert_eq!(given(&store, all_of(session, 10)).await, "abb-");
}

pub async fn a_groups_tasks_keep_the_order_of_their_queue(store: TestStore) {
    let urgent = |new: NewTask| NewTask { priority: Priority::URGENT, ..new };
    submit(&store, of("a"), 1).await;
    store.submit("k").await;
    submit(&store, urgent(of("b")), 1).await;
    submit(&store, of("c"), 1).await;
    submit(&store, urgent(of("a")), 1).await;
    let session = store.session().await;
    assert_eq!(given(&store, all_of(session, 10)).await, "baa-c");
}

/// Shows: T9
pub async fn a_group_is_counted_over_all_queues_and_kinds(store: TestStore) {
    set(&store, group("a").concurrency(2)).await;
    store.submit_new(of("a")).await;
    store.submit_new(NewTask { queue: name("q"), ..of("a") }).await;
    store.submit_new(NewTask { kind: name("other"), ..of("a") }).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 10).await.len(), 2);
}

/// Shows: T9
pub async fn limits_of_all_scopes_combine(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::All).concurrency(5)).await;
    set(&store, SetLimit::new(LimitScope::Kind(name("k"))).concurrency(4)).await;
    set(&store, SetLimit::new(LimitScope::Queue(name("default"))).concurrency(3)).await;
    submit(&store, of("a"), 3).await;
    submit(&store, NewTask { queue: name("q"), ..task("k") }, 3).await;
    submit(&store, NewTask { queue: name("q"), ..task("other") }, 3).await;
    set(&store, group("a").concurrency(2)).await;
    let session = store.session().await;
    let claimed = store.claim(session, 10).await;
    let of_kind = |kind: &str| claimed.iter().filter(|task| task.kind.as_str() == kind).count();
    let of_a = claimed.iter().filter(|task| task.group.is_some()).count();
    assert_eq!((claimed.len(), of_kind("k"), of_a), (5, 4, 2));
}

pub async fn a_limit_on_a_kind_does_not_delay_others(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::Kind(name("k"))).concurrency(1)).await;
    submit(&store, task("k"), 2).await;
    submit(&store, task("other"), 2).await;
    let session = store.session().await;
    for mode in QueueMode::ALL {
        let choice = QueueChoice { mode: Some(mode), ..QueueChoice::default() };
        let claimed = store.claimed(Claim { choice, ..all_of(session, 10) }).await.tasks;
        assert_eq!(claimed.len(), 3, "{mode}");
        for task in claimed {
            store.release(task.lease, Duration::ZERO).await;
        }
    }
}

pub async fn the_concurrency_of_a_queue_is_one_setting_under_two_names(store: TestStore) {
    let scope = LimitScope::Queue(name("q"));
    store.write(Write::SetQueue(SetQueue::new(name("q")).concurrency(2))).await;
    let limit = set(&store, SetLimit::new(scope.clone()).rate(ten_a_second(5))).await;
    assert_eq!(limit.concurrency, Some(2));
    set(&store, SetLimit::new(scope).concurrency(3)).await;
    assert_eq!(store.queue("q").await.and_then(|queue| queue.concurrency), Some(3));
}

/// Shows: T9
pub async fn a_rate_lets_a_burst_start_and_then_what_time_brings(store: TestStore) {
    set(&store, group("a").rate(ten_a_second(2))).await;
    submit(&store, of("a"), 9).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 10).await.len(), 2);
    store.advance(TENTH - Duration::from_micros(1));
    assert_eq!(store.claim(session, 10).await.len(), 0);
    store.advance(Duration::from_micros(1));
    assert_eq!(store.claim(session, 10).await.len(), 1);
    store.advance(TENTH * 5);
    assert_eq!(store.claim(session, 10).await.len(), 2, "what is not used is lost beyond the burst");
}

pub async fn a_rate_of_a_queue_a_kind_and_everything_holds(store: TestStore) {
    for scope in [LimitScope::Queue(name("default")), LimitScope::Kind(name("k")), LimitScope::All] {
        set(&store, SetLimit::new(scope.clone()).rate(ten_a_second(2))).await;
        submit(&store, task("k"), 4).await;
        let session = store.session().await;
        let first = store.claim(session, 10).await.len();
        store.advance(TENTH);
        assert_eq!((first, store.claim(session, 10).await.len()), (2, 1), "{scope}");
        set(&store, SetLimit::new(scope).unlimited()).await;
        assert_eq!(store.claim(session, 10).await.len(), 1);
    }
}

pub async fn a_rate_holds_for_all_sessions_together(store: TestStore) {
    set(&store, group("a").rate(ten_a_second(3))).await;
    submit(&store, of("a"), 9).await;
    let (one, other) = (store.session().await, store.session().await);
    assert_eq!((store.claim(one, 2).await.len(), store.claim(other, 10).await.len()), (2, 1));
}

pub async fn a_claim_returns_when_the_next_token_comes(store: TestStore) {
    for set_limit in [group("a").rate(ten_a_second(1)), SetLimit::new(LimitScope::All).rate(ten_a_second(1))] {
        let scope = set_limit.scope.clone();
        set(&store, set_limit).await;
        submit(&store, of("a"), 2).await;
        let session = store.session_for(LEASE * 10).await;
        assert_eq!(store.claimed(all_of(session, 10)).await.next_due, Some(TENTH), "{scope}");
        set(&store, SetLimit::new(scope).unlimited()).await;
        store.claim(session, 10).await;
    }
}

/// Shows: B6
pub async fn why_names_the_rate_and_when_its_next_token_comes(store: TestStore) {
    let rate = ten_a_second(1);
    set(&store, group("a").rate(rate)).await;
    store.running(of("a")).await;
    let waiting = store.submit_new(of("a")).await;
    let reasons = async || store.inner().why(waiting).await.ok().flatten().unwrap_or_default();
    for (passed, next) in [(TENTH / 4, TENTH * 3 / 4), (TENTH / 4, TENTH / 2)] {
        store.advance(passed);
        assert_eq!(reasons().await, [WaitReason::Rate { limit_on: LimitScope::Group(name("a")), rate, next }]);
    }
    store.advance(TENTH / 2);
    assert!(!reasons().await.iter().any(|reason| matches!(reason, WaitReason::Rate { .. })), "there is a token");
}

/// Returns a rate of one task a minute with a burst of this size.
fn one_a_minute(burst: u32) -> Rate {
    Rate { tasks: 1, per: Duration::from_secs(60), burst }
}

/// Shows: T9
pub async fn a_faster_rate_holds_at_once_for_tokens_that_a_slower_one_took(store: TestStore) {
    let session = store.session().await;
    let scopes = [LimitScope::All, LimitScope::Kind(name("k")), LimitScope::Queue(name("default"))];
    for scope in scopes.into_iter().chain([LimitScope::Group(name("a")), LimitScope::Groups("a".to_owned())]) {
        let set_rate = |rate| SetLimit::new(scope.clone()).rate(rate);
        set(&store, set_rate(one_a_minute(2))).await;
        submit(&store, of("a"), 2).await;
        let waiting = store.submit_new(of("a")).await;
        let taken = store.claim(session, 10).await.len();
        let rate = ten_a_second(2);
        set(&store, set_rate(rate)).await;
        let reasons = why(&store, waiting).await;
        assert_eq!(reasons[0], WaitReason::Rate { limit_on: scope.clone(), rate, next: TENTH });
        store.advance(TENTH);
        assert_eq!((taken, numbers(&store.claim(session, 10).await)), (2, vec![waiting]), "{scope}");
        set(&store, SetLimit::new(scope.clone()).unlimited()).await;
    }
}

pub async fn a_slower_rate_gives_no_token_for_the_time_of_the_faster_one(store: TestStore) {
    set(&store, group("a").rate(ten_a_second(3))).await;
    submit(&store, of("a"), 5).await;
    let session = store.session_for(LEASE * 10).await;
    assert_eq!(store.claim(session, 10).await.len(), 3);
    set(&store, group("a").rate(one_a_minute(3))).await;
    store.advance(Duration::from_secs(59));
    assert_eq!(store.claim(session, 10).await, []);
    store.advance(Duration::from_secs(1));
    assert_eq!(store.claim(session, 10).await.len(), 1);
}

pub async fn a_group_without_its_own_rate_has_that_of_its_prefix_at_once(store: TestStore) {
    set(&store, groups("").rate(ten_a_second(1))).await;
    set(&store, group("a").rate(one_a_minute(1))).await;
    submit(&store, of("a"), 2).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
    set(&store, group("a").unlimited()).await;
    assert_eq!(store.claim(session, 10).await, []);
    store.advance(TENTH);
    assert_eq!(store.claim(session, 10).await.len(), 1);
}

pub async fn a_rate_that_is_set_again_begins_with_its_burst(store: TestStore) {
    for scope in [LimitScope::Group(name("a")), LimitScope::Groups(String::new()), LimitScope::All] {
        set(&store, SetLimit::new(scope.clone()).rate(one_a_minute(1))).await;
        submit(&store, of("a"), 2).await;
        let session = store.session().await;
        let first = store.claim(session, 10).await.len();
        set(&store, SetLimit::new(scope.clone()).unlimited()).await;
        set(&store, SetLimit::new(scope.clone()).rate(one_a_minute(1))).await;
        assert_eq!((first, store.claim(session, 10).await.len()), (1, 1), "{scope}");
        set(&store, SetLimit::new(scope).unlimited()).await;
    }
}

async fn why(store: &TestStore, task: TaskId) -> Vec<WaitReason> {
    store.inner().why(task).await.ok().flatten().unwrap_or_default()
}

/// Returns the reason that others can use up the room of one limit on everything.
fn contended() -> WaitReason {
    WaitReason::Contended { limit_on: LimitScope::All, room: 1 }
}

/// Shows: B6
pub async fn why_names_a_limit_that_tasks_of_another_sub_queue_use_up_first(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::All).concurrency(1)).await;
    let session = store.session().await;
    let waiting = store.submit_new(of("a")).await;
    assert_eq!(why(&store, waiting).await, [], "it is alone");
    let urgent = store.submit_new(NewTask { priority: Priority::URGENT, ..task("other") }).await;
    assert_eq!([why(&store, waiting).await, why(&store, urgent).await], [vec![contended()], Vec::new()]);
    let taken: Vec<TaskId> = store.claim(session, 10).await.iter().map(|task| task.lease.task).collect();
    assert_eq!(taken, [urgent]);
    set(&store, SetLimit::new(LimitScope::All).concurrency(3)).await;
    assert_eq!(why(&store, waiting).await, [WaitReason::Slot { workers: 1, running: 1 }]);
}

/// Shows: B6
pub async fn why_names_no_limit_that_others_cannot_use_up_first(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::All).concurrency(2)).await;
    set(&store, group("b").concurrency(1)).await;
    store.session().await;
    submit(&store, NewTask { priority: Priority::URGENT, ..of("b") }, 5).await;
    submit(&store, NewTask { priority: Priority::URGENT, ..task("paused") }, 5).await;
    store.pause(Scope::Kind(name("paused")), None).await;
    let waiting = store.submit_new(of("a")).await;
    assert_eq!(why(&store, waiting).await, [], "its limit lets one of the group `b` start, and it has room for two");
}

/// Shows: B6
pub async fn why_names_a_limit_that_other_queues_use_up_first(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::All).concurrency(1)).await;
    store.session().await;
    let earlier = store.submit_new(NewTask { queue: name("earlier"), ..task("k") }).await;
    let waiting = store.submit_new(NewTask { queue: name("later"), ..task("k") }).await;
    let reasons = async || [why(&store, earlier).await, why(&store, waiting).await];
    for (mode, of_earlier) in [(QueueMode::Strict, Vec::new()), (QueueMode::Interleaved, vec![contended()])] {
        store.write(Write::SetQueueMode(mode)).await;
        assert_eq!(reasons().await, [of_earlier, vec![contended()]], "{mode}");
    }
    store.write(Write::SetQueueMode(QueueMode::Strict)).await;
    store.write(Write::SetQueue(SetQueue::new(name("later")).weight(2))).await;
    assert_eq!(reasons().await, [vec![contended()], Vec::new()], "the heavier queue goes first");
}

/// Shows: B6
pub async fn why_names_a_limit_that_a_heavier_queue_uses_up_in_place_of_its_own(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::Kind(name("k"))).concurrency(1)).await;
    set(&store, group("a").concurrency(1)).await;
    store.write(Write::SetQueueMode(QueueMode::Strict)).await;
    store.write(Write::SetQueue(SetQueue::new(name("heavy")).weight(2))).await;
    let session = store.session().await;
    // By itself the queue of the task would start this one, and no other of the group.
    store.submit_new(NewTask { kind: name("other"), priority: Priority::URGENT, ..of("a") }).await;
    let heavy = store.submit_new(NewTask { queue: name("heavy"), ..of("a") }).await;
    let waiting = store.submit("k").await;
    assert_eq!(why(&store, waiting).await, [WaitReason::Contended { limit_on: LimitScope::Kind(name("k")), room: 1 }]);
    assert_eq!(numbers(&store.claim(session, 10).await), [heavy]);
}

pub async fn a_token_for_which_no_task_waits_wakes_no_worker(store: TestStore) {
    set(&store, group("a").rate(ten_a_second(1))).await;
    submit(&store, of("a"), 2).await;
    let session = store.session().await;
    store.claim(session, 10).await;
    let waiting = store.list(TaskFilter { states: vec![TaskState::Waiting], ..TaskFilter::default() }).await;
    store.cancel(waiting[0]).await;
    assert_eq!(store.claimed(all_of(session, 10)).await.next_due, Some(LEASE));
}

/// Each attempt counts as a start under a rate, so a held retry needs a token too.
pub async fn a_task_under_a_rate_is_not_held(store: TestStore) {
    set(&store, group("a").rate(ten_a_second(1))).await;
    let lease = store.running(of("a")).await;
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let failed = store.fail(lease, hold).await;
    assert_eq!((failed.state, failed.lease), (TaskState::Waiting, None));
    assert_eq!(store.claim(lease.session, 10).await, []);
}

/// Shows: T9
pub async fn each_group_with_the_prefix_has_a_limit_of_its_own(store: TestStore) {
    set(&store, groups("tenant-").concurrency(1)).await;
    for group in ["tenant-1", "tenant-1", "tenant-2", "tenant-2", "other", "other"] {
        store.submit_new(of(group)).await;
    }
    let session = store.session().await;
    assert_eq!(given(&store, all_of(session, 10)).await, "tenant-1tenant-2otherother");
}

pub async fn the_limit_nearest_to_a_groups_name_counts_alone(store: TestStore) {
    set(&store, groups("").concurrency(1)).await;
    set(&store, groups("ten").concurrency(2)).await;
    set(&store, group("tenant").rate(ten_a_second(3))).await;
    for name in ["other", "tender", "tenant"] {
        submit(&store, of(name), 5).await;
    }
    let session = store.session().await;
    assert_eq!(given(&store, all_of(session, 100)).await, "othertendertendertenanttenanttenant");
}

/// Shows: T9
pub async fn a_limit_is_changed_while_tasks_run_and_counts_them(store: TestStore) {
    submit(&store, of("a"), 6).await;
    let session = store.session().await;
    store.claim(session, 2).await;
    set(&store, group("a").concurrency(3)).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
    set(&store, group("a").concurrency(1)).await;
    assert_eq!(store.claim(session, 10).await.len(), 0);
    set(&store, group("a").concurrency(4)).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
    set(&store, group("a").unlimited()).await;
    assert_eq!(store.claim(session, 10).await.len(), 2);
}

pub async fn without_its_own_limit_a_group_has_that_of_its_prefix(store: TestStore) {
    set(&store, groups("").concurrency(2)).await;
    let session = limited(&store, 1).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
    assert_eq!(set(&store, group("a").unlimited()).await, Limit::default());
    assert_eq!(store.claim(session, 10).await.len(), 1);
}

pub async fn what_is_not_named_of_a_limit_stays(store: TestStore) {
    set(&store, group("a").concurrency(3)).await;
    let limit = set(&store, group("a").rate(ten_a_second(1))).await;
    assert_eq!(limit, Limit { concurrency: Some(3), rate: Some(ten_a_second(1)), ..Limit::default() });
}

/// Checks that exactly one more task may run after an attempt ended.
async fn gives_room(store: &TestStore, session: SessionId) {
    let others = store.session().await;
    assert_eq!(store.claim(others, 10).await.len(), 1);
    assert_eq!(store.claim(session, 10).await, []);
}

/// Returns true if the end of a running task under a limit notifies workers, while another task
/// waits under the same limit.
async fn an_end_hints_at_work(store: &TestStore, session: SessionId, scope: LimitScope, concurrency: u32) -> bool {
    set(store, SetLimit::new(scope.clone()).concurrency(concurrency)).await;
    submit(store, of("a"), 2).await;
    let lease = store.claim(session, 1).await[0].lease;
    let before = store.inner().changes().hint().work;
    store.complete(lease).await;
    let hints_at_work = store.inner().changes().hint().work > before;
    set(store, SetLimit::new(scope).unlimited()).await;
    store.complete(leases(store, session).await[0]).await;
    hints_at_work
}

fn every_scope() -> [LimitScope; 5] {
    let (queue, kind) = (LimitScope::Queue(name("default")), LimitScope::Kind(name("k")));
    [LimitScope::All, queue, kind, LimitScope::Group(name("a")), LimitScope::Groups("a".to_owned())]
}

pub async fn an_end_where_a_limit_was_reached_hints_at_work(store: TestStore) {
    let session = store.session().await;
    for scope in every_scope() {
        assert!(an_end_hints_at_work(&store, session, scope.clone(), 1).await, "{scope}");
    }
}

/// Without this rule every end would make every worker look for work that cannot exist.
pub async fn an_end_where_no_limit_was_reached_hints_at_no_work(store: TestStore) {
    let session = store.session().await;
    for scope in every_scope() {
        assert!(!an_end_hints_at_work(&store, session, scope.clone(), 2).await, "{scope}");
    }
}

pub async fn every_end_of_an_attempt_gives_room_in_its_group(store: TestStore) {
    let session = limited(&store, 2).await;
    submit(&store, of("a"), 6).await;
    let lease = leases(&store, session).await[0];
    store.complete(lease).await;
    gives_room(&store, session).await;
    let running = store.list(TaskFilter { states: vec![TaskState::Running], ..TaskFilter::default() }).await;
    assert_eq!(running.len(), 2);
}

pub async fn a_failure_gives_room_in_its_group(store: TestStore) {
    let session = limited(&store, 2).await;
    let leases = leases(&store, session).await;
    store.fail(leases[0], after(Duration::from_secs(60))).await;
    gives_room(&store, session).await;
    store.fail(leases[1], AfterFailure::Dead).await;
    gives_room(&store, session).await;
}

pub async fn a_release_gives_room_in_its_group(store: TestStore) {
    let session = limited(&store, 2).await;
    let leases = leases(&store, session).await;
    store.release(leases[0], Duration::from_secs(60)).await;
    gives_room(&store, session).await;
}

pub async fn a_lapsed_session_gives_room_in_its_group(store: TestStore) {
    let session = limited(&store, 2).await;
    store.claim(session, 10).await;
    store.lapse().await;
    let other = store.session().await;
    assert_eq!(store.claim(other, 10).await.len(), 2);
}

/// Shows: T14
pub async fn a_paused_group_waits_and_the_others_do_not(store: TestStore) {
    let scope = Scope::Group(name("a"));
    store.pause(scope.clone(), None).await;
    submit(&store, of("a"), 1).await;
    submit(&store, of("b"), 1).await;
    let session = store.session().await;
    assert_eq!(given(&store, all_of(session, 10)).await, "b");
    store.done(Write::Resume { scope }).await;
    assert_eq!(given(&store, all_of(session, 10)).await, "a");
}

/// Shows: T14
pub async fn a_pause_of_a_group_ends_at_its_moment(store: TestStore) {
    submit(&store, of("a"), 1).await;
    store.pause(Scope::Group(name("a")), Some(store.now().plus(TENTH))).await;
    let session = store.session().await;
    assert_eq!(store.claimed(all_of(session, 10)).await.next_due, Some(TENTH));
    store.advance(TENTH);
    assert_eq!(given(&store, all_of(session, 10)).await, "a");
}

pub async fn a_pause_and_a_limit_of_a_group_combine(store: TestStore) {
    let session = limited(&store, 1).await;
    let scope = Scope::Group(name("a"));
    let leases = leases(&store, session).await;
    store.pause(scope.clone(), None).await;
    store.complete(leases[0]).await;
    assert_eq!(store.claim(session, 10).await, []);
    store.done(Write::Resume { scope }).await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
}

pub async fn groups_wait_fairly_where_queues_take_turns(store: TestStore) {
    set(&store, groups("").concurrency(1)).await;
    for queue in ["q", "r"] {
        submit(&store, NewTask { queue: name(queue), ..of("a") }, 3).await;
        submit(&store, NewTask { queue: name(queue), ..of(queue) }, 3).await;
    }
    let session = store.session().await;
    for mode in QueueMode::ALL {
        let choice = QueueChoice { mode: Some(mode), ..QueueChoice::default() };
        let claimed = store.claimed(Claim { choice, ..all_of(session, 10) }).await.tasks;
        let mut groups: Vec<String> =
            claimed.iter().filter_map(|task| Some(task.group.as_ref()?.to_string())).collect();
        groups.sort();
        assert_eq!(groups, ["a", "q", "r"], "{mode}");
        for task in claimed {
            store.release(task.lease, Duration::ZERO).await;
        }
    }
}

pub async fn peek_passes_over_a_limited_group(store: TestStore) {
    let session = limited(&store, 1).await;
    store.claim(session, 1).await;
    let peek =
        async || store.inner().peek(all_of(session, 1)).await.expect("the store can be read").map(|task| task.id);
    assert_eq!(peek().await, None);
    let other = store.submit_new(of("b")).await;
    assert_eq!(peek().await, Some(other));
}

pub async fn peek_sees_that_a_token_has_come(store: TestStore) {
    set(&store, group("a").rate(ten_a_second(1))).await;
    submit(&store, of("a"), 2).await;
    let session = store.session().await;
    let first = numbers(&store.claim(session, 10).await);
    store.advance(TENTH);
    let peeked = store.inner().peek(all_of(session, 1)).await.expect("the store can be read").map(|task| task.id);
    assert!(peeked.is_some_and(|task| task != first[0]));
}

pub async fn limits_are_shown_with_how_far_they_are_used(store: TestStore) {
    set(&store, groups("tenant-").concurrency(4)).await;
    set(&store, group("a").concurrency(2).rate(ten_a_second(5))).await;
    submit(&store, of("a"), 1).await;
    store.start_one().await;
    let limit = |scope, concurrency, rate, running, tokens| LimitRecord {
        scope,
        limit: Limit { concurrency, rate, ..Limit::default() },
        running,
        tokens,
    };
    let of_a = limit(LimitScope::Group(name("a")), Some(2), Some(ten_a_second(5)), Some(1), Some(4));
    assert_eq!(limits(&store).await, [of_a, limit(LimitScope::Groups("tenant-".into()), Some(4), None, None, None)]);
}

pub async fn limits_out_of_their_range_are_refused_with_the_range(store: TestStore) {
    let slow = Rate { per: Duration::from_secs(31 * 24 * 3600), ..ten_a_second(1) };
    for (set, range) in [
        (group("a").concurrency(0), "1 to 1000000"),
        (group("a").rate(Rate { tasks: 0, ..ten_a_second(1) }), "1 to 1000000"),
        (group("a").rate(ten_a_second(0)), "1 to 1000000"),
        (group("a").rate(slow), "1 ms to 30 days"),
        (group("a"), "set a concurrency or a rate, or for groups a weight or a minimum"),
    ] {
        let text = store.invalid(Write::SetLimit(set)).await;
        assert!(text.contains(range) && text.contains("`a`"), "{text}");
    }
    assert_eq!(limits(&store).await, []);
}

pub async fn a_refused_write_of_an_all_undoes_what_a_group_counts(store: TestStore) {
    let session = limited(&store, 2).await;
    let claim = Write::Claim(all_of(session, 10));
    let refused = Write::Retry { task: TaskId(1000) };
    store.refused(Write::All(vec![claim, refused])).await;
    assert_eq!(store.claim(session, 10).await.len(), 2);
    assert_eq!(limits(&store).await.first().and_then(|limit| limit.running), Some(2));
}

pub async fn a_deleted_queue_has_no_limit(store: TestStore) {
    set(&store, SetLimit::new(LimitScope::Queue(name("q"))).concurrency(1).rate(ten_a_second(1))).await;
    store.done(Write::DeleteQueue { queue: name("q") }).await;
    assert_eq!(limits(&store).await, []);
}

/// Shows: T9
pub async fn limits_and_what_they_count_survive_a_restart(mut store: TestStore) {
    set(&store, groups("").concurrency(1).rate(ten_a_second(2))).await;
    submit(&store, of("a"), 4).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 10).await.len(), 1);
    store.reopen().await;
    let session = store.session().await;
    let lease = leases(&store, session).await[0];
    store.release(lease, Duration::ZERO).await;
    assert_eq!(store.claim(session, 10).await, [], "the bucket is as empty as it was");
    store.advance(TENTH);
    assert_eq!(store.claim(session, 10).await.len(), 1);
}
