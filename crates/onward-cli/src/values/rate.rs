//! Rates: `10/s`, `100/m`, `5/h`.

use std::str::FromStr;
use std::time::Duration;

/// A number of starts per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The number of starts, at least 1.
    pub(crate) starts: u32,
    /// The length of the period.
    pub(crate) period: Duration,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (starts, unit) = text.split_once('/').unwrap_or((text, "s"));
        let seconds = match unit {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(3600),
            _ => None,
        };
        let starts = starts.parse().ok().filter(|starts| *starts > 0);
        let rate = starts.zip(seconds).map(|(starts, seconds)| Self { starts, period: Duration::from_secs(seconds) });
        rate.ok_or_else(|| format!("`{text}` is not a rate; write it as 10/s, 100/m or 5/h, at least 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_per_second_minute_or_hour() {
        let read = ["10/s", "100/m", "5/h", "7"].map(|text| text.parse::<Rate>().unwrap());
        let seconds = |starts, seconds| Rate { starts, period: Duration::from_secs(seconds) };
        assert_eq!(read, [seconds(10, 1), seconds(100, 60), seconds(5, 3600), seconds(7, 1)]);
    }

    #[test]
    fn no_rate_and_a_rate_of_nothing_are_refused() {
        for text in ["", "0/s", "10/d", "fast", "-1/s"] {
            assert!(text.parse::<Rate>().unwrap_err().contains("10/s"), "{text}");
        }
    }
}
