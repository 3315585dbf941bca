//! Durations, as the API writes them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The units of the API, in seconds.
const UNITS: [(&str, f64); 6] =
    [("w", 604_800.0), ("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// A duration, which the API writes as a text such as `1h30m`. It is exact to a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DurationText(pub Duration);

impl From<Duration> for DurationText {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (milliseconds, rest) = (self.0.as_millis(), self.0.subsec_micros() % 1000);
        if rest == 0 {
            serializer.collect_str(&format_args!("{milliseconds}ms"))
        } else {
            serializer.collect_str(&format_args!("{milliseconds}.{rest:03}ms"))
        }
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        read(&text).map(Self).ok_or_else(|| serde::de::Error::custom(format_args!("`{text}` is no duration")))
    }
}

fn read(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let seconds = number.parse::<f64>().ok()? * UNITS.iter().find(|(name, _)| *name == unit)?.1;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_as_it_is_written() {
        for micros in [0, 1, 999, 1000, 1_500_000, 86_400_000_000] {
            let duration = Duration::from_micros(micros);
            let text = serde_json::to_value(DurationText(duration)).unwrap();
            assert_eq!(read(text.as_str().unwrap()), Some(duration), "{text}");
        }
        assert_eq!(read("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(read("1w"), Some(Duration::from_secs(604_800)));
        assert_eq!(read("1s500ms"), Some(Duration::from_millis(1500)));
        assert!(["", "5", "s", "-5s", "1..5s", "5weeks"].iter().all(|text| read(text).is_none()));
    }
}
