//! The order of waiting tasks.
//!
//! A level of priority is worth a fixed time of waiting ([`bounds::PRIORITY_LEVEL`]), so tasks age.
//! A task goes before a more urgent one that became due later by more than the difference of their
//! levels. All tasks age alike, so their order never changes while they wait, and a store can keep
//! it in an index. (Schedulers call this a virtual deadline; compare "earliest eligible virtual
//! deadline first", Stoica and Abdel-Wahab 1995.) No task starves, however many urgent tasks
//! arrive.

use std::time::Duration;

use crate::api::task::{Priority, TaskId};
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// The sort key of a waiting task. The task with the smallest key goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey {
    /// The due time, moved later for each level below the highest priority: the time at which a
    /// task of the highest priority with the same sort key would have become due, in microseconds
    /// of wall time.
    pub at: i64,
    /// The task. If two keys have the same time, the older task goes first.
    pub task: TaskId,
}

/// Returns the sort key of a task that has been due since `run_at`.
#[must_use]
pub fn sort_key(priority: Priority, run_at: Timestamp, task: TaskId) -> SortKey {
    let level = i64::try_from(bounds::PRIORITY_LEVEL.as_micros()).unwrap_or(i64::MAX);
    let handicap = level.saturating_mul(i64::from(Priority::URGENT.0 - priority.0));
    SortKey { at: run_at.as_microseconds().saturating_add(handicap), task }
}

/// Returns the last sort key of a task that counts as at least as urgent as `least` now. A task
/// counts as its own priority plus one level for each [`bounds::PRIORITY_LEVEL`] that it has been
/// due.
#[must_use]
pub fn last_sort_key(least: Priority, now: Timestamp) -> SortKey {
    sort_key(least, now, TaskId(i64::MAX))
}

/// Returns the time until a task with the sort key `behind` counts as urgent enough. `last` is the
/// last sort key that is urgent enough now.
#[must_use]
pub fn between(last: SortKey, behind: SortKey) -> Duration {
    Duration::from_micros(u64::try_from(behind.at.saturating_sub(last.at)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_microseconds(1_750_000_000_000_000)
    }

    #[test]
    fn the_more_urgent_goes_first() {
        assert!(sort_key(Priority(129), now(), TaskId(2)) < sort_key(Priority(128), now(), TaskId(1)));
    }

    #[test]
    fn of_two_equally_urgent_the_one_that_was_due_first_goes_first() {
        let later = now().plus(Duration::from_micros(1));
        assert!(sort_key(Priority(1), now(), TaskId(2)) < sort_key(Priority(1), later, TaskId(1)));
    }

    #[test]
    fn one_level_is_worth_its_time_and_no_more() {
        let urgent = |after| sort_key(Priority(129), now().plus(after), TaskId(2));
        let old = sort_key(Priority(128), now(), TaskId(1));
        assert!(urgent(bounds::PRIORITY_LEVEL - Duration::from_micros(1)) < old);
        assert!(old < urgent(bounds::PRIORITY_LEVEL));
    }

    #[test]
    fn a_task_counts_as_a_level_more_urgent_for_each_level_s_worth_of_waiting() {
        let task = sort_key(Priority(118), now(), TaskId(1));
        let after = |minutes| now().plus(bounds::PRIORITY_LEVEL * minutes);
        assert!(task > last_sort_key(Priority(128), after(9)));
        assert!(task <= last_sort_key(Priority(128), after(10)));
        assert!(sort_key(Priority(128), now(), TaskId(1)) <= last_sort_key(Priority(128), now()));
    }

    #[test]
    fn the_extremes_have_a_sort_key() {
        let first = sort_key(Priority::URGENT, Timestamp::MIN, TaskId(1));
        assert!(first < sort_key(Priority(0), Timestamp::from_microseconds(i64::MAX), TaskId(1)));
    }
}
