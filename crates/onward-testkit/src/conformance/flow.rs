//! Limits of groups, kinds, queues and the whole store, and their combination.
#![expect(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, Lease, Limit, LimitRecord, LimitScope, NewTask, Outcome, Priority, QueueChoice, QueueMode,
    Rate, Scope, SessionId, SetLimit, SetQueue, StoreReads, TaskFilter, TaskState, WaitReason, Write,
};

use crate::bench::{Bench, LEASE, after, all_of, name, numbers, task};

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

async fn set(bench: &Bench, set: SetLimit) -> Limit {
    match bench.write(Write::SetLimit(set)).await {
        Outcome::LimitSet(limit) => limit,
        other => panic!("the limit should have been set: {other:?}"),
    }
}

async fn submit(bench: &Bench, new: NewTask, tasks: usize) {
    for _ in 0..tasks {
        bench.submit_new(new.clone()).await;
    }
}

/// Limits the group `a`, and submits more tasks in it than the limit allows.
async fn limited(bench: &Bench, concurrency: u32) -> SessionId {
    set(bench, group("a").concurrency(concurrency)).await;
    submit(bench, of("a"), 6).await;
    bench.session().await
}

async fn leases(bench: &Bench, session: SessionId) -> Vec<Lease> {
    bench.claim(session, 100).await.iter().map(|task| task.lease).collect()
}

async fn limits(bench: &Bench) -> Vec<LimitRecord> {
    bench.store().limits().await.expect("the store can be read")
}

/// Returns the groups of the claimed tasks, in their order; `-` for none.
async fn given(bench: &Bench, claim: Claim) -> String {
    let tasks = bench.claimed(claim).await.tasks;
    let groups: Vec<&str> = tasks.iter().map(|task| task.group.as_ref().map_or("-", |group| group.as_str())).collect();
    groups.join("")
}

pub async fn a_task_tells_its_group(bench: Bench) {
    let id = bench.submit_new(of("a")).await;
    let other = bench.submit("k").await;
    let session = bench.session().await;
    let claimed = bench.claim(session, 1).await;
    assert_eq!(claimed.first().and_then(|task| task.group.clone()), Some(name("a")));
    bench.complete(claimed.first().expect("it was claimed").lease).await;
    assert_eq!((bench.record(id).await.group, bench.record(other).await.group), (Some(name("a")), None));
}

pub async fn tasks_are_listed_by_group(bench: Bench) {
    let ended = bench.completed(of("a")).await;
    bench.submit_new(of("b")).await;
    let live = bench.submit_new(of("a")).await;
    let filter = TaskFilter { group: Some(name("a")), ..TaskFilter::default() };
    assert_eq!(bench.list(filter).await, [live, ended]);
}

/// Shows: T9
pub async fn a_group_runs_no_more_tasks_than_its_concurrency(bench: Bench) {
    let (one, other) = (limited(&bench, 3).await, bench.session().await);
    assert_eq!((bench.claim(one, 2).await.len(), bench.claim(other, 10).await.len()), (2, 1));
    assert_eq!(bench.claim(one, 10).await, []);
}

/// Shows: T9
/// Beats: saturated-group
pub async fn a_saturated_group_does_not_hold_up_those_behind_it(bench: Bench) {
    let session = limited(&bench, 1).await;
    submit(&bench, of("b"), 2).await;
    bench.submit("k").await;
    assert_eq!(given(&bench, all_of(session, 10)).await, "abb-");
}

pub async fn a_groups_tasks_keep_the_order_of_their_queue(bench: Bench) {
    let urgent = |new: NewTask| NewTask { priority: Priority::URGENT, ..new };
    submit(&bench, of("a"), 1).await;
    bench.submit("k").await;
    submit(&bench, urgent(of("b")), 1).await;
    submit(&bench, of("c"), 1).await;
    submit(&bench, urgent(of("a")), 1).await;
    let session = bench.session().await;
    assert_eq!(given(&bench, all_of(session, 10)).await, "baa-c");
}

/// Shows: T9
pub async fn a_group_is_counted_over_all_queues_and_kinds(bench: Bench) {
    set(&bench, group("a").concurrency(2)).await;
    bench.submit_new(of("a")).await;
    bench.submit_new(NewTask { queue: name("q"), ..of("a") }).await;
    bench.submit_new(NewTask { kind: name("other"), ..of("a") }).await;
    let session = bench.session().await;
    assert_eq!(bench.claim(session, 10).await.len(), 2);
}

/// Shows: T9
pub async fn limits_of_all_scopes_combine(bench: Bench) {
    set(&bench, SetLimit::new(LimitScope::All).concurrency(5)).await;
    set(&bench, SetLimit::new(LimitScope::Kind(name("k"))).concurrency(4)).await;
    set(&bench, SetLimit::new(LimitScope::Queue(name("default"))).concurrency(3)).await;
    submit(&bench, of("a"), 3).await;
    submit(&bench, NewTask { queue: name("q"), ..task("k") }, 3).await;
    submit(&bench, NewTask { queue: name("q"), ..task("other") }, 3).await;
    set(&bench, group("a").concurrency(2)).await;
    let session = bench.session().await;
    let claimed = bench.claim(session, 10).await;
    let of_kind = |kind: &str| claimed.iter().filter(|task| task.kind.as_str() == kind).count();
    let of_a = claimed.iter().filter(|task| task.group.is_some()).count();
    assert_eq!((claimed.len(), of_kind("k"), of_a), (5, 4, 2));
}

pub async fn a_limit_on_a_kind_does_not_hold_up_others(bench: Bench) {
    set(&bench, SetLimit::new(LimitScope::Kind(name("k"))).concurrency(1)).await;
    submit(&bench, task("k"), 2).await;
    submit(&bench, task("other"), 2).await;
    let session = bench.session().await;
    for mode in QueueMode::ALL {
        let choice = QueueChoice { mode: Some(mode), ..QueueChoice::default() };
        let claimed = bench.claimed(Claim { choice, ..all_of(session, 10) }).await.tasks;
        assert_eq!(claimed.len(), 3, "{mode}");
        for task in claimed {
            bench.release(task.lease, Duration::ZERO).await;
        }
    }
}

pub async fn the_concurrency_of_a_queue_is_one_setting_under_two_names(bench: Bench) {
    let scope = LimitScope::Queue(name("q"));
    bench.write(Write::SetQueue(SetQueue::new(name("q")).concurrency(2))).await;
    let limit = set(&bench, SetLimit::new(scope.clone()).rate(ten_a_second(5))).await;
    assert_eq!(limit.concurrency, Some(2));
    set(&bench, SetLimit::new(scope).concurrency(3)).await;
    assert_eq!(bench.queue("q").await.and_then(|queue| queue.concurrency), Some(3));
}

/// Shows: T9
pub async fn a_rate_lets_a_burst_start_and_then_what_time_brings(bench: Bench) {
    set(&bench, group("a").rate(ten_a_second(2))).await;
    submit(&bench, of("a"), 9).await;
    let session = bench.session().await;
    assert_eq!(bench.claim(session, 10).await.len(), 2);
    bench.advance(TENTH - Duration::from_micros(1));
    assert_eq!(bench.claim(session, 10).await.len(), 0);
    bench.advance(Duration::from_micros(1));
    assert_eq!(bench.claim(session, 10).await.len(), 1);
    bench.advance(TENTH * 5);
    assert_eq!(bench.claim(session, 10).await.len(), 2, "what is not used is lost beyond the burst");
}

pub async fn a_rate_of_a_queue_a_kind_and_everything_holds(bench: Bench) {
    for scope in [LimitScope::Queue(name("default")), LimitScope::Kind(name("k")), LimitScope::All] {
        set(&bench, SetLimit::new(scope.clone()).rate(ten_a_second(2))).await;
        submit(&bench, task("k"), 4).await;
        let session = bench.session().await;
        let first = bench.claim(session, 10).await.len();
        bench.advance(TENTH);
        assert_eq!((first, bench.claim(session, 10).await.len()), (2, 1), "{scope}");
        set(&bench, SetLimit::new(scope).unlimited()).await;
        assert_eq!(bench.claim(session, 10).await.len(), 1);
    }
}

pub async fn a_rate_holds_for_all_sessions_together(bench: Bench) {
    set(&bench, group("a").rate(ten_a_second(3))).await;
    submit(&bench, of("a"), 9).await;
    let (one, other) = (bench.session().await, bench.session().await);
    assert_eq!((bench.claim(one, 2).await.len(), bench.claim(other, 10).await.len()), (2, 1));
}

pub async fn a_claim_tells_when_the_next_token_comes(bench: Bench) {
    for set_limit in [group("a").rate(ten_a_second(1)), SetLimit::new(LimitScope::All).rate(ten_a_second(1))] {
        let scope = set_limit.scope.clone();
        set(&bench, set_limit).await;
        submit(&bench, of("a"), 2).await;
        let session = bench.session_for(LEASE * 10).await;
        assert_eq!(bench.claimed(all_of(session, 10)).await.next_due, Some(TENTH), "{scope}");
        set(&bench, SetLimit::new(scope).unlimited()).await;
        bench.claim(session, 10).await;
    }
}

/// Shows: B6
pub async fn a_task_under_a_rate_says_which_and_when_the_next_token_comes(bench: Bench) {
    let rate = ten_a_second(1);
    set(&bench, group("a").rate(rate)).await;
    bench.running(of("a")).await;
    let waiting = bench.submit_new(of("a")).await;
    let reasons = async || bench.store().why(waiting).await.ok().flatten().unwrap_or_default();
    for (passed, next) in [(TENTH / 4, TENTH * 3 / 4), (TENTH / 4, TENTH / 2)] {
        bench.advance(passed);
        assert_eq!(reasons().await, [WaitReason::Rate { limit_on: LimitScope::Group(name("a")), rate, next }]);
    }
    bench.advance(TENTH / 2);
    assert!(!reasons().await.iter().any(|reason| matches!(reason, WaitReason::Rate { .. })), "there is a token");
}

pub async fn nobody_is_woken_for_a_token_that_nothing_waits_for(bench: Bench) {
    set(&bench, group("a").rate(ten_a_second(1))).await;
    submit(&bench, of("a"), 2).await;
    let session = bench.session().await;
    bench.claim(session, 10).await;
    let waiting = bench.list(TaskFilter { states: vec![TaskState::Waiting], ..TaskFilter::default() }).await;
    bench.cancel(waiting[0]).await;
    assert_eq!(bench.claimed(all_of(session, 10)).await.next_due, Some(LEASE));
}

/// Each attempt counts as a start under a rate, so a held retry needs a token too.
pub async fn a_task_under_a_rate_is_not_held_on_to(bench: Bench) {
    set(&bench, group("a").rate(ten_a_second(1))).await;
    let lease = bench.running(of("a")).await;
    let hold = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true };
    let failed = bench.fail(lease, hold).await;
    assert_eq!((failed.state, failed.lease), (TaskState::Waiting, None));
    assert_eq!(bench.claim(lease.session, 10).await, []);
}

/// Shows: T9
pub async fn each_group_whose_name_begins_so_has_the_limit_for_itself(bench: Bench) {
    set(&bench, groups("tenant-").concurrency(1)).await;
    for group in ["tenant-1", "tenant-1", "tenant-2", "tenant-2", "other", "other"] {
        bench.submit_new(of(group)).await;
    }
    let session = bench.session().await;
    assert_eq!(given(&bench, all_of(session, 10)).await, "tenant-1tenant-2otherother");
}

pub async fn the_limit_nearest_to_a_groups_name_counts_alone(bench: Bench) {
    set(&bench, groups("").concurrency(1)).await;
    set(&bench, groups("ten").concurrency(2)).await;
    set(&bench, group("tenant").rate(ten_a_second(3))).await;
    for name in ["other", "tender", "tenant"] {
        submit(&bench, of(name), 5).await;
    }
    let session = bench.session().await;
    assert_eq!(given(&bench, all_of(session, 100)).await, "othertendertendertenanttenanttenant");
}

/// Shows: T9
pub async fn a_limit_is_changed_while_tasks_run_and_counts_them(bench: Bench) {
    submit(&bench, of("a"), 6).await;
    let session = bench.session().await;
    bench.claim(session, 2).await;
    set(&bench, group("a").concurrency(3)).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
    set(&bench, group("a").concurrency(1)).await;
    assert_eq!(bench.claim(session, 10).await.len(), 0);
    set(&bench, group("a").concurrency(4)).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
    set(&bench, group("a").unlimited()).await;
    assert_eq!(bench.claim(session, 10).await.len(), 2);
}

pub async fn a_limit_taken_away_lets_what_the_name_begins_with_count(bench: Bench) {
    set(&bench, groups("").concurrency(2)).await;
    let session = limited(&bench, 1).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
    assert_eq!(set(&bench, group("a").unlimited()).await, Limit::default());
    assert_eq!(bench.claim(session, 10).await.len(), 1);
}

pub async fn what_is_not_named_of_a_limit_stays(bench: Bench) {
    set(&bench, group("a").concurrency(3)).await;
    let limit = set(&bench, group("a").rate(ten_a_second(1))).await;
    assert_eq!(limit, Limit { concurrency: Some(3), rate: Some(ten_a_second(1)), ..Limit::default() });
}

/// Checks that exactly one more task may run after an attempt ended.
async fn gives_room(bench: &Bench, session: SessionId) {
    let others = bench.session().await;
    assert_eq!(bench.claim(others, 10).await.len(), 1);
    assert_eq!(bench.claim(session, 10).await, []);
}

/// Returns whether the end of a running task under a limit notifies workers, while another task
/// waits under the same limit.
async fn an_end_is_told(bench: &Bench, session: SessionId, scope: LimitScope, concurrency: u32) -> bool {
    set(bench, SetLimit::new(scope.clone()).concurrency(concurrency)).await;
    submit(bench, of("a"), 2).await;
    let lease = bench.claim(session, 1).await[0].lease;
    let before = bench.store().changes().hint().work;
    bench.complete(lease).await;
    let is_told = bench.store().changes().hint().work > before;
    set(bench, SetLimit::new(scope).unlimited()).await;
    bench.complete(leases(bench, session).await[0]).await;
    is_told
}

fn every_scope() -> [LimitScope; 5] {
    let (queue, kind) = (LimitScope::Queue(name("default")), LimitScope::Kind(name("k")));
    [LimitScope::All, queue, kind, LimitScope::Group(name("a")), LimitScope::Groups("a".to_owned())]
}

pub async fn an_end_where_a_limit_was_reached_hints_at_work(bench: Bench) {
    let session = bench.session().await;
    for scope in every_scope() {
        assert!(an_end_is_told(&bench, session, scope.clone(), 1).await, "{scope}");
    }
}

/// Without this rule every end would make every worker look for work that cannot exist.
pub async fn an_end_where_no_limit_was_reached_hints_at_no_work(bench: Bench) {
    let session = bench.session().await;
    for scope in every_scope() {
        assert!(!an_end_is_told(&bench, session, scope.clone(), 2).await, "{scope}");
    }
}

pub async fn every_end_of_an_attempt_gives_room_in_its_group(bench: Bench) {
    let session = limited(&bench, 2).await;
    submit(&bench, of("a"), 6).await;
    let lease = leases(&bench, session).await[0];
    bench.complete(lease).await;
    gives_room(&bench, session).await;
    let running = bench.list(TaskFilter { states: vec![TaskState::Running], ..TaskFilter::default() }).await;
    assert_eq!(running.len(), 2);
}

pub async fn a_failure_gives_room_in_its_group(bench: Bench) {
    let session = limited(&bench, 2).await;
    let leases = leases(&bench, session).await;
    bench.fail(leases[0], after(Duration::from_secs(60))).await;
    gives_room(&bench, session).await;
    bench.fail(leases[1], AfterFailure::Dead).await;
    gives_room(&bench, session).await;
}

pub async fn a_release_gives_room_in_its_group(bench: Bench) {
    let session = limited(&bench, 2).await;
    let leases = leases(&bench, session).await;
    bench.release(leases[0], Duration::from_secs(60)).await;
    gives_room(&bench, session).await;
}

pub async fn a_lapsed_session_gives_room_in_its_group(bench: Bench) {
    let session = limited(&bench, 2).await;
    bench.claim(session, 10).await;
    bench.lapse().await;
    let other = bench.session().await;
    assert_eq!(bench.claim(other, 10).await.len(), 2);
}

/// Shows: T14
pub async fn a_paused_group_waits_and_the_others_do_not(bench: Bench) {
    let scope = Scope::Group(name("a"));
    bench.pause(scope.clone(), None).await;
    submit(&bench, of("a"), 1).await;
    submit(&bench, of("b"), 1).await;
    let session = bench.session().await;
    assert_eq!(given(&bench, all_of(session, 10)).await, "b");
    bench.done(Write::Resume { scope }).await;
    assert_eq!(given(&bench, all_of(session, 10)).await, "a");
}

/// Shows: T14
pub async fn a_pause_of_a_group_ends_at_its_moment(bench: Bench) {
    submit(&bench, of("a"), 1).await;
    bench.pause(Scope::Group(name("a")), Some(bench.now().plus(TENTH))).await;
    let session = bench.session().await;
    assert_eq!(bench.claimed(all_of(session, 10)).await.next_due, Some(TENTH));
    bench.advance(TENTH);
    assert_eq!(given(&bench, all_of(session, 10)).await, "a");
}

pub async fn a_pause_and_a_limit_of_a_group_combine(bench: Bench) {
    let session = limited(&bench, 1).await;
    let scope = Scope::Group(name("a"));
    let leases = leases(&bench, session).await;
    bench.pause(scope.clone(), None).await;
    bench.complete(leases[0]).await;
    assert_eq!(bench.claim(session, 10).await, []);
    bench.done(Write::Resume { scope }).await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
}

pub async fn groups_wait_fairly_where_queues_take_turns(bench: Bench) {
    set(&bench, groups("").concurrency(1)).await;
    for queue in ["q", "r"] {
        submit(&bench, NewTask { queue: name(queue), ..of("a") }, 3).await;
        submit(&bench, NewTask { queue: name(queue), ..of(queue) }, 3).await;
    }
    let session = bench.session().await;
    for mode in QueueMode::ALL {
        let choice = QueueChoice { mode: Some(mode), ..QueueChoice::default() };
        let claimed = bench.claimed(Claim { choice, ..all_of(session, 10) }).await.tasks;
        let mut groups: Vec<String> =
            claimed.iter().filter_map(|task| Some(task.group.as_ref()?.to_string())).collect();
        groups.sort();
        assert_eq!(groups, ["a", "q", "r"], "{mode}");
        for task in claimed {
            bench.release(task.lease, Duration::ZERO).await;
        }
    }
}

pub async fn a_look_passes_over_a_group_that_is_held_back(bench: Bench) {
    let session = limited(&bench, 1).await;
    bench.claim(session, 1).await;
    let peek =
        async || bench.store().peek(all_of(session, 1)).await.expect("the store can be read").map(|task| task.id);
    assert_eq!(peek().await, None);
    let other = bench.submit_new(of("b")).await;
    assert_eq!(peek().await, Some(other));
}

pub async fn a_look_sees_that_a_token_has_come(bench: Bench) {
    set(&bench, group("a").rate(ten_a_second(1))).await;
    submit(&bench, of("a"), 2).await;
    let session = bench.session().await;
    let first = numbers(&bench.claim(session, 10).await);
    bench.advance(TENTH);
    let peeked = bench.store().peek(all_of(session, 1)).await.expect("the store can be read").map(|task| task.id);
    assert!(peeked.is_some_and(|task| task != first[0]));
}

pub async fn limits_are_shown_with_how_far_they_are_used(bench: Bench) {
    set(&bench, groups("tenant-").concurrency(4)).await;
    set(&bench, group("a").concurrency(2).rate(ten_a_second(5))).await;
    submit(&bench, of("a"), 1).await;
    bench.start_one().await;
    let limit = |scope, concurrency, rate, running, tokens| LimitRecord {
        scope,
        limit: Limit { concurrency, rate, ..Limit::default() },
        running,
        tokens,
    };
    let of_a = limit(LimitScope::Group(name("a")), Some(2), Some(ten_a_second(5)), Some(1), Some(4));
    assert_eq!(limits(&bench).await, [of_a, limit(LimitScope::Groups("tenant-".into()), Some(4), None, None, None)]);
}

pub async fn limits_out_of_their_range_are_refused_with_the_range(bench: Bench) {
    let slow = Rate { per: Duration::from_secs(31 * 24 * 3600), ..ten_a_second(1) };
    for (set, range) in [
        (group("a").concurrency(0), "1 to 1000000"),
        (group("a").rate(Rate { tasks: 0, ..ten_a_second(1) }), "1 to 1000000"),
        (group("a").rate(ten_a_second(0)), "1 to 1000000"),
        (group("a").rate(slow), "1 ms to 30 days"),
        (group("a"), "name a concurrency or a rate, or for groups a weight or a minimum"),
    ] {
        let text = bench.invalid(Write::SetLimit(set)).await;
        assert!(text.contains(range) && text.contains("`a`"), "{text}");
    }
    assert_eq!(limits(&bench).await, []);
}

pub async fn a_refused_member_undoes_what_a_group_counts(bench: Bench) {
    let session = limited(&bench, 2).await;
    let claim = Write::Claim(all_of(session, 10));
    let refused = Write::Retry { task: onward_store::TaskId(1000) };
    bench.refused(Write::All(vec![claim, refused])).await;
    assert_eq!(bench.claim(session, 10).await.len(), 2);
    assert_eq!(limits(&bench).await.first().and_then(|limit| limit.running), Some(2));
}

pub async fn a_deleted_queue_has_no_limit(bench: Bench) {
    set(&bench, SetLimit::new(LimitScope::Queue(name("q"))).concurrency(1).rate(ten_a_second(1))).await;
    bench.done(Write::DeleteQueue { queue: name("q") }).await;
    assert_eq!(limits(&bench).await, []);
}

/// Shows: T9
pub async fn limits_and_what_they_count_survive_a_restart(mut bench: Bench) {
    set(&bench, groups("").concurrency(1).rate(ten_a_second(2))).await;
    submit(&bench, of("a"), 4).await;
    let session = bench.session().await;
    assert_eq!(bench.claim(session, 10).await.len(), 1);
    bench.reopen().await;
    let session = bench.session().await;
    let lease = leases(&bench, session).await[0];
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(bench.claim(session, 10).await, [], "the bucket is as empty as it was");
    bench.advance(TENTH);
    assert_eq!(bench.claim(session, 10).await.len(), 1);
}
