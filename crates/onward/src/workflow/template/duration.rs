//! Durations of a template: `90s`, `1h30m`, `3d`, `2w`.

use std::time::Duration;

use super::bounds::LONGEST_DURATION;
use super::errors::shown;
use crate::workflow::expression::parse_duration;

/// The pattern of a duration, for the JSON Schema.
pub(super) const PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+$";

/// Reads a duration as expressions do. It must not be negative.
///
/// # Errors
/// If the text is not one, or longer than [`LONGEST_DURATION`].
pub(super) fn read(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    match Duration::try_from(duration) {
        Ok(duration) if duration <= LONGEST_DURATION => Ok(duration),
        Ok(_) => Err(format!("the duration `{}` is longer than ten years", shown(text))),
        Err(_) => Err(format!("the duration `{}` is negative; write it without `-`", shown(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_the_sum_of_its_parts() {
        let read =
            ["250ms", "90s", "1h30m", "3d", "0s", "1m1m", "1.5s", "1w"].map(|text| read(text).unwrap().as_millis());
        assert_eq!(read, [250, 90_000, 5_400_000, 259_200_000, 0, 120_000, 1500, 604_800_000]);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "5", "s", "-5s", "1.s", "5 s", "5s ", "1h30", "5weeks", "9999999999999999999999s", "3651d"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
