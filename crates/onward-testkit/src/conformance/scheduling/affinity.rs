//! Affinity keys of tasks, and the sessions that they prefer.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    Claim, KindSelection, LimitScope, NewTask, Outcome, Priority, Refusal, SessionId, SetLimit, SetQueue, StoreReads,
    TaskId, WaitReason, When, Write, bounds,
};

use crate::test_store::{LEASE, TestStore, after, all_of, name, numbers, task};

const SECOND: Duration = Duration::from_secs(1);
const WAIT: Duration = bounds::AFFINITY_WAIT;
const NONE: [TaskId; 0] = [];

fn of(affinity_key: &str) -> NewTask {
    NewTask { affinity: Some(name(affinity_key)), ..task("k") }
}

fn wait(wait: Duration) -> Write {
    Write::SetQueue(SetQueue::new(name("default")).affinity_wait(wait))
}

async fn claimed(store: &TestStore, session: SessionId) -> Vec<TaskId> {
    numbers(&store.claim(session, 9).await)
}

/// Opens two sessions. The first has run a task with the affinity key `s`.
async fn preferred_and_other(store: &TestStore) -> [SessionId; 2] {
    let sessions = [store.session().await, store.session().await];
    let [preferred, _] = sessions;
    store.submit_new(of("s")).await;
    let first = store.claim(preferred, 1).await;
    assert_eq!(first.len(), 1);
    for task in first {
        store.complete(task.lease).await;
    }
    sessions
}

/// Shows: Q12
pub async fn an_affinity_key_prefers_the_session_that_ran_it_last(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    assert_eq!(claimed(&store, other).await, NONE);
    assert_eq!(claimed(&store, preferred).await, [id]);
}

/// Shows: Q12
pub async fn tasks_of_a_burst_stay_with_the_session_that_began_it(store: TestStore) {
    let [one, other] = [store.session().await, store.session().await];
    let mut burst = Vec::new();
    for affinity_key in ["a", "b", "a", "b"] {
        burst.push(store.submit_new(of(affinity_key)).await);
    }
    assert_eq!(numbers(&store.claim(one, 1).await), burst[..1]);
    assert_eq!(claimed(&store, other).await, [burst[1], burst[3]]);
    assert_eq!(claimed(&store, one).await, [burst[2]]);
}

pub async fn a_session_gets_its_reserved_task_in_queue_order(store: TestStore) {
    let [preferred, _] = preferred_and_other(&store).await;
    let first = store.submit("k").await;
    let reserved = store.submit_new(of("s")).await;
    let last = store.submit("k").await;
    let urgent = store.submit_new(NewTask { priority: Priority::URGENT, ..task("k") }).await;
    assert_eq!(claimed(&store, preferred).await, [urgent, first, reserved, last]);
}

/// Shows: B6
pub async fn why_names_a_limit_that_a_reserved_task_uses_up_first(store: TestStore) {
    let [preferred, _] = preferred_and_other(&store).await;
    store.write(Write::SetLimit(SetLimit::new(LimitScope::All).concurrency(1))).await;
    let reserved = store.submit_new(of("s")).await;
    let waiting = store.submit("k").await;
    let reasons = store.inner().why(waiting).await.ok().flatten().unwrap_or_default();
    assert_eq!(reasons, [WaitReason::Contended { limit_on: LimitScope::All, room: 1 }]);
    assert_eq!(claimed(&store, preferred).await, [reserved]);
}

/// Shows: Q12
pub async fn a_reservation_ends_after_the_wait(store: TestStore) {
    let [_, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    store.advance(WAIT - Duration::from_micros(1));
    assert_eq!(claimed(&store, other).await, NONE);
    store.advance(Duration::from_micros(1));
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn the_wait_counts_from_when_a_task_became_due(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let ids = [store.submit_new(of("s")).await, store.submit_new(of("s")).await];
    store.advance(WAIT);
    assert_eq!(numbers(&store.claim(preferred, 1).await), ids[..1]);
    assert_eq!(claimed(&store, other).await, ids[1..], "the second has waited as long");
}

pub async fn a_claim_returns_when_a_reservation_ends(store: TestStore) {
    let [_, other] = preferred_and_other(&store).await;
    store.advance(SECOND);
    store.submit_new(of("s")).await;
    store.advance(SECOND);
    assert_eq!(store.claimed(all_of(other, 9)).await.next_due, Some(WAIT - SECOND));
}

/// Shows: Q12
pub async fn an_affinity_key_prefers_the_session_that_starts_it(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    store.submit_new(of("s")).await;
    store.advance(WAIT);
    assert_eq!(claimed(&store, other).await.len(), 1);
    let id = store.submit_new(of("s")).await;
    assert_eq!(claimed(&store, preferred).await, NONE);
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn an_affinity_key_has_one_preference_in_all_queues_and_kinds(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let ids = [
        store.submit_new(NewTask { kind: name("other"), ..of("s") }).await,
        store.submit_new(NewTask { queue: name("other"), ..of("s") }).await,
        store.submit_new(NewTask { group: Some(name("g")), ..of("s") }).await,
    ];
    assert_eq!(claimed(&store, other).await, NONE);
    assert_eq!(claimed(&store, preferred).await, ids);
}

pub async fn tasks_of_an_affinity_key_keep_their_order(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let low = store.submit_new(NewTask { priority: Priority::LOW, ..of("s") }).await;
    store.advance(WAIT);
    let high = store.submit_new(of("s")).await;
    assert_eq!(claimed(&store, other).await, NONE, "the first is reserved, though the second has waited long enough");
    assert_eq!(claimed(&store, preferred).await, [high, low]);
}

/// Shows: Q12
pub async fn a_reserved_task_delays_no_task_behind_it(store: TestStore) {
    let [_, other] = preferred_and_other(&store).await;
    store.submit_new(NewTask { priority: Priority::URGENT, ..of("s") }).await;
    let id = store.submit_new(NewTask { priority: Priority::LOW, ..task("k") }).await;
    assert_eq!(claimed(&store, other).await, [id]);
}

/// Shows: Q12
pub async fn a_closed_session_is_preferred_no_longer(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    store.done(Write::CloseSession { session: preferred }).await;
    assert_eq!(claimed(&store, other).await, [id]);
}

/// Shows: Q12
pub async fn a_session_that_lapses_is_preferred_no_longer(store: TestStore) {
    store.write(wait(LEASE * 9)).await;
    let [preferred, other] = preferred_and_other(&store).await;
    store.submit("held").await;
    assert_eq!(store.claim(preferred, 1).await.len(), 1);
    let id = store.submit_new(of("s")).await;
    store.lapse().await;
    let kinds = KindSelection::Only(vec![name("k")]);
    let given = store.claimed(Claim { kinds, ..all_of(other, 9) }).await;
    assert_eq!(numbers(&given.tasks), [id]);
}

/// Shows: Q12
pub async fn a_retired_session_is_preferred_no_longer(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    store.done(Write::Retire { session: preferred }).await;
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn only_an_open_session_retires(store: TestStore) {
    let session = store.session().await;
    store.done(Write::CloseSession { session }).await;
    assert_eq!(store.refused(Write::Retire { session }).await, Refusal::SessionLost(session));
}

pub async fn a_restart_ends_every_reservation(mut store: TestStore) {
    preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    store.reopen().await;
    let other = store.session().await;
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn a_queue_that_does_not_wait_reserves_nothing(store: TestStore) {
    store.write(wait(Duration::ZERO)).await;
    let [_, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn another_wait_counts_for_what_waits_already(store: TestStore) {
    let [_, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    store.advance(WAIT);
    store.write(wait(WAIT * 2)).await;
    assert_eq!(claimed(&store, other).await, NONE);
    store.write(wait(SECOND)).await;
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn a_wait_out_of_range_is_refused(store: TestStore) {
    let text = store.invalid(wait(bounds::AFFINITY_WAIT_MAXIMUM + SECOND)).await;
    assert!(text.contains("default"), "{text}");
}

pub async fn a_queue_record_has_its_affinity_wait(store: TestStore) {
    store.submit("k").await;
    let current_wait = async || store.queue("default").await.map(|queue| queue.affinity_wait);
    assert_eq!(current_wait().await, Some(WAIT));
    let Outcome::QueueSet(settings) = store.write(wait(SECOND)).await else { panic!("the queue was not set") };
    assert_eq!((settings.affinity_wait, current_wait().await), (SECOND, Some(SECOND)));
}

pub async fn a_task_record_has_its_affinity_key(store: TestStore) {
    let id = store.completed(of("s")).await;
    assert_eq!(store.record(id).await.affinity, Some(name("s")));
}

/// Shows: Q12, B6
pub async fn why_names_the_session_for_which_a_task_is_reserved(store: TestStore) {
    let [preferred, _] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    let until = store.now().plus(WAIT);
    let reasons = store.inner().why(id).await.unwrap_or_default().unwrap_or_default();
    assert_eq!(reasons, [WaitReason::Reserved { session: preferred, until }]);
}

pub async fn an_unused_affinity_key_is_forgotten(store: TestStore) {
    store.write(wait(bounds::AFFINITY_WAIT_MAXIMUM)).await;
    let [_, other] = preferred_and_other(&store).await;
    store.advance(bounds::AFFINITY_KEPT - SECOND);
    let id = store.submit_new(of("s")).await;
    assert_eq!(claimed(&store, other).await, NONE);
    store.advance(SECOND);
    assert_eq!(claimed(&store, other).await, [id]);
}

pub async fn a_retried_task_prefers_the_session_that_failed_it(store: TestStore) {
    let [preferred, other] = [store.session().await, store.session().await];
    let id = store.submit_new(of("s")).await;
    for task in store.claim(preferred, 1).await {
        store.fail(task.lease, after(SECOND)).await;
    }
    store.advance(SECOND);
    assert_eq!(claimed(&store, other).await, NONE);
    assert_eq!(claimed(&store, preferred).await, [id]);
}

pub async fn a_task_with_an_affinity_key_that_is_released_waits_for_its_session(store: TestStore) {
    let [preferred, other] = [store.session().await, store.session().await];
    let id = store.submit_new(of("s")).await;
    for task in store.claim(preferred, 1).await {
        store.release(task.lease, Duration::ZERO).await;
    }
    assert_eq!(claimed(&store, other).await, NONE);
    assert_eq!(claimed(&store, preferred).await, [id]);
}

pub async fn a_scheduled_task_with_an_affinity_key_is_reserved_when_it_is_due(mut store: TestStore) {
    let id = store.submit_new(NewTask { when: When::After(SECOND), ..of("s") }).await;
    store.reopen().await;
    let [_, other] = preferred_and_other(&store).await;
    store.advance(SECOND);
    assert_eq!(claimed(&store, other).await, NONE);
    store.advance(WAIT);
    assert_eq!(claimed(&store, other).await, [id]);
}

/// Shows: T9
pub async fn a_limited_group_is_limited_with_an_affinity_key_too(store: TestStore) {
    store.write(Write::SetLimit(SetLimit::group(name("g")).concurrency(1))).await;
    let [preferred, other] = preferred_and_other(&store).await;
    let grouped = || NewTask { group: Some(name("g")), ..of("s") };
    let ids = [store.submit_new(grouped()).await, store.submit_new(grouped()).await];
    let behind = store.submit("k").await;
    let first = store.claim(preferred, 1).await;
    assert_eq!(numbers(&first), ids[..1]);
    assert_eq!(claimed(&store, preferred).await, [behind]);
    for task in first {
        store.complete(task.lease).await;
    }
    assert_eq!(claimed(&store, other).await, NONE, "what goes on is reserved as it was");
    assert_eq!(claimed(&store, preferred).await, ids[1..]);
}

/// Shows: T9
pub async fn tasks_with_an_affinity_key_share_the_queue_by_their_group(store: TestStore) {
    store.write(Write::SetLimit(SetLimit::group(name("g")).weight(3))).await;
    let session = store.session().await;
    for _ in 0..12 {
        store.submit_new(NewTask { group: Some(name("g")), ..of("s") }).await;
        store.submit_new(of("t")).await;
    }
    let given = store.claim(session, 12).await;
    assert_eq!(given.iter().filter(|task| task.group.is_some()).count(), 9);
}

pub async fn a_refused_write_of_an_all_undoes_a_preference(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    store.advance(WAIT);
    let unknown = Write::Cancel { task: TaskId(99) };
    store.refused(Write::All(vec![Write::Claim(all_of(other, 9)), unknown])).await;
    store.cancel(id).await;
    let second = store.submit_new(of("s")).await;
    assert_eq!(claimed(&store, other).await, NONE);
    assert_eq!(claimed(&store, preferred).await, [second]);
}

pub async fn a_task_with_an_affinity_key_is_moved_with_its_reservation(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    let queue = name("slow");
    assert_eq!(store.write(Write::Move { task: id, queue }).await, Outcome::Moved);
    assert_eq!(claimed(&store, other).await, NONE);
    assert_eq!(claimed(&store, preferred).await, [id]);
}

pub async fn what_is_reserved_can_be_cancelled(store: TestStore) {
    let [preferred, _] = preferred_and_other(&store).await;
    let ids = [store.submit_new(of("s")).await, store.submit_new(of("s")).await];
    assert_eq!(store.cancel(ids[0]).await, Outcome::Cancelled);
    assert_eq!(claimed(&store, preferred).await, ids[1..]);
}

pub async fn peek_returns_to_a_session_what_is_reserved_for_it(store: TestStore) {
    let [preferred, other] = preferred_and_other(&store).await;
    let id = store.submit_new(of("s")).await;
    let look = async |session| store.inner().peek(Claim::any(session, 1)).await.ok().flatten().map(|task| task.id);
    assert_eq!(look(other).await, None);
    assert_eq!(look(preferred).await, Some(id));
    store.advance(WAIT);
    assert_eq!(look(other).await, Some(id));
}
