//! Points in wall time, in microseconds.

use std::fmt;
use std::ops::Sub;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::Error;

/// A point in wall time with microsecond precision. It is displayed and parsed as RFC 3339
/// (`2026-05-04T10:00:00Z`).
///
/// Arithmetic saturates at [`MIN`](Self::MIN) and [`MAX`](Self::MAX) and never wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest time (`-9999-01-02T01:59:59Z`).
    pub const MIN: Self = Self(-377_705_023_201_000_000);
    /// The latest time (`9999-12-30T22:00:00Z`).
    pub const MAX: Self = Self(253_402_207_200_000_000);

    /// Creates a timestamp from microseconds since 1970-01-01T00:00:00Z, clamped to
    /// [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    #[must_use]
    pub fn from_microseconds(microseconds: i64) -> Self {
        Self(microseconds.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn as_microseconds(self) -> i64 {
        self.0
    }

    /// Adds a duration, rounded down to microseconds. The result is at most [`MAX`](Self::MAX).
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let more = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_microseconds(self.0.saturating_add(more))
    }

    /// Subtracts a duration, rounded down to microseconds. The result is at least
    /// [`MIN`](Self::MIN).
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let less = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_microseconds(self.0.saturating_sub(less))
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is not earlier.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        jiff::Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?.fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| {
            Error::invalid(format!("`{text}` is not a time; write it as RFC 3339, such as 2026-05-04T10:00:00Z"))
        })?;
        Ok(Self::from_microseconds(parsed.as_microsecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
