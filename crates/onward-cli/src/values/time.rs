//! Times: `2026-11-27 12:00`, `tomorrow 9:00`, `1h`.

use jiff::civil::{self, Time};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};
use onward_store::{Clock, SystemClock, Timestamp};

use super::parse_duration;

/// The forms that an error names.
const FORMS: &str = "2026-11-27 12:00, 2026-11-27T12:00:00Z, tomorrow 9:00, 12:00 or 1h";

/// The direction in which an incomplete time is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Resolves `1h` to an hour ago and `12:00` to the last noon.
    Past,
    /// Resolves `1h` to an hour from now and `12:00` to the next noon.
    Future,
}

/// Reads a time in the past, such as the start of a range in history.
pub(crate) fn parse_past_time(text: &str) -> Result<Timestamp, String> {
    local_time(text, Side::Past)
}

/// Reads a time in the future, such as the moment at which a task becomes due.
pub(crate) fn parse_coming_time(text: &str) -> Result<Timestamp, String> {
    local_time(text, Side::Future)
}

/// Reads a time in the future, in a time zone such as `Europe/Berlin`.
pub(crate) fn coming_time_in(zone: &str, text: &str) -> Result<Timestamp, String> {
    let now = now()
        .to_zoned(TimeZone::UTC)
        .in_tz(zone)
        .map_err(|_| format!("`{zone}` is not a time zone; write it as Europe/Berlin"))?;
    time(text, &now, Side::Future)
}

/// Returns the time zone of this machine: that of the variable `TZ`, or else that of the system. A
/// machine without a time zone is in UTC.
///
/// # Errors
/// If `TZ` names a time zone that does not exist.
pub(crate) fn local_zone() -> Result<TimeZone, String> {
    match (TimeZone::try_system(), std::env::var_os("TZ")) {
        (Ok(zone), _) => Ok(zone),
        (Err(_), None) => Ok(TimeZone::UTC),
        (Err(_), Some(named)) => Err(format!(
            "the variable TZ is `{}`, which is not a time zone; set it to one such as Europe/Berlin, or unset it",
            named.display()
        )),
    }
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(SystemClock.now().as_microseconds()).unwrap_or_default()
}

/// Returns the time that a text names, in the time zone of this machine if the text names none. The
/// zone matters only to a text with a wall-clock time.
fn local_time(text: &str, side: Side) -> Result<Timestamp, String> {
    match local_zone() {
        Ok(zone) => time(text, &now().to_zoned(zone), side),
        Err(wrong) => zoneless_time(text, &now().to_zoned(TimeZone::UTC), side).ok_or(wrong),
    }
}

/// Reads a time that is the same in every time zone.
fn zoneless_time(text: &str, now: &Zoned, side: Side) -> Option<Timestamp> {
    let zoned = || distance(text, now, side).or_else(|| text.parse::<Zoned>().ok());
    text.parse().ok().or_else(|| Some(timestamp(&zoned()?)))
}

fn timestamp(zoned: &Zoned) -> Timestamp {
    Timestamp::from_microseconds(zoned.timestamp().as_microsecond())
}

/// Returns the time that a text names, in the time zone of `now` if the text names none.
///
/// Only few forms are accepted, on purpose. A parser as lenient as that of GNU `date` reads `1h` as
/// one o'clock in the military zone H, and a task would run at a time that its author did not mean.
fn time(text: &str, now: &Zoned, side: Side) -> Result<Timestamp, String> {
    let wrong = || format!("`{text}` is not a time; write it as {FORMS}");
    if let Some(exact) = zoneless_time(text, now, side) {
        return Ok(exact);
    }
    let zoned = day_with_time(text, now)
        .or_else(|| clock_time(text, now, side))
        .or_else(|| text.parse::<civil::DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok());
    zoned.map(|zoned| timestamp(&zoned)).ok_or_else(wrong)
}

/// Reads `now`, `1h`, `in 1h` or `1h ago`.
fn distance(text: &str, now: &Zoned, side: Side) -> Option<Zoned> {
    let (duration, side) = match (text.strip_prefix("in "), text.strip_suffix(" ago")) {
        _ if text == "now" => return Some(now.clone()),
        (Some(duration), _) => (duration, Side::Future),
        (None, Some(duration)) => (duration, Side::Past),
        // A bare number could be a year, an hour or seconds, and `12:00:30` is a time of day. As a
        // duration it would be half a day from now.
        (None, None) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') => return None,
        (None, None) => (text, side),
    };
    let duration = parse_duration(duration.trim()).ok()?;
    match side {
        Side::Past => now.checked_sub(duration).ok(),
        Side::Future => now.checked_add(duration).ok(),
    }
}

/// Reads `today`, `tomorrow 9:00` or `yesterday 23:30`. A day alone means its start.
fn day_with_time(text: &str, now: &Zoned) -> Option<Zoned> {
    let (day, rest) = text.split_once(' ').unwrap_or((text, ""));
    let date = match day {
        "today" => now.date(),
        "tomorrow" => now.date().checked_add(1.day()).ok()?,
        "yesterday" => now.date().checked_sub(1.day()).ok()?,
        _ => return None,
    };
    let time = if rest.is_empty() { Time::midnight() } else { wall_clock(rest)? };
    date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()
}

/// Reads `12:00` as the last or the next one.
fn clock_time(text: &str, now: &Zoned, side: Side) -> Option<Zoned> {
    let time = wall_clock(text)?;
    let on = |date: civil::Date| date.to_datetime(time).to_zoned(now.time_zone().clone()).ok();
    let today = on(now.date())?;
    match side {
        Side::Past if today > *now => on(now.date().checked_sub(1.day()).ok()?),
        Side::Future if today < *now => on(now.date().checked_add(1.day()).ok()?),
        _ => Some(today),
    }
}

/// Reads a time of day. Its hour may have one digit.
fn wall_clock(text: &str) -> Option<Time> {
    let text = text.trim();
    // The parser would also accept a date with a time, and ignore the date.
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    let hour = text.split_once(':')?.0;
    if hour.len() == 1 { format!("0{text}").parse().ok() } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns half past ten on a Friday in Berlin, an hour ahead of UTC.
    fn now() -> Zoned {
        "2026-11-27T10:30:00[Europe/Berlin]".parse().unwrap()
    }

    fn read(text: &str, side: Side) -> String {
        time(text, &now(), side).unwrap().to_string()
    }

    #[test]
    fn a_date_with_a_time_is_in_the_zone_of_the_machine() {
        let texts = ["2026-11-28 12:00", "2026-11-28T12:00:30", "2026-11-28"];
        let read = texts.map(|text| read(text, Side::Future));
        assert_eq!(read, ["2026-11-28T11:00:00Z", "2026-11-28T11:00:30Z", "2026-11-27T23:00:00Z"]);
    }

    #[test]
    fn a_time_with_an_offset_or_a_zone_is_in_that() {
        let texts = ["2026-11-28T12:00:00Z", "2026-11-28T12:00:00+05:30", "2026-11-28T12:00[America/New_York]"];
        let read = texts.map(|text| read(text, Side::Past));
        assert_eq!(read, ["2026-11-28T12:00:00Z", "2026-11-28T06:30:00Z", "2026-11-28T17:00:00Z"]);
    }

    #[test]
    fn a_day_by_name_may_have_a_time() {
        let texts = ["now", "today", "tomorrow 9:00", "yesterday 23:30"];
        let read = texts.map(|text| read(text, Side::Future));
        assert_eq!(
            read,
            ["2026-11-27T09:30:00Z", "2026-11-26T23:00:00Z", "2026-11-28T08:00:00Z", "2026-11-26T22:30:00Z"]
        );
    }

    #[test]
    fn a_time_of_day_is_the_next_one_or_the_last_one() {
        assert_eq!(
            ["12:00", "9:00", "12:00:30", "9:00:30"].map(|text| read(text, Side::Future)),
            ["2026-11-27T11:00:00Z", "2026-11-28T08:00:00Z", "2026-11-27T11:00:30Z", "2026-11-28T08:00:30Z"]
        );
        assert_eq!(
            ["12:00", "9:00"].map(|text| read(text, Side::Past)),
            ["2026-11-26T11:00:00Z", "2026-11-27T08:00:00Z"]
        );
    }

    #[test]
    fn a_duration_counts_from_now_in_the_direction_that_is_meant() {
        assert_eq!(
            ["1h", "in 1h", "1h ago"].map(|text| read(text, Side::Future)),
            ["2026-11-27T10:30:00Z", "2026-11-27T10:30:00Z", "2026-11-27T08:30:00Z"]
        );
        assert_eq!(["1h", "7d"].map(|text| read(text, Side::Past)), ["2026-11-27T08:30:00Z", "2026-11-20T09:30:00Z"]);
    }

    #[test]
    fn a_text_that_is_not_a_time_is_refused_with_examples() {
        for text in ["", "10", "2026", "soon", "25:00", "25:00:00", "12:00:61", "tomorrow noon", "2026-13-01 10:00"] {
            assert!(time(text, &now(), Side::Future).unwrap_err().contains("tomorrow 9:00"), "{text}");
        }
    }
}
