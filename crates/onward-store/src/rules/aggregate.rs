//! Pending batches: the time at which they are ready, and the ends of their items.

use std::time::Duration;

use crate::api::aggregate::Aggregate;
use crate::api::io::{Io, IoKind};
use crate::api::outcome::Refusal;
use crate::api::task::{NewTask, Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::dependencies::Ended;
use crate::rules::retry::RetryPolicy;

/// The last error of a batch that was cancelled because it has no items left.
pub const EMPTIED: &str = "all its items were removed before it ran";

/// A pending batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingBatchState {
    /// The item with which it began. The item may have left since.
    pub began_with: TaskId,
    /// The number of items.
    pub items: u32,
    /// The size of the payloads of all items, in bytes.
    pub bytes: u64,
    /// The time at which it began.
    pub began_at: Timestamp,
    /// The number of items that makes it ready.
    pub size: u32,
    /// The latest time at which it is ready, even if more items arrive.
    pub deadline: Timestamp,
    /// The time at which it is ready if no more items arrive.
    pub ready_at: Timestamp,
}

impl PendingBatchState {
    /// Returns the pending batch after a task has joined or begun it.
    #[must_use]
    pub fn joined(before: Option<Self>, task: TaskId, aggregate: Aggregate, bytes: u64, now: Timestamp) -> Self {
        // The delay of every item counts from the first item, and the earliest deadline applies.
        let deadline = before.map_or(now, |before| before.began_at).plus(aggregate.delay);
        let deadline = before.map_or(deadline, |before| before.deadline.min(deadline));
        Self {
            began_with: before.map_or(task, |before| before.began_with),
            items: before.map_or(0, |before| before.items).saturating_add(1),
            bytes: before.map_or(0, |before| before.bytes).saturating_add(bytes),
            began_at: before.map_or(now, |before| before.began_at),
            size: aggregate.size,
            deadline,
            ready_at: deadline.min(now.plus(aggregate.grace)),
        }
    }

    /// Returns the pending batch after an item has left; `None` if that was the last one. The
    /// others are ready no later than before.
    #[must_use]
    pub fn left(self, bytes: u64) -> Option<Self> {
        let items = self.items.checked_sub(1).filter(|items| *items > 0)?;
        Some(Self { items, bytes: self.bytes.saturating_sub(bytes), ..self })
    }

    /// Returns whether the batch is ready at once, without waiting for more items.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.items >= self.size.min(bounds::BATCH_ITEMS) || self.bytes >= bounds::BATCH_BYTES
    }

    /// Returns whether a payload of `bytes` bytes still fits. If it does not, the pending batch is
    /// delivered first.
    #[must_use]
    pub fn has_room_for(&self, bytes: u64) -> bool {
        self.bytes.saturating_add(bytes) <= bounds::BATCH_BYTES
    }
}

/// The properties that a batch takes from an item.
#[derive(Debug, Clone, Copy)]
pub struct ItemFacts {
    /// The urgency.
    pub priority: Priority,
    /// The longest time of one attempt.
    pub timeout: Option<Duration>,
    /// The longest time without a heartbeat.
    pub heartbeat_timeout: Option<Duration>,
    /// The time for which it is kept after its end.
    pub retention: Option<Duration>,
    /// The retry policy.
    pub retry: Option<RetryPolicy>,
    /// The bytes that it is expected to move.
    pub io: Io,
}

/// Sets the properties of a batch from its items, which are in the order oldest first. The batch
/// has the highest priority, the longest retention and the sum of the expected bytes of all items.
/// It has the timeouts and the retry policy of the oldest item.
pub fn adopt(batch: &mut NewTask, items: &[ItemFacts]) {
    let oldest = items.first();
    batch.timeout = oldest.and_then(|oldest| oldest.timeout);
    batch.heartbeat_timeout = oldest.and_then(|oldest| oldest.heartbeat_timeout);
    batch.retry = oldest.and_then(|oldest| oldest.retry);
    batch.retention = items.iter().filter_map(|item| item.retention).max();
    batch.priority = items.iter().map(|item| item.priority).max().unwrap_or_default();
    for (item, kind) in items.iter().flat_map(|item| IoKind::ALL.map(|kind| (item, kind))) {
        batch.io.set(kind, batch.io.get(kind).saturating_add(item.io.get(kind)));
    }
}

/// Returns the refusal to retry a batch that has no items left.
#[must_use]
pub fn without_items(batch: TaskId) -> Refusal {
    Refusal::Invalid(format!(
        "task {batch} is a batch without items: they were removed, or retried one by one; submit new tasks"
    ))
}

/// Returns the state in which an item ends with its batch.
#[must_use]
pub fn end_of_item(batch: Ended) -> TaskState {
    match batch {
        Some(state @ (TaskState::Completed | TaskState::Failed | TaskState::Dead)) => state,
        _ => TaskState::Cancelled,
    }
}

/// Returns the error of an item that ended with its batch, from the last error of the batch; `None`
/// if the batch completed.
#[must_use]
pub fn error(batch: TaskId, ended: Ended, last_error: Option<&str>) -> Option<String> {
    let why = last_error.map(|error| format!(": {error}")).unwrap_or_default();
    match ended {
        Some(TaskState::Completed) => None,
        Some(state) => Some(format!("task {batch}, its batch, ended as {state}{why}")),
        None => Some(format!("task {batch}, its batch, was removed")),
    }
}

/// Returns whether a batch has started, which ends the time to live of its items: it runs or is
/// blocked, or an attempt of it was counted. `attempts` are those of the batch.
#[must_use]
pub fn has_started(batch: TaskState, attempts: u32) -> bool {
    matches!(batch, TaskState::Running | TaskState::Blocked) || attempts > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_microseconds(seconds * 1_000_000)
    }

    fn aggregate(size: u32, delay: u64, grace: u64) -> Aggregate {
        Aggregate { size, delay: Duration::from_secs(delay), grace: Duration::from_secs(grace) }
    }

    /// Returns the pending batch after tasks have joined it one after the other. Each has its time
    /// and its terms.
    fn collect(joined: &[(i64, Aggregate)]) -> PendingBatchState {
        let join = |before, (number, (now, aggregate)): (i64, &(i64, Aggregate))| {
            Some(PendingBatchState::joined(before, TaskId(number), *aggregate, 1, at(*now)))
        };
        (1..).zip(joined).fold(None, join).unwrap()
    }

    #[test]
    fn each_item_extends_the_grace_until_the_delay_is_over() {
        let all = aggregate(10, 8, 3);
        assert_eq!(collect(&[(0, all)]).ready_at, at(3));
        assert_eq!(collect(&[(0, all), (2, all)]).ready_at, at(5));
        assert_eq!(collect(&[(0, all), (2, all), (4, all), (6, all)]).ready_at, at(8));
    }

    #[test]
    fn the_newest_item_sets_the_size_and_the_grace() {
        let pending_batch = collect(&[(0, aggregate(10, 20, 5)), (1, aggregate(2, 20, 9))]);
        assert_eq!((pending_batch.is_full(), pending_batch.ready_at), (true, at(10)));
    }

    #[test]
    fn no_item_waits_longer_than_its_own_delay() {
        assert_eq!(collect(&[(0, aggregate(10, 4, 4)), (1, aggregate(10, 60, 60))]).ready_at, at(4));
        assert_eq!(collect(&[(0, aggregate(10, 60, 60)), (1, aggregate(10, 4, 4))]).ready_at, at(4));
    }

    #[test]
    fn a_batch_is_ready_no_later_because_an_item_left() {
        let before = collect(&[(0, aggregate(3, 9, 9)), (1, aggregate(3, 9, 9))]);
        let after = before.left(1).unwrap();
        assert_eq!((after.items, after.bytes, after.ready_at), (1, 1, before.ready_at));
        assert_eq!(after.left(1), None);
    }

    #[test]
    fn a_pending_batch_is_full_when_its_payloads_are_large() {
        let one = |bytes| PendingBatchState::joined(None, TaskId(1), aggregate(10, 9, 9), bytes, at(0));
        assert!(one(bounds::BATCH_BYTES).is_full());
        assert!(!one(bounds::BATCH_BYTES - 1).is_full());
        assert!(one(bounds::BATCH_BYTES - 1).has_room_for(1));
        assert!(!one(bounds::BATCH_BYTES - 1).has_room_for(2));
    }

    #[test]
    fn items_end_as_their_batch_unless_it_was_cancelled_or_removed() {
        let ends = [Some(TaskState::Completed), Some(TaskState::Dead), Some(TaskState::Cancelled), None];
        let expected = [TaskState::Completed, TaskState::Dead, TaskState::Cancelled, TaskState::Cancelled];
        assert_eq!(ends.map(end_of_item), expected);
    }

    proptest! {
        /// For any items at any times, the batch is ready within the delay of each item, counted
        /// from the first one, and within the grace of the newest item.
        #[test]
        fn promises_are_kept(joined in proptest::collection::vec((0i64..20, 1u64..30, 1u64..30), 1..8)) {
            let mut now = 0;
            let joined: Vec<(i64, Aggregate)> = joined.into_iter().map(|(after, delay, grace)| {
                now += after;
                (now, aggregate(100, delay, grace.min(delay)))
            }).collect();
            let (pending_batch, first) = (collect(&joined), at(joined[0].0));
            prop_assert!(joined.iter().all(|(_, aggregate)| pending_batch.ready_at <= first.plus(aggregate.delay)));
            let (last, newest) = joined[joined.len() - 1];
            prop_assert!(pending_batch.ready_at <= at(last).plus(newest.grace));
            prop_assert!(pending_batch.ready_at == pending_batch.deadline || pending_batch.ready_at == at(last).plus(newest.grace));
        }
    }
}
