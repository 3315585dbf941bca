//! What tasks move.

use onward_store::{Io, NewTask, Refusal, Write};

use crate::bench::{Bench, task};

fn moved(disk_read: u64) -> Io {
    Io { disk_read, network_sent: u64::MAX, ..Io::default() }
}

/// Shows: T18
pub async fn what_a_task_is_expected_to_move_is_told_to_who_claims_and_who_reads(bench: Bench) {
    let expected = moved(7);
    let id = bench.submit_new(NewTask { io: expected, ..task("any") }).await;
    let other = bench.submit("any").await;
    let session = bench.session().await;
    let claimed: Vec<Io> = bench.claim(session, 2).await.iter().map(|task| task.expected_io).collect();
    assert_eq!(claimed, [expected, Io::default()]);
    assert_eq!((bench.record(id).await.expected_io, bench.record(id).await.io), (expected, None));
    assert_eq!(bench.record(other).await.expected_io, Io::default());
}

/// Shows: T18
pub async fn what_an_attempt_has_moved_stays_with_the_ended_task(bench: Bench) {
    let lease = bench.running(task("any")).await;
    bench.done(Write::RecordIo { lease, io: moved(1) }).await;
    bench.done(Write::RecordIo { lease, io: moved(2) }).await;
    assert_eq!(bench.record(lease.task).await.io, Some(moved(2)));
    bench.done(Write::Complete { lease, result: None }).await;
    assert_eq!(bench.record(lease.task).await.io, Some(moved(2)));
}

/// Shows: T18
pub async fn what_an_attempt_has_moved_is_recorded_in_the_call_that_ends_it(bench: Bench) {
    let lease = bench.running(NewTask { io: moved(9), ..task("any") }).await;
    bench.apply(vec![Write::RecordIo { lease, io: moved(3) }, Write::Complete { lease, result: None }]).await;
    let record = bench.record(lease.task).await;
    assert_eq!((record.expected_io, record.io), (moved(9), Some(moved(3))));
}

pub async fn what_is_recorded_without_the_lease_is_refused(bench: Bench) {
    let lease = bench.running(task("any")).await;
    bench.done(Write::Complete { lease, result: None }).await;
    assert_eq!(bench.refused(Write::RecordIo { lease, io: moved(1) }).await, Refusal::LeaseLost(lease));
    assert_eq!(bench.record(lease.task).await.io, None);
}
