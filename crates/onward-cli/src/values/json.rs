//! Values as JSON, whose numbers are kept exactly or rejected.

use serde_json::Value;

/// Reads a value.
///
/// # Errors
/// Returns a text for a message if the text is not JSON, or has a number that would lose digits.
pub(crate) fn parse_json(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    match inexact_number(text) {
        None => Ok(value),
        Some(number) => Err(format!(
            "the number {} would lose digits, because a number is a whole one of 64 bits or a double; write it as a text, in quotes",
            shortened(number)
        )),
    }
}

/// The digits of a number that a message shows.
const SHOWN_DIGITS: usize = 40;

fn shortened(number: &str) -> String {
    number.get(..SHOWN_DIGITS).map_or_else(|| number.to_owned(), |beginning| format!("{beginning}…"))
}

/// Returns the first number of a JSON text that its value does not keep exactly.
fn inexact_number(json: &str) -> Option<&str> {
    let is_number = |next: char| next.is_ascii_digit() || matches!(next, '-' | '+' | '.' | 'e' | 'E');
    let mut rest = json;
    while let Some(start) = rest.find(|next: char| next == '"' || next == '-' || next.is_ascii_digit()) {
        let found = &rest[start..];
        if let Some(text) = found.strip_prefix('"') {
            rest = behind_text(text);
            continue;
        }
        let end = found.find(|next| !is_number(next)).unwrap_or(found.len());
        let (number, behind) = found.split_at(end);
        if !is_exact(number) {
            return Some(number);
        }
        rest = behind;
    }
    None
}

/// Returns what follows a text whose opening quote was read.
fn behind_text(text: &str) -> &str {
    let mut characters = text.char_indices();
    while let Some((index, next)) = characters.next() {
        match next {
            '"' => return &text[index + 1..],
            '\\' => {
                characters.next();
            }
            _ => {}
        }
    }
    ""
}

/// Returns whether the value of a number has all its digits.
fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    // The parser is that of values, which may be off by one in the last place.
    let double = serde_json::from_str::<f64>(number).ok().filter(|double| double.is_finite());
    double.is_some_and(|double| decimal(number) == decimal(&format!("{double:e}")))
}

/// Returns the sign of a number, its digits without zeros at the ends, and the power of ten of the
/// last digit. Numbers of equal value have equal ones.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some((is_negative, String::new(), 0));
    }
    let power = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    Some((is_negative, significant.to_owned(), power.checked_add(zeros)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_all_its_digits_is_kept() {
        let json = r#"[0, -0, -0.0, 0.1, 1.10, 1e23, 1E+5, 100.000, 5e-324, 0.000e9, 9007199254740993,
            -9223372036854775808, 18446744073709551615, "1e999", "\"1e999", {"1.0000000000000000001": 7}]"#;
        assert_eq!(inexact_number(json), None);
    }

    #[test]
    fn a_number_that_would_lose_digits_is_named() {
        for number in [
            "18446744073709551617",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "0.12345678901234567890",
            "9007199254740993.0",
            "1e-400",
        ] {
            let json = format!(r#"{{"a\\": [1.5, {number}], "b": 99999999999999999999999}}"#);
            let refused = parse_json(&json).unwrap_err();
            assert!(refused.contains(&format!("the number {number} would lose")), "{refused}");
        }
    }

    #[test]
    fn a_long_number_is_shown_in_part() {
        let refused = parse_json(&"1".repeat(200)).unwrap_err();
        assert!(refused.len() < 300 && refused.contains("1111…"), "{refused}");
    }
}
