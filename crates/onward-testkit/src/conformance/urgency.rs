//! Claims that take only tasks above a priority.

use std::time::Duration;

use onward_store::{Claim, LimitScope, NewTask, Priority, QueueMode, SessionId, SetLimit, StoreReads, TaskId, Write};

use crate::bench::{Bench, LEASE, all_of, name, numbers, task};

const MINUTE: Duration = onward_store::bounds::PRIORITY_LEVEL;

fn urgent(priority: u8) -> NewTask {
    NewTask { priority: Priority(priority), ..task("any") }
}

/// Returns a claim of tasks whose priority counts as at least normal.
fn normal(session: SessionId, limit: usize) -> Claim {
    Claim { least: Some(Priority::NORMAL), ..all_of(session, limit) }
}

async fn claimed(bench: &Bench, session: SessionId) -> Vec<TaskId> {
    numbers(&bench.claimed(normal(session, 10)).await.tasks)
}

/// Shows: T18
pub async fn a_claim_leaves_what_is_not_urgent_enough(bench: Bench) {
    for mode in QueueMode::ALL {
        bench.done(Write::SetQueueMode(mode)).await;
        let low = bench.submit_new(urgent(127)).await;
        let group = bench.submit_new(NewTask { group: Some(name("a")), ..urgent(127) }).await;
        let enough = bench.submit_new(urgent(128)).await;
        let more = bench.submit_new(NewTask { group: Some(name("a")), queue: name("slow"), ..urgent(200) }).await;
        let session = bench.session().await;
        let mut taken = claimed(&bench, session).await;
        taken.sort_unstable();
        assert_eq!(taken, [enough, more], "{mode}");
        assert_eq!(numbers(&bench.claim(session, 10).await), [low, group], "{mode}");
    }
}

/// Shows: T4, T18
pub async fn a_task_becomes_urgent_enough_by_waiting(bench: Bench) {
    let low = bench.submit_new(urgent(118)).await;
    let session = bench.session_for(MINUTE * 60).await;
    bench.advance(MINUTE * 10 - Duration::from_micros(1));
    assert_eq!(claimed(&bench, session).await, []);
    bench.advance(Duration::from_micros(1));
    assert_eq!(claimed(&bench, session).await, [low]);
}

/// Shows: T18
pub async fn a_claim_tells_when_what_it_left_is_urgent_enough(bench: Bench) {
    bench.submit_new(urgent(100)).await;
    bench.submit_new(NewTask { group: Some(name("a")), ..urgent(118) }).await;
    bench.submit_new(urgent(200)).await;
    let session = bench.session_for(MINUTE * 60).await;
    let claimed = bench.claimed(normal(session, 10)).await;
    assert_eq!((claimed.next_aged, claimed.next_due), (Some(MINUTE * 10), Some(MINUTE * 10)));
    assert_eq!(bench.claimed(all_of(session, 10)).await.next_aged, None);
}

/// Shows: T18
pub async fn a_claim_that_got_all_it_asked_for_does_not_look_further(bench: Bench) {
    bench.submit_new(urgent(100)).await;
    bench.submit_new(urgent(200)).await;
    let session = bench.session().await;
    assert_eq!(bench.claimed(normal(session, 1)).await.next_aged, None);
}

/// Shows: T9, T18
pub async fn nobody_is_told_of_what_a_limit_holds_back_anyhow(bench: Bench) {
    for scope in [LimitScope::All, LimitScope::Kind(name("any")), LimitScope::Group(name("a"))] {
        let set = SetLimit::new(scope.clone());
        assert!(!matches!(
            bench.write(Write::SetLimit(set.clone().concurrency(1))).await,
            onward_store::Outcome::Refused(_)
        ));
        let in_group = |priority| NewTask { group: Some(name("a")), ..urgent(priority) };
        bench.submit_new(in_group(200)).await;
        bench.submit_new(in_group(100)).await;
        let session = bench.session().await;
        let claimed = bench.claimed(normal(session, 10)).await;
        assert_eq!((claimed.tasks.len(), claimed.next_aged), (1, None), "{scope}");
        bench.write(Write::SetLimit(set.unlimited())).await;
        for task in claimed.tasks.into_iter().chain(bench.claim(session, 10).await) {
            bench.done(Write::Complete { lease: task.lease, result: None }).await;
        }
    }
}

/// Shows: T18
pub async fn a_look_leaves_what_is_not_urgent_enough(bench: Bench) {
    bench.submit_new(urgent(100)).await;
    assert_eq!(bench.store().peek(normal(SessionId(0), 1)).await.expect("a store without faults is read"), None);
    let enough = bench.submit_new(urgent(128)).await;
    let peeked = bench.store().peek(normal(SessionId(0), 1)).await.expect("a store without faults is read");
    assert_eq!(peeked.map(|task| task.id), Some(enough));
}

/// Shows: T18
pub async fn what_is_left_is_passed_over_after_a_restart(mut bench: Bench) {
    let low = bench.submit_new(urgent(100)).await;
    let enough = bench.submit_new(urgent(128)).await;
    bench.reopen().await;
    let session = bench.session_for(LEASE).await;
    assert_eq!(claimed(&bench, session).await, [enough]);
    assert_eq!(numbers(&bench.claim(session, 10).await), [low]);
}
