//! Events of a history in words, for messages to people.

use std::fmt;
use std::time::Duration;

use onward_store::text::Shown;
use onward_store::{TaskState, Timestamp};

use super::history::{HistoryEvent, TaskEnd};

/// An event, as a sentence names it: "the submit of a `charge` task".
pub(super) struct EventText<'a> {
    pub(in crate::orchestration) event: &'a HistoryEvent,
    /// The event that began the operation which this event is about, if it is known.
    pub(super) begun: Option<&'a HistoryEvent>,
    /// The time that the code sees there. Timers count from it.
    pub(in crate::orchestration) now: Timestamp,
}

impl fmt::Display for EventText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event {
            HistoryEvent::Started { .. } => f.write_str("the start of the orchestration"),
            HistoryEvent::TurnBegan { .. } => f.write_str("the beginning of a turn"),
            HistoryEvent::TaskSubmitted { kind, .. } => write!(f, "the submit of a `{}` task", Shown(kind)),
            HistoryEvent::TaskDetached { kind } => write!(f, "the submit of a detached `{}` task", Shown(kind)),
            HistoryEvent::TaskEnded { end, .. } => self.write_end(f, end),
            HistoryEvent::TimerStarted { until, .. } => self.write_timer(f, *until),
            HistoryEvent::TimerFired { .. } => write!(f, "the end of {}", self.operation()),
            HistoryEvent::StepEnded { name, .. } => write!(f, "the end of the step `{}`", Shown(name)),
            HistoryEvent::OperationCancelled { .. } => write!(f, "the cancellation of {}", self.operation()),
            HistoryEvent::SignalReceived { name, .. } => write_signal(f, name),
            HistoryEvent::SignalCarried { name, .. } => {
                write_signal(f, name)?;
                f.write_str(" from before it began")
            }
            HistoryEvent::SignalsUnread { name, count } => write!(f, "{count} unread signals `{}`", Shown(name)),
            HistoryEvent::CancelRequested => f.write_str("a request to cancel"),
            HistoryEvent::CancelCarried => f.write_str("a request to cancel from before it began"),
            HistoryEvent::RepliesCarried { replies } => {
                write!(f, "{replies} updates with replies from before it began again")
            }
            HistoryEvent::Forked { from } => write!(f, "the fork from orchestration {from}"),
            HistoryEvent::TagSet { key, value, .. } => write!(f, "the tag `{}={}`", Shown(key), Shown(value)),
            HistoryEvent::TagRemoved { key, .. } => write!(f, "the removal of the tag `{}`", Shown(key)),
            HistoryEvent::Patched { patch } => write!(f, "the patch `{}`", Shown(patch)),
        }
    }
}

impl EventText<'_> {
    /// Returns the name of the operation that the event is about.
    fn operation(&self) -> String {
        match self.begun {
            Some(HistoryEvent::TaskSubmitted { kind, .. }) => format!("a `{}` task", Shown(kind)),
            Some(HistoryEvent::TimerStarted { until, .. }) => {
                format!("the timer until {}", Timestamp::from_microseconds(*until))
            }
            _ => "a task, timer or step that it waited for".to_owned(),
        }
    }

    fn write_end(&self, f: &mut fmt::Formatter<'_>, end: &TaskEnd) -> fmt::Result {
        let task = match self.begun {
            Some(HistoryEvent::TaskSubmitted { kind, .. }) => format!("a `{}` task", Shown(kind)),
            _ => "a task".to_owned(),
        };
        match end {
            TaskEnd::Completed { .. } => write!(f, "the end of {task} ({})", TaskState::Completed),
            TaskEnd::Failed { error: Some(error), .. } => {
                write!(f, "the end of {task} ({}: {})", end.state(), Shown(error))
            }
            TaskEnd::Failed { error: None, .. } => write!(f, "the end of {task} ({})", end.state()),
            TaskEnd::NotStarted { existing } => {
                write!(f, "{task} that was not started, because task {existing} has its key")
            }
        }
    }

    fn write_timer(&self, f: &mut fmt::Formatter<'_>, until: i64) -> fmt::Result {
        let until = Timestamp::from_microseconds(until);
        if until <= self.now {
            return write!(f, "a timer that is due at once, since {until}");
        }
        write!(f, "a timer of {}, until {until}", DurationText(until - self.now))
    }
}

/// Writes the name of a signal, or of an update, which is a signal with a reply.
fn write_signal(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    match name.strip_prefix("update.") {
        Some(update) => write!(f, "the update `{}`", Shown(update)),
        None => write!(f, "the signal `{}`", Shown(name)),
    }
}

/// A duration as people write it: its largest unit that is not zero, and the next one.
struct DurationText(Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, milliseconds) = (self.0.as_secs(), u64::from(self.0.subsec_millis()));
        let parts = [
            (seconds / 86_400, "d"),
            (seconds / 3600 % 24, "h"),
            (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
            (milliseconds, "ms"),
        ];
        let Some(first) = parts.iter().position(|(count, _)| *count > 0) else { return f.write_str("less than 1 ms") };
        let (count, unit) = parts[first];
        write!(f, "{count} {unit}")?;
        match parts.get(first + 1) {
            Some((count, unit)) if *count > 0 => write!(f, " {count} {unit}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_as_people_write_it() {
        let spoken = |milliseconds| DurationText(Duration::from_millis(milliseconds)).to_string();
        assert_eq!(spoken(7 * 86_400_000), "7 d");
        assert_eq!(spoken(5_400_000), "1 h 30 min");
        assert_eq!(spoken(90_250), "1 min 30 s");
        assert_eq!(spoken(250), "250 ms");
        assert_eq!(spoken(0), "less than 1 ms");
    }

    #[test]
    fn events_are_named_with_what_they_are_about() {
        let text_of = |event: &HistoryEvent, begun: Option<&HistoryEvent>| {
            EventText { event, begun, now: Timestamp::from_microseconds(0) }.to_string()
        };
        let submitted = HistoryEvent::TaskSubmitted { operation: 3, kind: "charge".into() };
        let timer = HistoryEvent::TimerStarted { operation: 4, until: 3_600_000_000 };
        let ended = HistoryEvent::TaskEnded { operation: 3, end: TaskEnd::Completed { result: None } };
        assert_eq!(text_of(&ended, Some(&submitted)), "the end of a `charge` task (completed)");
        assert_eq!(text_of(&timer, None), "a timer of 1 h, until 1970-01-01T01:00:00Z");
        let cancelled = HistoryEvent::OperationCancelled { operation: 4 };
        assert_eq!(text_of(&cancelled, Some(&timer)), "the cancellation of the timer until 1970-01-01T01:00:00Z");
        let signal = HistoryEvent::SignalReceived { name: "update.seat".into(), payload: vec![].into() };
        assert_eq!(text_of(&signal, None), "the update `seat`");
    }
}
