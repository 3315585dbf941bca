//! The day to which the end of a task counts, and the days that are kept.

use crate::api::timestamp::Timestamp;
use crate::bounds;

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Returns the day of a time in UTC, counted from 1970-01-01.
#[must_use]
pub fn day_of(at: Timestamp) -> i64 {
    at.as_microseconds().div_euclid(DAY)
}

/// Returns the first moment of a day.
#[must_use]
pub fn beginning(day: i64) -> Timestamp {
    Timestamp::from_microseconds(day.saturating_mul(DAY))
}

/// Returns the day to which an end counts. It is never earlier than the latest day with ends, so a
/// clock that is set back does not reopen a past day.
#[must_use]
pub fn counted_on(at: Timestamp, latest: Option<i64>) -> i64 {
    latest.map_or(day_of(at), |latest| latest.max(day_of(at)))
}

/// Returns the first of the last `days` days up to that of `at`. `days` is clamped to 1 to
/// [`HISTORY_DAYS`](bounds::HISTORY_DAYS).
#[must_use]
pub fn first_day(at: Timestamp, latest: Option<i64>, days: u32) -> i64 {
    counted_on(at, latest) + 1 - i64::from(days.clamp(1, bounds::HISTORY_DAYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(microseconds: i64) -> Timestamp {
        Timestamp::from_microseconds(microseconds)
    }

    #[test]
    fn a_day_ends_with_its_last_microsecond_also_before_1970() {
        assert_eq!([-1, 0, DAY - 1, DAY].map(|microseconds| day_of(at(microseconds))), [-1, 0, 0, 1]);
    }

    #[test]
    fn a_clock_that_was_set_back_counts_to_the_latest_day() {
        assert_eq!([counted_on(at(0), Some(3)), counted_on(at(5 * DAY), Some(3))], [3, 5]);
    }

    #[test]
    fn one_day_is_today_alone_and_no_more_than_ninety_can_be_asked_for() {
        assert_eq!([0, 1, 7, 5000].map(|days| first_day(at(100 * DAY), None, days)), [100, 100, 94, 11]);
    }
}
