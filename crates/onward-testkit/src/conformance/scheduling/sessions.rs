//! Sessions of workers, and the effects when they lapse.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, KindSelection, Lease, NewTask, OpenSession, Outcome, Refusal, Served, SessionId,
    SessionRecord, StoreReads, TaskState, Ttl, TtlFrom, WaitReason, Write, bounds,
};

use crate::test_store::{TestStore, after, all_of, name, task};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);

pub async fn session_numbers_start_at_one_and_grow(store: TestStore) {
    assert_eq!([store.session().await, store.session().await], [SessionId(1), SessionId(2)]);
}

pub async fn a_closed_sessions_number_is_not_used_again(store: TestStore) {
    let session = store.session().await;
    store.done(Write::CloseSession { session }).await;
    assert_eq!(store.session().await, SessionId(2));
}

pub async fn open_sessions_are_shown(store: TestStore) {
    let kinds = KindSelection::matching(vec![name("k")], vec!["mail:".into()]);
    let serves = Served { queues: Some(vec![name("default")]), kinds, code: None };
    let open = OpenSession { serves: serves.clone(), ..OpenSession::new("host:1", SECOND) };
    let opened_at = store.now();
    store.write(Write::OpenSession(open)).await;
    store.submit("k").await;
    store.claim(SessionId(1), 1).await;
    store.advance(SECOND);
    let expected =
        SessionRecord { id: SessionId(1), name: "host:1".into(), opened_at, lease: SECOND, running: 1, serves };
    assert_eq!(store.inner().sessions().await.ok(), Some(vec![expected]));
}

pub async fn a_long_session_name_is_cut(store: TestStore) {
    store.write(Write::OpenSession(OpenSession::new("é".repeat(200), SECOND))).await;
    let sessions = store.inner().sessions().await.unwrap_or_default();
    assert!(sessions.len() == 1 && sessions[0].name.len() <= 128);
}

pub async fn the_shortest_and_the_longest_lease_are_taken(store: TestStore) {
    for lease in [Duration::from_millis(100), Duration::from_secs(24 * 3600)] {
        store.session_for(lease).await;
    }
}

pub async fn a_lease_out_of_range_is_refused(store: TestStore) {
    for lease in [Duration::from_micros(99_999), Duration::from_secs(24 * 3600 + 1)] {
        store.invalid(Write::OpenSession(OpenSession::new("w", lease))).await;
    }
    assert_eq!(store.inner().sessions().await.ok(), Some(vec![]));
}

pub async fn a_session_that_names_too_much_of_what_it_serves_is_refused(store: TestStore) {
    let serves = |names: usize| Served { queues: Some(vec![name("q"); names]), ..Served::default() };
    let open = |names| OpenSession { serves: serves(names), ..OpenSession::new("w", SECOND) };
    store.invalid(Write::OpenSession(open(bounds::SERVED_NAMES + 1))).await;
    store.write(Write::OpenSession(open(bounds::SERVED_NAMES))).await;
    assert_eq!(store.inner().sessions().await.unwrap_or_default().len(), 1);
}

/// Shows: B6
pub async fn why_says_that_no_worker_serves_a_task_until_one_does(store: TestStore) {
    let waiting = store.submit("k").await;
    let reasons = async || store.inner().why(waiting).await.ok().flatten().unwrap_or_default();
    assert_eq!(reasons().await, [WaitReason::NoWorker]);
    let open = async |worker: &str, queue: &str, kind: &str| {
        let serves =
            Served { queues: Some(vec![name(queue)]), kinds: KindSelection::Only(vec![name(kind)]), code: None };
        store.write(Write::OpenSession(OpenSession { serves, ..OpenSession::new(worker, SECOND) })).await;
    };
    open("of-kind", "slow", "k").await;
    open("of-queue", "default", "other").await;
    let missing = WaitReason::NotServed {
        kind: name("k"),
        queue: name("default"),
        kind_served_by: vec!["of-kind".into()],
        queue_served_by: vec!["of-queue".into()],
    };
    assert_eq!(reasons().await, [missing]);
    open("of-both", "default", "k").await;
    assert_eq!(reasons().await, []);
}

/// Shows: B6
pub async fn why_says_that_all_workers_of_a_task_are_busy(store: TestStore) {
    let session = store.session().await;
    store.submit("k").await;
    store.submit("k").await;
    let held = store.claim(session, 2).await;
    let (next, last) = (store.submit("k").await, store.submit("k").await);
    let reasons = async |task| store.inner().why(task).await.ok().flatten().unwrap_or_default();
    let slot = || WaitReason::Slot { workers: 1, running: 2 };
    assert_eq!(reasons(next).await, [slot()]);
    assert_eq!(reasons(last).await, [WaitReason::Behind { tasks: 1 }, slot()]);
    for task in held {
        store.complete(task.lease).await;
    }
    assert_eq!(reasons(next).await, []);
}

/// Shows: B6
pub async fn a_worker_that_is_gone_is_not_waited_for(store: TestStore) {
    store.session().await;
    let waiting = store.submit("k").await;
    let reasons = async || store.inner().why(waiting).await.ok().flatten().unwrap_or_default();
    assert_eq!(reasons().await, []);
    // A live worker would have claimed the task long ago.
    store.advance(LEASE * 2);
    assert_eq!(reasons().await, [WaitReason::NoWorker]);
    store.session().await;
    assert_eq!(reasons().await, []);
}

/// Shows: B6, T6
pub async fn why_says_when_a_waiting_task_expires(store: TestStore) {
    let at = store.now().plus(SECOND * 9);
    let with_deadline = store.submit_new(NewTask { deadline: Some(at), ..task("k") }).await;
    let ttl = Some(Ttl { duration: SECOND * 9, from: TtlFrom::Submission });
    let with_ttl = store.submit_new(NewTask { ttl, ..task("k") }).await;
    let reasons = async |task| store.inner().why(task).await.ok().flatten().unwrap_or_default();
    assert_eq!(reasons(with_deadline).await, [WaitReason::NoWorker, WaitReason::Expires { at, deadline: true }]);
    assert_eq!(reasons(with_ttl).await.last(), Some(&WaitReason::Expires { at, deadline: false }));
    store.advance(SECOND * 9);
    assert_eq!(reasons(with_deadline).await, [WaitReason::Expired { at, deadline: true }, WaitReason::NoWorker]);
    store.sweep().await;
    assert_eq!(reasons(with_deadline).await, [WaitReason::Expired { at, deadline: true }]);
    assert_eq!(reasons(with_ttl).await, [WaitReason::Expired { at, deadline: false }]);
}

pub async fn a_worker_that_serves_something_else_is_not_waited_for(store: TestStore) {
    store.running(task("k")).await;
    let serves = Served { kinds: KindSelection::Only(vec![name("other")]), ..Served::default() };
    store.write(Write::OpenSession(OpenSession { serves, ..OpenSession::new("idle", SECOND) })).await;
    let waiting = store.submit("k").await;
    let reasons = store.inner().why(waiting).await.ok().flatten().unwrap_or_default();
    assert_eq!(reasons, [WaitReason::Slot { workers: 1, running: 1 }]);
}

pub async fn a_renewed_session_keeps_its_tasks(store: TestStore) {
    let lease = store.running(task("k")).await;
    for _ in 0..3 {
        store.advance(LEASE - SECOND);
        store.write(Write::RenewSession { session: lease.session }).await;
        store.sweep().await;
    }
    store.complete(lease).await;
}

pub async fn a_renewal_names_the_tasks_to_be_cancelled(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    let renewed = store.write(Write::RenewSession { session: lease.session }).await;
    assert_eq!(renewed, Outcome::Renewed { cancel: vec![lease.task] });
}

pub async fn a_late_renewal_before_any_sweep_saves_the_tasks(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(LEASE * 9);
    store.write(Write::RenewSession { session: lease.session }).await;
    assert_eq!(store.sweep().await.lost, 0);
    store.complete(lease).await;
}

pub async fn an_unknown_session_is_not_renewed(store: TestStore) {
    let session = SessionId(5);
    assert_eq!(store.refused(Write::RenewSession { session }).await, Refusal::SessionLost(session));
}

pub async fn closing_a_session_gives_its_tasks_back(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.done(Write::CloseSession { session: lease.session }).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts, record.session), (TaskState::Waiting, 0, None));
}

pub async fn closing_a_session_cancels_what_is_to_be_cancelled(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    store.done(Write::CloseSession { session: lease.session }).await;
    assert_eq!(store.state(lease.task).await, TaskState::Cancelled);
}

pub async fn a_closed_session_can_do_nothing_more(store: TestStore) {
    let lease = store.running(task("k")).await;
    let session = lease.session;
    store.done(Write::CloseSession { session }).await;
    let writes =
        [Write::RenewSession { session }, Write::Claim(all_of(session, 1)), Write::Complete { lease, result: None }];
    for write in writes {
        assert_eq!(store.refused(write).await, Refusal::SessionLost(session));
    }
}

pub async fn closing_a_session_that_is_gone_is_done(store: TestStore) {
    for session in [store.session().await, SessionId(44)] {
        store.done(Write::CloseSession { session }).await;
        store.done(Write::CloseSession { session }).await;
    }
}

pub async fn a_lapsed_sessions_tasks_wait_again_at_their_old_position(store: TestStore) {
    let due = store.now();
    let lease = store.running(task("k")).await;
    assert_eq!(store.lapse().await.lost, 1);
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.session, record.attempts), (TaskState::Waiting, None, 1));
    assert_eq!(record.run_at, due);
}

pub async fn a_lease_holds_to_its_last_microsecond(store: TestStore) {
    store.running(task("k")).await;
    store.advance(LEASE - Duration::from_micros(1));
    assert_eq!(store.sweep().await.lost, 0);
}

pub async fn a_lease_below_a_second_lapses_exactly(store: TestStore) {
    let session = store.session_for(Duration::from_millis(150)).await;
    store.submit("k").await;
    store.claim_one(session).await;
    store.advance(Duration::from_micros(149_999));
    assert_eq!(store.sweep().await.lost, 0);
    store.advance(Duration::from_micros(1));
    assert_eq!(store.sweep().await.lost, 1);
}

pub async fn a_lost_lease_leaves_an_error_that_names_the_session(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.lapse().await;
    let errors = store.record(lease.task).await.errors;
    assert_eq!((errors.len(), errors[0].attempt, errors[0].at), (1, 1, store.now()));
    assert!(errors[0].message.contains("the lease of session 1 lapsed"), "{}", errors[0].message);
}

pub async fn a_lapsed_session_can_do_nothing_more(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.lapse().await;
    let late = Write::Complete { lease, result: None };
    assert_eq!(store.refused(late).await, Refusal::SessionLost(lease.session));
    assert_eq!(store.state(lease.task).await, TaskState::Waiting);
}

pub async fn a_lapsed_session_is_no_longer_shown(store: TestStore) {
    store.running(task("k")).await;
    store.lapse().await;
    assert_eq!(store.inner().sessions().await.ok(), Some(vec![]));
}

pub async fn a_late_result_does_not_touch_the_next_attempt(store: TestStore) {
    let late = store.running(task("k")).await;
    store.lapse().await;
    let next = store.start_one().await;
    store.refused(Write::Complete { lease: late, result: Some("late".into()) }).await;
    store.done(Write::Complete { lease: next, result: Some("next".into()) }).await;
    assert_eq!(store.record(next.task).await.result.as_deref(), Some(b"next".as_slice()));
}

pub async fn a_session_that_holds_nothing_does_not_lapse(store: TestStore) {
    let session = store.session().await;
    store.advance(LEASE * 100);
    store.sweep().await;
    assert_eq!(store.claim(session, 1).await, []);
}

/// Without this rule sessions of workers that were killed while idle would pile up.
pub async fn a_session_that_holds_nothing_is_forgotten_long_after_its_lease(store: TestStore) {
    let session = store.session().await;
    let open = async || store.inner().sessions().await.map(|sessions| sessions.len()).ok();
    store.advance(LEASE + bounds::SESSION_KEPT - Duration::from_micros(1));
    store.sweep().await;
    assert_eq!(open().await, Some(1));
    store.advance(Duration::from_micros(1));
    store.sweep().await;
    assert_eq!(open().await, Some(0));
    for late in [Write::RenewSession { session }, Write::Claim(all_of(session, 1)), Write::Retire { session }] {
        assert_eq!(store.refused(late).await, Refusal::SessionLost(session));
    }
    store.done(Write::CloseSession { session }).await;
    assert_eq!(store.session().await, SessionId(2));
}

pub async fn a_session_that_claims_or_is_renewed_now_and_then_is_not_forgotten(store: TestStore) {
    let (claims, renewed) = (store.session().await, store.session().await);
    for _ in 0..3 {
        store.advance(bounds::SESSION_KEPT);
        assert_eq!(store.claim(claims, 1).await, []);
        store.write(Write::RenewSession { session: renewed }).await;
    }
    store.sweep().await;
    assert_eq!(store.inner().sessions().await.unwrap_or_default().len(), 2);
}

pub async fn a_claim_forgets_other_sessions_and_never_its_own(store: TestStore) {
    let (own, other) = (store.session().await, store.session().await);
    store.advance(LEASE + bounds::SESSION_KEPT);
    assert_eq!(store.claim(own, 1).await, []);
    assert_eq!(store.refused(Write::RenewSession { session: other }).await, Refusal::SessionLost(other));
}

pub async fn a_bounded_number_of_sessions_is_forgotten_in_one_sweep_and_the_rest_in_the_next(store: TestStore) {
    let open = || Write::OpenSession(OpenSession::new("worker", LEASE));
    store.apply((0..1500).map(|_| open()).collect()).await;
    store.advance(LEASE + bounds::SESSION_KEPT);
    for left in [476, 0] {
        store.sweep().await;
        assert_eq!(store.inner().sessions().await.unwrap_or_default().len(), left);
    }
}

pub async fn another_sessions_claim_takes_over_what_lapsed(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(LEASE);
    let next = store.start_one().await;
    assert_eq!((next.task, next.claim), (lease.task, 2));
}

pub async fn only_the_lapsed_sessions_tasks_lose_their_leases(store: TestStore) {
    let lapsed = store.running(task("k")).await;
    store.advance(SECOND);
    let alive = store.running(task("k")).await;
    store.advance(LEASE - SECOND);
    assert_eq!(store.sweep().await.lost, 1);
    assert_eq!(
        (store.state(lapsed.task).await, store.state(alive.task).await),
        (TaskState::Waiting, TaskState::Running)
    );
}

pub async fn a_jump_of_wall_time_lapses_no_lease(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.clock().set_wall(store.now().plus(Duration::from_secs(365 * 24 * 3600)));
    assert_eq!(store.sweep().await.lost, 0);
    store.complete(lease).await;
}

pub async fn wall_time_set_back_does_not_prolong_a_lease(store: TestStore) {
    store.running(task("k")).await;
    store.advance(LEASE);
    store.clock().set_wall(store.now().minus(Duration::from_secs(3600)));
    assert_eq!(store.sweep().await.lost, 1);
}

async fn lose(store: &TestStore, times: usize) -> Lease {
    let mut lease = store.start_one().await;
    for round in 1..=times {
        store.lapse().await;
        if round < times {
            lease = store.start_one().await;
        }
    }
    lease
}

pub async fn a_task_that_lost_two_leases_is_retried(store: TestStore) {
    let id = store.submit("k").await;
    lose(&store, 2).await;
    assert_eq!(store.state(id).await, TaskState::Waiting);
}

pub async fn a_third_lost_lease_in_a_row_goes_to_the_dead_letters(store: TestStore) {
    let id = store.submit("k").await;
    lose(&store, 3).await;
    let record = store.record(id).await;
    assert_eq!((record.state, record.attempts, record.errors.len()), (TaskState::Dead, 3, 3));
    assert_eq!(record.finished_at, Some(store.now()));
}

pub async fn a_failure_between_lost_leases_resets_their_count(store: TestStore) {
    let id = store.submit("k").await;
    lose(&store, 2).await;
    let lease = store.start_one().await;
    store.fail(lease, after(Duration::ZERO)).await;
    lose(&store, 2).await;
    assert_eq!(store.state(id).await, TaskState::Waiting);
}

pub async fn a_lost_lease_of_a_task_to_be_cancelled_cancels_it(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    store.lapse().await;
    assert_eq!(store.state(lease.task).await, TaskState::Cancelled);
}

pub async fn a_task_held_on_to_is_lost_like_any_other(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true }).await;
    assert_eq!(store.lapse().await.lost, 1);
    assert_eq!(store.record(lease.task).await.attempts, 2);
}

/// Shows: T16
pub async fn lost_leases_make_events(store: TestStore) {
    let id = store.submit("k").await;
    lose(&store, 3).await;
    let changes: Vec<Change> = store.changes().await.into_iter().map(|(_, change)| change).collect();
    let started = |attempt| Change::Started { attempt };
    let lost = Change::LeaseLost;
    assert_eq!(changes, [Change::Submitted, started(1), lost, started(2), lost, started(3), Change::Dead], "of {id}");
}

pub async fn a_sweep_ends_a_bounded_number_of_leases_and_leaves_the_rest_to_the_next(store: TestStore) {
    store.apply((0..1500).map(|_| Write::Submit(Box::new(task("k")))).collect()).await;
    let session = store.session().await;
    store.claim(session, 4096).await;
    let first = store.lapse().await;
    assert_eq!((first.lost, first.next_due), (1024, Some(Duration::ZERO)));
    assert_eq!((store.sweep().await.lost, store.sweep().await.lost), (476, 0));
}
