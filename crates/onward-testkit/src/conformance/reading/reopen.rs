//! A store that is closed and opened again has the same content, except that closing it closed its
//! sessions.

use std::time::Duration;

use onward_store::{
    EventCursor, NewTask, OnDuplicate, Refusal, Scope, StoreReads, Submitted, TaskId, TaskState, When, Write,
};

use crate::test_store::{TestStore, after, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);

pub async fn tasks_are_as_they_were(mut store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(SECOND)).await;
    let ended = store.completed(task("k")).await;
    let scheduled = store.submit_new(NewTask { when: When::After(SECOND), ..keyed("a", OnDuplicate::Skip) }).await;
    let before = [store.record(lease.task).await, store.record(ended).await, store.record(scheduled).await];
    store.reopen().await;
    let after = [store.record(lease.task).await, store.record(ended).await, store.record(scheduled).await];
    assert_eq!(after, before);
}

pub async fn what_was_running_waits_again(mut store: TestStore) {
    let lease = store.running(task("k")).await;
    store.reopen().await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts, record.session), (TaskState::Waiting, 0, None));
}

pub async fn no_session_is_left(mut store: TestStore) {
    let lease = store.running(task("k")).await;
    store.reopen().await;
    assert_eq!(store.inner().sessions().await.ok(), Some(vec![]));
    assert_eq!(store.refused(Write::Complete { lease, result: None }).await, Refusal::SessionLost(lease.session));
}

pub async fn what_was_to_be_cancelled_is_cancelled(mut store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    store.reopen().await;
    assert_eq!(store.state(lease.task).await, TaskState::Cancelled);
}

pub async fn claims_stay_counted(mut store: TestStore) {
    store.running(task("k")).await;
    store.reopen().await;
    assert_eq!(store.start_one().await.claim, 2);
}

pub async fn queues_statistics_and_pauses_are_as_they_were(mut store: TestStore) {
    store.completed(task("k")).await;
    store.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    store.pause(Scope::Queue(name("p")), Some(store.now().plus(SECOND))).await;
    let reads = async |store: &TestStore| {
        let reads = store.inner();
        (reads.queues().await.ok(), reads.statistics().await.ok(), reads.pauses().await.ok())
    };
    let before = reads(&store).await;
    store.reopen().await;
    assert_eq!(reads(&store).await, before);
}

/// Shows: T16
pub async fn events_are_as_they_were(mut store: TestStore) {
    store.completed(task("k")).await;
    store.submit("k").await;
    let before = store.events().await;
    store.reopen().await;
    assert_eq!(store.events().await, before);
}

/// Shows: T16
pub async fn a_cursor_from_before_continues(mut store: TestStore) {
    store.completed(task("k")).await;
    let cursor = store.events().await.last().map(|event| event.cursor).unwrap_or_default();
    store.reopen().await;
    let id = store.submit("k").await;
    let page = store.inner().events(cursor, 10).await.map(|page| page.events).unwrap_or_default();
    assert_eq!(page.iter().map(|event| event.task).collect::<Vec<_>>(), [id]);
    assert_ne!(cursor, EventCursor::START);
}

/// Beats: reused-ids
pub async fn numbering_continues(mut store: TestStore) {
    let last = store.submit("k").await;
    store.removed(Write::Purge { queue: name("default"), states: vec![TaskState::Waiting], limit: 9 }).await;
    let session = store.session().await;
    store.done(Write::CloseSession { session }).await;
    store.reopen().await;
    assert!(store.submit("k").await > last && store.session().await > session);
}

/// Shows: T3
pub async fn keys_stay_taken(mut store: TestStore) {
    let id = store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    store.reopen().await;
    assert_eq!(store.submitted(keyed("a", OnDuplicate::Skip)).await, Submitted::Duplicate { id });
}

/// Shows: T3, Q6
pub async fn reserved_keys_stay_reserved(mut store: TestStore) {
    let mut new = keyed("a", OnDuplicate::Skip);
    new.unique.iter_mut().for_each(|unique| unique.keep_for = SECOND);
    let id = store.completed(new).await;
    store.reopen().await;
    assert_eq!(store.submitted(keyed("a", OnDuplicate::Skip)).await, Submitted::Duplicate { id });
    store.advance(SECOND);
    store.submit_new(keyed("a", OnDuplicate::Skip)).await;
}

pub async fn a_follower_is_not_forgotten(mut store: TestStore) {
    store.running(keyed("a", OnDuplicate::Requeue)).await;
    store.submitted(keyed("a", OnDuplicate::Requeue)).await;
    store.reopen().await;
    store.complete_next().await;
    assert_eq!(store.state(TaskId(2)).await, TaskState::Waiting);
}

pub async fn lost_leases_stay_counted(mut store: TestStore) {
    let id = store.submit("k").await;
    for _ in 0..3 {
        store.start_one().await;
        store.lapse().await;
        store.reopen().await;
    }
    assert_eq!(store.state(id).await, TaskState::Dead);
}

pub async fn what_is_due_next_is_known(mut store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(SECOND)).await;
    store.reopen().await;
    assert_eq!(store.sweep().await.next_due, Some(SECOND));
}

/// Shows: T14
/// Beats: stranded-pause
pub async fn paused_work_waits_and_starts_when_it_is_resumed(mut store: TestStore) {
    let scopes = [Scope::All, Scope::Queue(name("default")), Scope::Kind(name("k"))];
    for scope in scopes {
        store.pause(scope.clone(), None).await;
        let id = store.submit("k").await;
        store.reopen().await;
        let session = store.session().await;
        assert_eq!(store.claim(session, 1).await, []);
        store.done(Write::Resume { scope }).await;
        let lease = store.claim_one(session).await;
        assert_eq!(lease.task, id);
        store.complete(lease).await;
    }
}

/// Shows: T14
/// Beats: stranded-pause
pub async fn a_pause_ends_at_its_moment_anyway(mut store: TestStore) {
    store.pause(Scope::All, Some(store.now().plus(SECOND))).await;
    let id = store.submit("k").await;
    store.reopen().await;
    store.advance(SECOND);
    assert_eq!(store.start_one().await.task, id);
}
