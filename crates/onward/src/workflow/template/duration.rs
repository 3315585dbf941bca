//! Durations as a template writes them: `90s`, `1h30m`, `3d`.

use std::time::Duration;

use super::bounds::LONGEST_DURATION;
use super::errors::shown;

/// The units, with their milliseconds. `ms` stands before `m`, so that it is not read as minutes.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// The pattern of a duration, for the JSON Schema.
pub(super) const PATTERN: &str = "^([0-9]+(ms|s|m|h|d))+$";

/// Reads a duration: whole numbers with their units, one after the other.
///
/// # Errors
/// If the text is not one, or longer than [`LONGEST_DURATION`].
pub(super) fn read(text: &str) -> Result<Duration, String> {
    let mut milliseconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() || text.is_empty() {
        let (part, behind) = part(rest).ok_or_else(|| not_one(text))?;
        milliseconds = milliseconds.saturating_add(part);
        rest = behind;
    }
    match Duration::from_millis(milliseconds) {
        duration if duration <= LONGEST_DURATION => Ok(duration),
        _ => Err(format!("the duration `{}` is longer than ten years", shown(text))),
    }
}

/// Reads one number with its unit, and returns its milliseconds and what stands behind it.
fn part(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let (unit, rest) = UNITS.iter().find_map(|(name, unit)| Some((unit, rest.strip_prefix(name)?)))?;
    // A number that does not fit is longer than any duration may be.
    let number = if number.is_empty() { return None } else { number.parse().unwrap_or(u64::MAX) };
    Some((number.saturating_mul(*unit), rest))
}

fn not_one(text: &str) -> String {
    format!("`{}` is not a duration; write it as 250ms, 90s, 1h30m or 3d", shown(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_the_sum_of_its_parts() {
        let read = ["250ms", "90s", "1h30m", "3d", "0s", "1m1m"].map(|text| read(text).unwrap().as_millis());
        assert_eq!(read, [250, 90_000, 5_400_000, 259_200_000, 0, 120_000]);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "5", "s", "-5s", "1.5s", "5 s", "5s ", "1h30", "5weeks", "9999999999999999999999s", "3651d"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
