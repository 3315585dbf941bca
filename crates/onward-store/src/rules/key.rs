//! Retention of keys after the end of their tasks.

use std::time::Duration;

use crate::api::timestamp::Timestamp;

/// Returns the time until which the key of a task that ended at `finished_at` stays taken; `None`
/// if it is free at once.
#[must_use]
pub fn kept_until(keep_for: Duration, finished_at: Timestamp) -> Option<Timestamp> {
    (!keep_for.is_zero()).then(|| finished_at.plus(keep_for))
}

/// Returns whether a key that is kept until `until` is still taken. At `until` itself it is free.
#[must_use]
pub fn is_kept(until: Timestamp, now: Timestamp) -> bool {
    now < until
}
