//! The reports of a command while it runs, line by line.

use std::time::Duration;

use onward_store::Name;

use crate::values::{parse_duration, parse_positive_duration};

/// One line of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Report {
    /// The completed fraction, and a message.
    Progress(f32, Option<String>),
    /// The command is alive.
    Heartbeat,
    /// If it fails, retry after this long.
    RetryAfter(Duration),
    /// It has failed permanently, with this error.
    Fail(String),
    /// If it exits with 0, the task is completed externally, within this time.
    CompleteLater(Option<Duration>),
    /// If it exits with 0, the task moves to this queue.
    Move(Name),
}

impl Report {
    /// Reads a line. The error describes the problem.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        match word {
            "progress" => progress(rest),
            "heartbeat" => Ok(Self::Heartbeat),
            "retry-after" => parse_duration(rest).map(Self::RetryAfter),
            "fail" if rest.is_empty() => Err("`fail` needs a message".to_owned()),
            "fail" => Ok(Self::Fail(rest.to_owned())),
            "complete-later" if rest.is_empty() => Ok(Self::CompleteLater(None)),
            "complete-later" => parse_positive_duration(rest).map(|within| Self::CompleteLater(Some(within))),
            "move" => Name::new(rest).map(Self::Move).map_err(|error| error.to_string()),
            _ => Err(format!(
                "`{word}` is not a report; the reports are progress, heartbeat, retry-after, fail, complete-later and move"
            )),
        }
    }
}

fn progress(rest: &str) -> Result<Report, String> {
    let (fraction, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let message = Some(message.trim().to_owned()).filter(|message| !message.is_empty());
    match fraction.parse::<f32>() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(Report::Progress(fraction, message)),
        _ => Err(format!("`{fraction}` is not a progress; write a number from 0 to 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_has_nothing_and_progress_a_fraction_and_perhaps_a_message() {
        assert_eq!(Report::parse("progress 0.5"), Ok(Report::Progress(0.5, None)));
        assert_eq!(Report::parse("heartbeat"), Ok(Report::Heartbeat));
        assert_eq!(Report::parse("progress 1 all done"), Ok(Report::Progress(1.0, Some("all done".into()))));
    }

    #[test]
    fn a_delay_and_a_failure_are_read() {
        assert_eq!(Report::parse("retry-after 30s"), Ok(Report::RetryAfter(Duration::from_secs(30))));
        assert_eq!(Report::parse("fail no such account"), Ok(Report::Fail("no such account".into())));
    }

    #[test]
    fn another_outcome_is_read() {
        assert_eq!(Report::parse("complete-later"), Ok(Report::CompleteLater(None)));
        assert_eq!(Report::parse("complete-later 2h"), Ok(Report::CompleteLater(Some(Duration::from_secs(7200)))));
        assert_eq!(Report::parse("move slow"), Ok(Report::Move(Name::new("slow").unwrap())));
    }

    #[test]
    fn other_lines_are_errors() {
        for line in ["", "progress", "progress 7", "progress NaN", "retry-after soon", "fail", "done"] {
            assert!(Report::parse(line).is_err(), "{line}");
        }
    }
}
