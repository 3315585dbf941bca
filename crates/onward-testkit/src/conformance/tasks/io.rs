//! Bytes that tasks read and write: expected and recorded.

use onward_store::{AfterFailure, Io, IoStatistics, NewTask, Refusal, StoreReads, Write};

use crate::test_store::{TestStore, task};

fn moved(disk_read: u64) -> Io {
    Io { disk_read, network_sent: u64::MAX, ..Io::default() }
}

/// Shows: T18
pub async fn expected_bytes_are_in_the_claim_and_in_the_record(store: TestStore) {
    let expected = moved(7);
    let id = store.submit_new(NewTask { io: expected, ..task("any") }).await;
    let other = store.submit("any").await;
    let session = store.session().await;
    let claimed: Vec<Io> = store.claim(session, 2).await.iter().map(|task| task.expected_io).collect();
    assert_eq!(claimed, [expected, Io::default()]);
    assert_eq!((store.record(id).await.expected_io, store.record(id).await.io), (expected, None));
    assert_eq!(store.record(other).await.expected_io, Io::default());
}

/// Shows: T18
pub async fn what_an_attempt_has_moved_stays_with_the_ended_task(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(Write::RecordIo { lease, io: moved(1) }).await;
    store.done(Write::RecordIo { lease, io: moved(2) }).await;
    assert_eq!(store.record(lease.task).await.io, Some(moved(2)));
    store.done(Write::Complete { lease, result: None }).await;
    assert_eq!(store.record(lease.task).await.io, Some(moved(2)));
}

/// Shows: T18
pub async fn what_an_attempt_has_moved_is_recorded_in_the_call_that_ends_it(store: TestStore) {
    let lease = store.running(NewTask { io: moved(9), ..task("any") }).await;
    store.apply(vec![Write::RecordIo { lease, io: moved(3) }, Write::Complete { lease, result: None }]).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.expected_io, record.io), (moved(9), Some(moved(3))));
}

/// Shows: T17, T18
pub async fn statistics_add_up_what_completed_tasks_were_to_move_and_moved(store: TestStore) {
    for (expected, recorded) in [(Some(7), Some(5)), (Some(1), None), (None, Some(4)), (None, None)] {
        let io = expected.map(moved).unwrap_or_default();
        let lease = store.running(NewTask { io, ..task("any") }).await;
        if let Some(recorded) = recorded {
            store.done(Write::RecordIo { lease, io: moved(recorded) }).await;
        }
        store.complete(lease).await;
    }
    let statistics = store.inner().statistics().await.unwrap_or_default();
    let io = IoStatistics { tasks: 3, expected: moved(8), recorded: moved(9) };
    assert_eq!(statistics.first().map(|kind| (kind.ended.completed, kind.io)), Some((4, io)));
}

pub async fn tasks_that_do_not_complete_are_not_counted_among_what_was_moved(store: TestStore) {
    let lease = store.running(NewTask { io: moved(7), ..task("any") }).await;
    store.done(Write::RecordIo { lease, io: moved(5) }).await;
    store.fail(lease, AfterFailure::Fail).await;
    let statistics = store.inner().statistics().await.unwrap_or_default();
    assert_eq!(statistics.first().map(|kind| kind.io), Some(IoStatistics::default()));
}

pub async fn what_is_recorded_without_the_lease_is_refused(store: TestStore) {
    let lease = store.running(task("any")).await;
    store.done(Write::Complete { lease, result: None }).await;
    assert_eq!(store.refused(Write::RecordIo { lease, io: moved(1) }).await, Refusal::LeaseLost(lease));
    assert_eq!(store.record(lease.task).await.io, None);
}
