//! Durations: `250ms`, `5s`, `2m`, `1h30m`, `7d`, `1w`, `1d12h`. A number alone is in seconds.

use std::time::Duration;

use jiff::SignedDuration;

/// The units that the parser of the rest does not read, because a civil day need not have 24 hours.
/// Here a day always has 24 hours, and a week seven such days.
const LONG_UNITS: [(&[&str], i32); 2] = [(&["w", "wk", "wks", "week", "weeks"], 7 * 24), (&["d", "day", "days"], 24)];

/// The longest duration, in days.
const LONGEST_DAYS: u32 = u32::MAX;

/// The longest duration.
const LONGEST: SignedDuration = SignedDuration::from_secs(LONGEST_DAYS as i64 * 24 * 3600);

/// Reads a duration. A number without a unit is in seconds, as for `sleep` and `timeout`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it as 250ms, 5s, 2m, 1h30m, 7d or 2w");
    if text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(wrong);
    }
    let too_long = || format!("`{text}` is longer than the longest duration, {LONGEST_DAYS} days");
    let (mut total, mut rest) = (SignedDuration::ZERO, text);
    while let Some((number, hours, behind)) = long_part(rest) {
        // The number with the unit `h` is a duration, which the hours of the real unit multiply.
        let part: SignedDuration = format!("{number}h").parse().map_err(|_| wrong())?;
        total = part.checked_mul(hours).and_then(|part| total.checked_add(part)).ok_or_else(too_long)?;
        rest = behind.trim_start();
    }
    if !rest.is_empty() || text.is_empty() {
        // A sign or the word `ago` would make a part negative.
        let rest: SignedDuration =
            rest.parse().ok().filter(|rest| !SignedDuration::is_negative(rest)).ok_or_else(wrong)?;
        total = total.checked_add(rest).ok_or_else(too_long)?;
    }
    if total > LONGEST { Err(too_long()) } else { Duration::try_from(total).map_err(|_| wrong()) }
}

/// Splits a number of weeks or days from the start of a text. Returns the number, the hours of its
/// unit, and the rest of the text.
fn long_part(text: &str) -> Option<(&str, i32, &str)> {
    let text = text.trim_start();
    let end = text.find(|next: char| !next.is_ascii_digit() && next != '.').filter(|end| *end > 0)?;
    let (number, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let end = rest.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, hours) = LONG_UNITS.iter().find(|(names, _)| names.contains(&unit))?;
    Some((number, *hours, rest))
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
    fn weeks_and_days_are_read_as_people_write_them() {
        let hours = |text: &str| parse_duration(text).unwrap().as_secs() / 3600;
        let read = ["1w", "2w3d", "1w 2d 3h", "1 week", "2 weeks", "5days", "5 days", "1 day 12h", "1.5d", "0.5w"];
        assert_eq!(read.map(hours), [168, 408, 219, 168, 336, 120, 120, 36, 36, 84]);
    }

    #[test]
    fn a_duration_that_is_too_long_is_refused_with_the_limit() {
        let error = parse_duration("99999999999d").unwrap_err();
        assert_eq!(error, "`99999999999d` is longer than the longest duration, 4294967295 days");
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_examples() {
        for text in [
            "",
            "-5",
            "-5s",
            ".",
            "1.2.3",
            "soon",
            "5 parsecs",
            "d",
            "w",
            "1.2.3d",
            "1d-5s",
            "1d5s ago",
            "2 months",
            "1y",
            "1wd",
        ] {
            assert!(parse_duration(text).unwrap_err().contains("write it as 250ms"), "{text}");
        }
    }
}
