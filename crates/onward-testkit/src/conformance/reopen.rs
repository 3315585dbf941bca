//! A store that is closed and opened again has the same content, except that closing it closed its
//! sessions.

use std::time::Duration;

use onward_store::{
    EventCursor, NewTask, OnDuplicate, Refusal, Scope, StoreReads, Submitted, TaskId, TaskState, When, Write,
};

use crate::bench::{Bench, after, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);

pub async fn tasks_are_as_they_were(mut bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, after(SECOND)).await;
    let ended = bench.completed(task("k")).await;
    let scheduled = bench.submit_new(NewTask { when: When::After(SECOND), ..keyed("a", OnDuplicate::Skip) }).await;
    let before = [bench.record(lease.task).await, bench.record(ended).await, bench.record(scheduled).await];
    bench.reopen().await;
    let after = [bench.record(lease.task).await, bench.record(ended).await, bench.record(scheduled).await];
    assert_eq!(after, before);
}

pub async fn what_was_running_waits_again(mut bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.reopen().await;
    let record = bench.record(lease.task).await;
    assert_eq!((record.state, record.attempts, record.session), (TaskState::Waiting, 0, None));
}

pub async fn no_session_is_left(mut bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.reopen().await;
    assert_eq!(bench.store().sessions().await.ok(), Some(vec![]));
    assert_eq!(bench.refused(Write::Complete { lease, result: None }).await, Refusal::SessionLost(lease.session));
}

pub async fn what_was_to_be_cancelled_is_cancelled(mut bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.cancel(lease.task).await;
    bench.reopen().await;
    assert_eq!(bench.state(lease.task).await, TaskState::Cancelled);
}

pub async fn claims_stay_counted(mut bench: Bench) {
    bench.running(task("k")).await;
    bench.reopen().await;
    assert_eq!(bench.start_one().await.claim, 2);
}

pub async fn queues_statistics_and_pauses_are_as_they_were(mut bench: Bench) {
    bench.completed(task("k")).await;
    bench.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    bench.pause(Scope::Queue(name("p")), Some(bench.now().plus(SECOND))).await;
    let reads = async |bench: &Bench| {
        let store = bench.store();
        (store.queues().await.ok(), store.statistics().await.ok(), store.pauses().await.ok())
    };
    let before = reads(&bench).await;
    bench.reopen().await;
    assert_eq!(reads(&bench).await, before);
}

/// Shows: T16
pub async fn events_are_as_they_were(mut bench: Bench) {
    bench.completed(task("k")).await;
    bench.submit("k").await;
    let before = bench.events().await;
    bench.reopen().await;
    assert_eq!(bench.events().await, before);
}

/// Shows: T16
pub async fn a_cursor_kept_from_before_goes_on(mut bench: Bench) {
    bench.completed(task("k")).await;
    let cursor = bench.events().await.last().map(|event| event.cursor).unwrap_or_default();
    bench.reopen().await;
    let id = bench.submit("k").await;
    let page = bench.store().events(cursor, 10).await.map(|page| page.events).unwrap_or_default();
    assert_eq!(page.iter().map(|event| event.task).collect::<Vec<_>>(), [id]);
    assert_ne!(cursor, EventCursor::START);
}

/// Beats: reused-ids
pub async fn numbers_go_on(mut bench: Bench) {
    let last = bench.submit("k").await;
    bench.removed(Write::Purge { queue: name("default"), states: vec![TaskState::Waiting], limit: 9 }).await;
    let session = bench.session().await;
    bench.done(Write::CloseSession { session }).await;
    bench.reopen().await;
    assert!(bench.submit("k").await > last && bench.session().await > session);
}

/// Shows: T3
pub async fn keys_stay_taken(mut bench: Bench) {
    let id = bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
    bench.reopen().await;
    assert_eq!(bench.submitted(keyed("a", OnDuplicate::Skip)).await, Submitted::Duplicate { id });
}

/// Shows: T3, Q6
pub async fn kept_keys_stay_kept(mut bench: Bench) {
    let mut new = keyed("a", OnDuplicate::Skip);
    new.unique.iter_mut().for_each(|unique| unique.keep_for = SECOND);
    let id = bench.completed(new).await;
    bench.reopen().await;
    assert_eq!(bench.submitted(keyed("a", OnDuplicate::Skip)).await, Submitted::Duplicate { id });
    bench.advance(SECOND);
    bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
}

pub async fn a_follower_is_not_forgotten(mut bench: Bench) {
    bench.running(keyed("a", OnDuplicate::Requeue)).await;
    bench.submitted(keyed("a", OnDuplicate::Requeue)).await;
    bench.reopen().await;
    bench.complete_next().await;
    assert_eq!(bench.state(TaskId(2)).await, TaskState::Waiting);
}

pub async fn lost_leases_stay_counted(mut bench: Bench) {
    let id = bench.submit("k").await;
    for _ in 0..3 {
        bench.start_one().await;
        bench.lapse().await;
        bench.reopen().await;
    }
    assert_eq!(bench.state(id).await, TaskState::Dead);
}

pub async fn what_is_due_next_is_known(mut bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, after(SECOND)).await;
    bench.reopen().await;
    assert_eq!(bench.sweep().await.next_due, Some(SECOND));
}

/// Shows: T14
/// Beats: stranded-pause
pub async fn paused_work_waits_and_goes_on_when_it_is_resumed(mut bench: Bench) {
    let scopes = [Scope::All, Scope::Queue(name("default")), Scope::Kind(name("k"))];
    for scope in scopes {
        bench.pause(scope.clone(), None).await;
        let id = bench.submit("k").await;
        bench.reopen().await;
        let session = bench.session().await;
        assert_eq!(bench.claim(session, 1).await, []);
        bench.done(Write::Resume { scope }).await;
        let lease = bench.claim_one(session).await;
        assert_eq!(lease.task, id);
        bench.complete(lease).await;
    }
}

/// Shows: T14
/// Beats: stranded-pause
pub async fn a_pause_ends_at_its_moment_all_the_same(mut bench: Bench) {
    bench.pause(Scope::All, Some(bench.now().plus(SECOND))).await;
    let id = bench.submit("k").await;
    bench.reopen().await;
    bench.advance(SECOND);
    assert_eq!(bench.start_one().await.task, id);
}
