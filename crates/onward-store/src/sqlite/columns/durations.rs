//! Durations as integers of columns. A duration that does not fit becomes the longest that does.

use std::time::Duration;

/// Returns a duration in microseconds.
pub(in crate::sqlite) fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Returns a duration in nanoseconds, the unit of token buckets.
pub(in crate::sqlite) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
