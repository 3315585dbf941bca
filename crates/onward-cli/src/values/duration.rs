//! Durations: `250ms`, `5s`, `2m`, `1h30m`, `7d`, `1d12h`. A number alone is in seconds.

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
    let (days, rest) = days(text)?;
    let parsed = match rest {
        "" if days.is_some() => SignedDuration::ZERO,
        rest => rest.parse().map_err(|_| wrong())?,
    };
    Ok(days.unwrap_or_default() + Duration::try_from(parsed).map_err(|_| wrong())?)
}

/// Reads the days at the beginning of a duration, and returns them with the rest. The parser of the
/// rest does not read days, because a civil day need not have 24 hours. Here a day always has 24.
fn days(text: &str) -> Result<(Option<Duration>, &str), String> {
    let is_number = |days: &str| !days.is_empty() && days.bytes().all(|byte| byte.is_ascii_digit());
    let Some((days, rest)) = text.split_once('d').filter(|(days, _)| is_number(days)) else { return Ok((None, text)) };
    let too_long = |_| format!("`{text}` is longer than the longest duration, {} days", u32::MAX);
    let days: u32 = days.parse().map_err(too_long)?;
    Ok((Some(Duration::from_secs(u64::from(days) * 24 * 3600)), rest))
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
        let read = ["250ms", "5s", "2m", "1h30m", "7d", "0", "5", "0.5", "1d12h"];
        let read = read.map(|text| parse_duration(text).unwrap().as_millis());
        assert_eq!(read, [250, 5_000, 120_000, 5_400_000, 604_800_000, 0, 5_000, 500, 129_600_000]);
    }

    #[test]
    fn a_duration_that_is_too_long_is_refused_with_the_limit() {
        let error = parse_duration("99999999999d").unwrap_err();
        assert_eq!(error, "`99999999999d` is longer than the longest duration, 4294967295 days");
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_examples() {
        for text in ["", "-5", "-5s", ".", "1.2.3", "soon", "5 parsecs", "d", "5days"] {
            assert!(parse_duration(text).unwrap_err().contains("write it as 250ms"), "{text}");
        }
    }
}
