//! Claims that take only tasks above a priority.

use std::time::Duration;

use onward_store::{Claim, LimitScope, NewTask, Priority, QueueMode, SessionId, SetLimit, StoreReads, TaskId, Write};

use crate::test_store::{LEASE, TestStore, all_of, name, numbers, task};

const MINUTE: Duration = onward_store::bounds::PRIORITY_LEVEL;

fn urgent(priority: u8) -> NewTask {
    NewTask { priority: Priority(priority), ..task("any") }
}

/// Returns a claim of tasks whose priority counts as at least normal.
fn normal(session: SessionId, limit: usize) -> Claim {
    Claim { least: Some(Priority::NORMAL), ..all_of(session, limit) }
}

async fn claimed(store: &TestStore, session: SessionId) -> Vec<TaskId> {
    numbers(&store.claimed(normal(session, 10)).await.tasks)
}

/// Shows: T18
pub async fn a_claim_leaves_what_is_not_urgent_enough(store: TestStore) {
    for mode in QueueMode::ALL {
        store.done(Write::SetQueueMode(mode)).await;
        let low = store.submit_new(urgent(127)).await;
        let group = store.submit_new(NewTask { group: Some(name("a")), ..urgent(127) }).await;
        let enough = store.submit_new(urgent(128)).await;
        let more = store.submit_new(NewTask { group: Some(name("a")), queue: name("slow"), ..urgent(200) }).await;
        let session = store.session().await;
        let mut taken = claimed(&store, session).await;
        taken.sort_unstable();
        assert_eq!(taken, [enough, more], "{mode}");
        assert_eq!(numbers(&store.claim(session, 10).await), [low, group], "{mode}");
    }
}

/// Shows: T4, T18
pub async fn a_task_becomes_urgent_enough_by_waiting(store: TestStore) {
    let low = store.submit_new(urgent(118)).await;
    let session = store.session_for(MINUTE * 60).await;
    store.advance(MINUTE * 10 - Duration::from_micros(1));
    assert_eq!(claimed(&store, session).await, []);
    store.advance(Duration::from_micros(1));
    assert_eq!(claimed(&store, session).await, [low]);
}

/// Shows: T18
pub async fn a_claim_returns_when_a_passed_over_task_is_urgent_enough(store: TestStore) {
    store.submit_new(urgent(100)).await;
    store.submit_new(NewTask { group: Some(name("a")), ..urgent(118) }).await;
    store.submit_new(urgent(200)).await;
    let session = store.session_for(MINUTE * 60).await;
    let claimed = store.claimed(normal(session, 10)).await;
    assert_eq!((claimed.next_aged, claimed.next_due), (Some(MINUTE * 10), Some(MINUTE * 10)));
    assert_eq!(store.claimed(all_of(session, 10)).await.next_aged, None);
}

/// Shows: T18
pub async fn a_claim_that_got_all_it_asked_for_does_not_look_further(store: TestStore) {
    store.submit_new(urgent(100)).await;
    store.submit_new(urgent(200)).await;
    let session = store.session().await;
    assert_eq!(store.claimed(normal(session, 1)).await.next_aged, None);
}

/// Shows: T9, T18
pub async fn a_claim_announces_no_task_that_a_limit_delays_anyway(store: TestStore) {
    for scope in [LimitScope::All, LimitScope::Kind(name("any")), LimitScope::Group(name("a"))] {
        let set = SetLimit::new(scope.clone());
        assert!(!matches!(
            store.write(Write::SetLimit(set.clone().concurrency(1))).await,
            onward_store::Outcome::Refused(_)
        ));
        let in_group = |priority| NewTask { group: Some(name("a")), ..urgent(priority) };
        store.submit_new(in_group(200)).await;
        store.submit_new(in_group(100)).await;
        let session = store.session().await;
        let claimed = store.claimed(normal(session, 10)).await;
        assert_eq!((claimed.tasks.len(), claimed.next_aged), (1, None), "{scope}");
        store.write(Write::SetLimit(set.unlimited())).await;
        for task in claimed.tasks.into_iter().chain(store.claim(session, 10).await) {
            store.done(Write::Complete { lease: task.lease, result: None }).await;
        }
    }
}

/// Shows: T18
pub async fn peek_passes_over_what_is_not_urgent_enough(store: TestStore) {
    store.submit_new(urgent(100)).await;
    assert_eq!(store.inner().peek(normal(SessionId(0), 1)).await.expect("a store without faults is read"), None);
    let enough = store.submit_new(urgent(128)).await;
    let peeked = store.inner().peek(normal(SessionId(0), 1)).await.expect("a store without faults is read");
    assert_eq!(peeked.map(|task| task.id), Some(enough));
}

/// Shows: T18
pub async fn what_is_left_is_passed_over_after_a_restart(mut store: TestStore) {
    let low = store.submit_new(urgent(100)).await;
    let enough = store.submit_new(urgent(128)).await;
    store.reopen().await;
    let session = store.session_for(LEASE).await;
    assert_eq!(claimed(&store, session).await, [enough]);
    assert_eq!(numbers(&store.claim(session, 10).await), [low]);
}
