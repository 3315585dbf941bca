//! Ended tasks, counted by day.

use std::time::Duration;

use onward_store::{EndedCounts, NewTask, Prune, QueueDay, StoreReads, Timestamp, Write};

use crate::test_store::{TestStore, name, task};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the first moment of the day on which a test begins: 2024-01-01.
fn first_day() -> Timestamp {
    Timestamp::from_microseconds(1_704_067_200_000_000)
}

fn day(number: u32, queue: &str, completed: u64, cancelled: u64) -> QueueDay {
    let ended = EndedCounts { completed, cancelled, ..EndedCounts::default() };
    QueueDay { day: first_day().plus(DAY * number), queue: name(queue), ended }
}

async fn history(store: &TestStore, days: u32) -> Vec<QueueDay> {
    store.inner().history(days).await.expect("the history can be read")
}

async fn cancelled(store: &TestStore, queue: &str) {
    let id = store.submit_new(NewTask { queue: name(queue), ..task("k") }).await;
    store.cancel(id).await;
}

/// Shows: Q10
pub async fn ends_are_counted_by_day_queue_and_state(store: TestStore) {
    store.completed(task("k")).await;
    store.completed(task("other")).await;
    cancelled(&store, "mail").await;
    store.advance(DAY);
    store.completed(task("k")).await;
    cancelled(&store, "default").await;
    let expected = [day(0, "default", 2, 0), day(0, "mail", 0, 1), day(1, "default", 1, 1)];
    assert_eq!(history(&store, 7).await, expected);
}

/// Shows: Q10
pub async fn days_without_an_end_are_left_out(store: TestStore) {
    assert_eq!(history(&store, 7).await, []);
    store.completed(task("k")).await;
    store.advance(DAY * 3);
    store.submit("k").await;
    store.complete_next().await;
    assert_eq!(history(&store, 7).await, [day(0, "default", 1, 0), day(3, "default", 1, 0)]);
}

/// Shows: Q10
pub async fn the_history_has_as_many_days_as_requested(store: TestStore) {
    store.completed(task("k")).await;
    store.advance(DAY);
    store.completed(task("k")).await;
    store.advance(DAY);
    assert_eq!(history(&store, 1).await, []);
    assert_eq!(history(&store, 2).await, [day(1, "default", 1, 0)]);
    assert_eq!(history(&store, 3).await.len(), 2);
}

/// Shows: Q10
pub async fn days_are_kept_for_ninety_days(store: TestStore) {
    store.completed(task("k")).await;
    store.advance(DAY * 89);
    store.completed(task("k")).await;
    assert_eq!(history(&store, 90).await.len(), 2);
    store.advance(DAY);
    store.completed(task("k")).await;
    assert_eq!(history(&store, 9000).await, [day(89, "default", 1, 0), day(90, "default", 1, 0)]);
}

/// Shows: Q10, T17
pub async fn pruned_and_retried_tasks_stay_in_the_history(store: TestStore) {
    let retried = store.completed(task("k")).await;
    store.completed(task("k")).await;
    store.retry(retried).await;
    store.removed(Write::Prune(Prune { older_than: None, keep: Some(0), limit: 10 })).await;
    assert_eq!(history(&store, 1).await, [day(0, "default", 2, 0)]);
    store.complete_next().await;
    assert_eq!(history(&store, 1).await, [day(0, "default", 3, 0)]);
}

/// Shows: Q10
pub async fn a_clock_that_is_set_back_counts_to_the_latest_day(store: TestStore) {
    store.advance(DAY * 2);
    store.completed(task("k")).await;
    store.clock().set_wall(first_day());
    store.completed(task("k")).await;
    assert_eq!(history(&store, 1).await, [day(2, "default", 2, 0)]);
}
