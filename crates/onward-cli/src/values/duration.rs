//! Durations: `250ms`, `5s`, `2m`, `1h30m`, `7d`. A number alone is in seconds.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads a duration. A number without a unit is in seconds, as for `sleep` and `timeout`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it as 250ms, 5s, 2m, 1h30m or 7d");
    if text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(wrong);
    }
    let parsed = match text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        // The parser does not read days, because a civil day need not have 24 hours. Here a day
        // always has 24 hours.
        Some(days) => SignedDuration::from_hours(i64::from(days) * 24),
        None => text.parse().map_err(|_| wrong())?,
    };
    Duration::try_from(parsed).map_err(|_| wrong())
}

/// Reads a duration that is longer than zero.
pub(crate) fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => {
            Err("a duration of zero is not allowed here; leave the option out, or give at least 1us".into())
        }
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_the_help_names_are_read() {
        let read =
            ["250ms", "5s", "2m", "1h30m", "7d", "0", "5", "0.5"].map(|text| parse_duration(text).unwrap().as_millis());
        assert_eq!(read, [250, 5_000, 120_000, 5_400_000, 604_800_000, 0, 5_000, 500]);
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_examples() {
        for text in ["", "-5", "-5s", ".", "1.2.3", "soon", "5 parsecs"] {
            assert!(parse_duration(text).unwrap_err().contains("write it as 250ms"), "{text}");
        }
    }
}
