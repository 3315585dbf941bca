//! Timestamps: moments as RFC 3339, between the years 1 and 9999.

use jiff::Timestamp;

use super::value::Value;

/// The first second that has a year of four digits without a sign (`0001-01-01T00:00:00Z`).
const FIRST_SECOND: i64 = -62_135_596_800;

/// The form that a timestamp is to have.
const FORM: &str = "write it as 2026-05-04T10:00:00Z";

/// Reads a timestamp.
pub(super) fn parse_timestamp(text: &str) -> Result<Value, String> {
    let read = if is_rfc3339(text) { text.parse().ok() } else { None };
    read.and_then(in_range).ok_or_else(|| format!("`{}` is not a timestamp; {FORM}", super::shown::Excerpt(text)))
}

/// Returns the moment that is a number of seconds after 1970-01-01T00:00:00Z.
pub(super) fn from_seconds(seconds: i64) -> Result<Value, String> {
    let moment = Timestamp::from_second(seconds).ok().and_then(in_range);
    moment.ok_or_else(|| format!("{seconds} seconds are beyond the years 1 to 9999"))
}

/// Returns a moment as a value, if it is one that expressions know.
pub(super) fn in_range(moment: Timestamp) -> Option<Value> {
    (moment.as_second() >= FIRST_SECOND).then_some(Value::Timestamp(moment))
}

/// Returns the moment of a number of microseconds, or the nearest one that expressions know.
pub(super) fn nearest(microseconds: i64) -> Value {
    let moment = Timestamp::from_microsecond(microseconds).ok().and_then(in_range);
    moment.unwrap_or_else(|| {
        let first = Timestamp::from_second(FIRST_SECOND).unwrap_or(Timestamp::MIN);
        Value::Timestamp(if microseconds < 0 { first } else { Timestamp::MAX })
    })
}

/// Returns true if a text has the form of RFC 3339. The parser reads further forms of ISO 8601,
/// which other implementations of the language reject.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |at: usize, form: u8| match (form, bytes.get(at)) {
        (b'0', Some(byte)) => byte.is_ascii_digit(),
        (b'T', Some(byte)) => byte.eq_ignore_ascii_case(&b'T'),
        (form, byte) => byte == Some(&form),
    };
    let whole = b"0000-00-00T00:00:00";
    if !whole.iter().enumerate().all(|(at, form)| fits(at, *form)) {
        return false;
    }
    let rest = &text[whole.len()..];
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()),
        None => rest,
    };
    is_zone(zone.as_bytes())
}

/// Returns true if a text is `Z` or an offset such as `+02:00`.
fn is_zone(zone: &[u8]) -> bool {
    match zone {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()),
        _ => false,
    }
}
