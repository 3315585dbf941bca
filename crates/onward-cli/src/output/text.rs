//! Values as text for people.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use onward_store::{TaskState, Timestamp};
use unicode_width::UnicodeWidthChar;

use super::cleaning::{acts, push_shown};

/// Returns a moment in UTC, to the second.
pub(crate) fn moment(at: Timestamp) -> String {
    Timestamp::from_microseconds(at.as_microseconds().div_euclid(1_000_000) * 1_000_000).to_string()
}

/// Returns a moment in a time zone with its offset, to the second. Falls back to UTC if the zone is
/// unknown.
pub(crate) fn moment_in(at: Timestamp, zone: &str) -> String {
    let zoned = jiff::Timestamp::from_microsecond(at.as_microseconds()).ok();
    let zoned = zoned.and_then(|at| at.in_tz(zone).ok());
    zoned.map_or_else(|| moment(at), |at| at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

/// Returns a value as text, or a dash for `None`.
pub(crate) fn optional<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Returns a count with its noun, which gets an `s` unless the count is one.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Returns a duration with about three digits: `850µs`, `12.3ms`, `4.56s`, `3m20s`, `2h05m`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.as_micros() < 1000 => format!("{}µs", duration.as_micros()),
        0 => format!("{:.1}ms", duration.as_secs_f64() * 1e3),
        1..60 => format!("{:.2}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Returns the state in its colour. [`print_line`](super::print_line) removes the colour if stdout
/// is not a terminal.
pub(crate) fn colored_state(state: TaskState) -> String {
    let style = match state {
        TaskState::Completed => AnsiColor::Green.on_default(),
        TaskState::Failed | TaskState::Dead => AnsiColor::Red.on_default(),
        TaskState::Running => AnsiColor::Cyan.on_default(),
        TaskState::Cancelled | TaskState::Expired => AnsiColor::Yellow.on_default(),
        TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting => Style::new(),
    };
    format!("{style}{state}{style:#}")
}

/// Returns the beginning of a text as one line of at most `columns` columns. Line feeds and tabs
/// become spaces; other control characters become escapes.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for character in text.trim_end().chars() {
        let character = if matches!(character, '\n' | '\r' | '\t') { ' ' } else { character };
        used +=
            if acts(character) { push_shown(String::new(), character).len() } else { character.width().unwrap_or(0) };
        if used > columns {
            line.pop();
            line.push('…');
            break;
        }
        line = push_shown(line, character);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_at_every_size() {
        let shown = [
            Duration::from_micros(850),
            Duration::from_millis(12),
            Duration::from_secs(200),
            Duration::from_secs(7500),
        ]
        .map(duration_text);
        assert_eq!(shown, ["850µs", "12.0ms", "3m20s", "2h05m"]);
    }

    #[test]
    fn a_moment_in_a_zone_has_its_wall_clock_and_offset() {
        let at = "2026-03-29T01:00:00Z".parse().unwrap();
        assert_eq!(moment_in(at, "Europe/Berlin"), "2026-03-29T03:00:00+02:00");
        assert_eq!(moment_in(at, "Mars/Olympus"), "2026-03-29T01:00:00Z");
    }

    #[test]
    fn one_of_something_is_no_plural() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "dead letter")),
            ["0 dead letters", "1 dead letter", "2 dead letters"]
        );
    }

    #[test]
    fn a_long_text_is_cut_to_its_columns() {
        assert_eq!(one_line("one\ntwo three", 8), "one two…");
    }

    #[test]
    fn a_text_that_fits_is_not_cut() {
        assert_eq!(one_line("exactly8", 8), "exactly8");
    }
}
