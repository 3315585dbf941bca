//! Differences between what the code of an orchestration does and what its history has.

use std::fmt;

use onward_store::bounds::AWAITED_CANCELLATION;
use onward_store::{Name, Timestamp};

use super::event_text::EventText;
use super::history::HistoryEvent;

/// The difference between the code of an orchestration and its history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nondeterminism {
    /// The index of the event in the history, from 0.
    pub place: u64,
    /// The event of the history; `None` at its end.
    pub expected: Option<HistoryEvent>,
    /// The event of the code; `None` if it does nothing.
    pub found: Option<HistoryEvent>,
    /// The way in which the code has ended by then; `None` if it has not.
    pub ended: Option<CodeEnd>,
    /// The events for which the orchestration waits at the end of the history, if the code does not
    /// wait there.
    pub awaits: Vec<Name>,
    /// The time that the code sees at this event.
    pub now: Timestamp,
    /// The events of the history that began the operations of `expected` and `found`, if they are
    /// known.
    pub(super) begun: [Option<HistoryEvent>; 2],
}

/// The way in which the code of an orchestration ended in a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeEnd {
    /// The code returned a result.
    Completed,
    /// The code returned a failure with this text.
    Failed(String),
    /// The code was dropped at a request to cancel that it does not handle, or has undone its steps
    /// then.
    Cancelled,
    /// The code continued as new.
    ContinuedAsNew,
    /// The code panicked with this message.
    Panicked(String),
    /// The code cannot continue, for this reason: for example it wakes itself again and again.
    Stuck(String),
}

impl fmt::Display for CodeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("it returns a result"),
            Self::Failed(error) => write!(f, "it fails: {error}"),
            Self::Cancelled => f.write_str("it ends at a request to cancel"),
            Self::ContinuedAsNew => f.write_str("it continues as new"),
            Self::Panicked(text) | Self::Stuck(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Nondeterminism {}

impl fmt::Display for Nondeterminism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the code does not match its history: at event {} ", self.place)?;
        match &self.ended {
            Some(end) if self.ends_first() => self.write_end(f, end)?,
            Some(end) => {
                self.write_difference(f)?;
                write!(f, " and ends ({end})")?;
            }
            None => self.write_difference(f)?,
        }
        f.write_str("; bring back the code that wrote it or put the change behind `patched`, then retry the task")
    }
}

impl Nondeterminism {
    /// Adds the events of the history that began the operations of the difference.
    pub(super) fn with_beginnings(mut self: Box<Self>, history: &[HistoryEvent]) -> Box<Self> {
        self.begun = [&self.expected, &self.found].map(|event| begun(event.as_ref()?, history).cloned());
        self
    }

    /// Returns an event in words.
    fn event_text<'a>(&'a self, event: &'a HistoryEvent, begun: &'a Option<HistoryEvent>) -> EventText<'a> {
        EventText { event, begun: begun.as_ref(), now: self.now }
    }

    /// Returns the event of the history and that of the code, in words that differ.
    fn both(&self) -> [Option<String>; 2] {
        let [of_expected, of_found] = &self.begun;
        let expected = self.expected.as_ref().map(|event| self.event_text(event, of_expected).to_string());
        let found = self.found.as_ref().map(|event| self.event_text(event, of_found).to_string());
        if expected.is_none() || expected != found {
            return [expected, found];
        }
        let numbered = |text: Option<String>, event: &Option<HistoryEvent>| {
            let number = event.as_ref().and_then(HistoryEvent::operation)?;
            Some(format!("{} (operation {number})", text?))
        };
        [numbered(expected.clone(), &self.expected).or(expected), numbered(found.clone(), &self.found).or(found)]
    }

    /// Returns true if the code does more than its whole history has.
    pub(in crate::orchestration) fn is_behind_end(&self) -> bool {
        self.expected.is_none() && self.found.is_some()
    }

    /// Returns true if the code ended before it did anything else. Its end cancels everything that
    /// it awaited.
    fn ends_first(&self) -> bool {
        matches!(self.found, None | Some(HistoryEvent::OperationCancelled { .. }))
    }

    /// Writes the event of the history and that of the code.
    fn write_difference(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [expected, found] = self.both();
        match expected {
            Some(expected) => write!(f, "the history has {expected}")?,
            None => f.write_str("the history ends")?,
        }
        match found {
            Some(found) => write!(f, ", and the code has {found}"),
            None => f.write_str(", and the code has nothing of the kind"),
        }
    }

    /// Writes how the code ended, and how the history continues.
    fn write_end(&self, f: &mut fmt::Formatter<'_>, end: &CodeEnd) -> fmt::Result {
        write!(f, "the code ends ({end})")?;
        let [expected, found] = self.both();
        if let Some(expected) = expected {
            return write!(f, ", and its history continues with {expected}");
        }
        if let Some(found) = found {
            return write!(f, " with {found}, and its history has nothing of that");
        }
        let text = |name: &Name| match name.as_str() {
            AWAITED_CANCELLATION => "a request to cancel".to_owned(),
            name => format!("the event `{name}`"),
        };
        let awaits: Vec<String> = self.awaits.iter().map(text).collect();
        write!(f, ", and its history has it wait for {}", awaits.join(" or "))
    }
}

/// Returns the event that began the operation which `event` ends, if it ends one.
fn begun<'a>(event: &HistoryEvent, history: &'a [HistoryEvent]) -> Option<&'a HistoryEvent> {
    let ends = matches!(
        event,
        HistoryEvent::TaskEnded { .. } | HistoryEvent::TimerFired { .. } | HistoryEvent::OperationCancelled { .. }
    );
    let operation = event.operation().filter(|_| ends)?;
    let begins = |event: &&HistoryEvent| {
        matches!(event, HistoryEvent::TaskSubmitted { .. } | HistoryEvent::TimerStarted { .. })
            && event.operation() == Some(operation)
    };
    history.iter().find(begins)
}
