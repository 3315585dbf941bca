//! Which of the waiting tasks goes first.
//!
//! A level of priority is worth a certain time of waiting ([`bounds::PRIORITY_LEVEL`]), so that a
//! task ages: it goes before a more urgent one that became due so much later. All tasks age alike,
//! so their order never changes while they wait, and a store can keep it in an index. (Schedulers
//! call this a virtual deadline; compare "earliest eligible virtual deadline first", Stoica and
//! Abdel-Wahab 1995.) However many urgent tasks arrive, nothing starves.

use std::time::Duration;

use crate::api::task::{Priority, TaskId};
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// A task's place among those that wait: the smaller goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When a task of the highest priority would have had to become due to stand here, in
    /// microseconds of wall time.
    pub at: i64,
    /// The task; of two that became due at one moment the older goes first.
    pub task: TaskId,
}

/// The place of a task of some priority that has been due since `run_at`.
#[must_use]
pub fn place(priority: Priority, run_at: Timestamp, task: TaskId) -> Place {
    let level = i64::try_from(bounds::PRIORITY_LEVEL.as_micros()).unwrap_or(i64::MAX);
    let handicap = level.saturating_mul(i64::from(Priority::URGENT.0 - priority.0));
    Place { at: run_at.as_microseconds().saturating_add(handicap), task }
}

/// The last place at which a task counts as at least as urgent as `least` now: its own priority,
/// and a level more for each [`bounds::PRIORITY_LEVEL`] that it has been due. What stands behind it
/// counts as less urgent.
#[must_use]
pub fn last_place(least: Priority, now: Timestamp) -> Place {
    place(least, now, TaskId(i64::MAX))
}

/// How long until a task behind the last place that counts as urgent enough will be.
#[must_use]
pub fn between(last: Place, behind: Place) -> Duration {
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
        assert!(place(Priority(129), now(), TaskId(2)) < place(Priority(128), now(), TaskId(1)));
    }

    #[test]
    fn of_two_equally_urgent_the_one_that_was_due_first_goes_first() {
        let later = now().plus(Duration::from_micros(1));
        assert!(place(Priority(1), now(), TaskId(2)) < place(Priority(1), later, TaskId(1)));
    }

    #[test]
    fn one_level_is_worth_its_time_and_no_more() {
        let urgent = |after| place(Priority(129), now().plus(after), TaskId(2));
        let old = place(Priority(128), now(), TaskId(1));
        assert!(urgent(bounds::PRIORITY_LEVEL - Duration::from_micros(1)) < old);
        assert!(old < urgent(bounds::PRIORITY_LEVEL));
    }

    #[test]
    fn a_task_counts_as_a_level_more_urgent_for_each_level_s_worth_of_waiting() {
        let task = place(Priority(118), now(), TaskId(1));
        let after = |minutes| now().plus(bounds::PRIORITY_LEVEL * minutes);
        assert!(task > last_place(Priority(128), after(9)));
        assert!(task <= last_place(Priority(128), after(10)));
        assert!(place(Priority(128), now(), TaskId(1)) <= last_place(Priority(128), now()));
    }

    #[test]
    fn the_extremes_have_a_place() {
        let first = place(Priority::URGENT, Timestamp::MIN, TaskId(1));
        assert!(first < place(Priority(0), Timestamp::from_microseconds(i64::MAX), TaskId(1)));
    }
}
