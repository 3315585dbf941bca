//! Durations, as `1h30m`.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// The units that are written, the largest first.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1000)];

/// The unit that is read besides those: a week.
const READ_UNITS: [(&str, u64); 1] = [("w", 7 * 86_400_000_000)];

/// A duration, which is written as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurationText(pub(crate) Duration);

/// Reads a duration: numbers with units, such as `250ms`, `90s`, `1h30m` or `1.5s`.
pub(crate) fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 250ms, 90s, 1h30m, 3d or 2w");
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = &rest[digits..unit_end];
        let microseconds = READ_UNITS.iter().chain(&UNITS).find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        #[expect(clippy::cast_precision_loss, reason = "a unit is far below 2^52")]
        let seconds = number * (microseconds as f64 / 1e6);
        let part = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

fn write_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, microseconds) in UNITS {
        let count = rest / microseconds;
        if count > 0 {
            let _ = write!(text, "{count}{unit}");
            rest %= microseconds;
        }
    }
    if rest > 0 {
        let _ = write!(text, "0.{rest:03}ms");
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&write_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        read_duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl PartialSchema for DurationText {
    fn schema() -> RefOr<Schema> {
        let pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+$";
        let description = "A duration: numbers with the units ms, s, m, h, d and w, such as `1h30m`.";
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).description(Some(description)).into()
    }
}

impl utoipa::ToSchema for DurationText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_as_it_is_written() {
        for text in ["250ms", "1m30s", "1h30m", "3d", "0s", "1s500ms", "0.001ms", "1d1h1m1s1ms"] {
            assert_eq!(write_duration(read_duration(text).unwrap()), text);
        }
        assert_eq!(read_duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(read_duration("1w12h").unwrap(), read_duration("180h").unwrap());
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in ["", "5", "s", "-5s", "5 s", "1h30", "5weeks", "1..5s", "é", "99999999999999999999d"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }
}
