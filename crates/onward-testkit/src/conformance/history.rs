//! Ended tasks, counted by day.

use std::time::Duration;

use onward_store::{EndedCounts, NewTask, Prune, QueueDay, StoreReads, Timestamp, Write};

use crate::bench::{Bench, name, task};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the first moment of the day on which a test begins: 2024-01-01.
fn first_day() -> Timestamp {
    Timestamp::from_microseconds(1_704_067_200_000_000)
}

fn day(number: u32, queue: &str, completed: u64, cancelled: u64) -> QueueDay {
    let ended = EndedCounts { completed, cancelled, ..EndedCounts::default() };
    QueueDay { day: first_day().plus(DAY * number), queue: name(queue), ended }
}

async fn history(bench: &Bench, days: u32) -> Vec<QueueDay> {
    bench.store().history(days).await.expect("the history can be read")
}

async fn cancelled(bench: &Bench, queue: &str) {
    let id = bench.submit_new(NewTask { queue: name(queue), ..task("k") }).await;
    bench.cancel(id).await;
}

/// Shows: Q10
pub async fn ends_are_counted_by_day_queue_and_state(bench: Bench) {
    bench.completed(task("k")).await;
    bench.completed(task("other")).await;
    cancelled(&bench, "mail").await;
    bench.advance(DAY);
    bench.completed(task("k")).await;
    cancelled(&bench, "default").await;
    let expected = [day(0, "default", 2, 0), day(0, "mail", 0, 1), day(1, "default", 1, 1)];
    assert_eq!(history(&bench, 7).await, expected);
}

/// Shows: Q10
pub async fn days_without_an_end_are_left_out(bench: Bench) {
    assert_eq!(history(&bench, 7).await, []);
    bench.completed(task("k")).await;
    bench.advance(DAY * 3);
    bench.submit("k").await;
    bench.complete_next().await;
    assert_eq!(history(&bench, 7).await, [day(0, "default", 1, 0), day(3, "default", 1, 0)]);
}

/// Shows: Q10
pub async fn so_many_days_are_told_as_are_asked_for(bench: Bench) {
    bench.completed(task("k")).await;
    bench.advance(DAY);
    bench.completed(task("k")).await;
    bench.advance(DAY);
    assert_eq!(history(&bench, 1).await, []);
    assert_eq!(history(&bench, 2).await, [day(1, "default", 1, 0)]);
    assert_eq!(history(&bench, 3).await.len(), 2);
}

/// Shows: Q10
pub async fn days_are_kept_for_ninety_days(bench: Bench) {
    bench.completed(task("k")).await;
    bench.advance(DAY * 89);
    bench.completed(task("k")).await;
    assert_eq!(history(&bench, 90).await.len(), 2);
    bench.advance(DAY);
    bench.completed(task("k")).await;
    assert_eq!(history(&bench, 9000).await, [day(89, "default", 1, 0), day(90, "default", 1, 0)]);
}

/// Shows: Q10, T17
pub async fn what_is_pruned_or_tried_again_stays_in_the_history(bench: Bench) {
    let retried = bench.completed(task("k")).await;
    bench.completed(task("k")).await;
    bench.retry(retried).await;
    bench.removed(Write::Prune(Prune { older_than: None, keep: Some(0), limit: 10 })).await;
    assert_eq!(history(&bench, 1).await, [day(0, "default", 2, 0)]);
    bench.complete_next().await;
    assert_eq!(history(&bench, 1).await, [day(0, "default", 3, 0)]);
}

/// Shows: Q10
pub async fn a_clock_that_is_set_back_counts_to_the_latest_day(bench: Bench) {
    bench.advance(DAY * 2);
    bench.completed(task("k")).await;
    bench.clock().set_wall(first_day());
    bench.completed(task("k")).await;
    assert_eq!(history(&bench, 1).await, [day(2, "default", 2, 0)]);
}
