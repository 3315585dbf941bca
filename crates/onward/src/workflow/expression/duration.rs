//! Durations: `90s`, `1h30m`, `3d`, `2w`.

use jiff::SignedDuration;

use super::shown::Excerpt;

/// The units of a duration, with their nanoseconds. The longer names come first, so that `ms` is
/// not read as minutes.
const UNITS: [(&str, i128); 6] = [
    ("ms", 1_000_000),
    ("s", NANOSECONDS),
    ("m", 60 * NANOSECONDS),
    ("h", 3_600 * NANOSECONDS),
    ("d", 86_400 * NANOSECONDS),
    ("w", 7 * 86_400 * NANOSECONDS),
];

/// The nanoseconds of a second.
const NANOSECONDS: i128 = 1_000_000_000;

/// The most digits that a part of a duration has before or after its point.
const DIGITS: usize = 18;

/// Reads a duration: numbers with the units `ms`, `s`, `m`, `h`, `d` and `w`, one after the other,
/// such as `1h30m`, `1.5s` or `-2d`. A week has seven days of 24 hours.
///
/// # Errors
/// If it is not one, or longer than 292 000 000 000 years.
pub fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("`{}` is not a duration; write it as 250ms, 90s, 1h30m, 3d or 2w", Excerpt(text));
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let (part, behind) = read_part(rest).ok_or_else(wrong)?;
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(wrong)?;
        rest = behind;
    }
    from_nanoseconds(sign * nanoseconds).ok_or_else(wrong)
}

/// Reads one number with its unit, and returns its nanoseconds and the rest of the text.
fn read_part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = read_digits(text)?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => read_digits(rest)?,
        None => ("", rest),
    };
    let (unit, rest) = UNITS.iter().find_map(|(name, unit)| Some((*unit, rest.strip_prefix(name)?)))?;
    // A fraction is cut, not rounded, where it is finer than a nanosecond.
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse().unwrap_or(0_i128).checked_mul(unit)? / scale;
    Some((whole.parse::<i128>().ok()?.checked_mul(unit)?.checked_add(part)?, rest))
}

/// Splits the digits from the start of a text. There is at least one, and not too many.
fn read_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    (1..=DIGITS).contains(&end).then(|| text.split_at(end))
}

/// Returns a duration of nanoseconds, if it is not too long.
fn from_nanoseconds(nanoseconds: i128) -> Option<SignedDuration> {
    let seconds = i64::try_from(nanoseconds / NANOSECONDS).ok()?;
    let rest = i32::try_from(nanoseconds % NANOSECONDS).ok()?;
    Some(SignedDuration::new(seconds, rest))
}

/// Returns a duration in seconds, such as `5400s` or `-0.25s`. [`parse_duration`] reads it again.
#[must_use]
pub fn duration_text(duration: SignedDuration) -> String {
    let sign = if duration.is_negative() { "-" } else { "" };
    let (seconds, rest) = (duration.as_secs().unsigned_abs(), duration.subsec_nanos().unsigned_abs());
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}
