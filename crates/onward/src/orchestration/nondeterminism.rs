//! Differences between what the code of an orchestration does and what its history has.

use std::fmt;

use onward_store::Name;

use super::history::HistoryEvent;

/// The code of an orchestration does not do what a history says that it did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nondeterminism {
    /// The place of the event in the history, from 0.
    pub place: u64,
    /// What the history has there; `None` at its end.
    pub expected: Option<HistoryEvent>,
    /// What the code does; `None` for nothing.
    pub found: Option<HistoryEvent>,
    /// The way in which the code has ended by then; `None` if it has not.
    pub ended: Option<CodeEnd>,
    /// The events for which the orchestration waits at the end of the history, where the code does not wait.
    pub awaits: Vec<Name>,
}

/// The way in which the code of an orchestration ended in a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeEnd {
    /// It returned a result.
    Completed,
    /// It returned a failure with this text.
    Failed(String),
    /// It was dropped at a request to cancel that it does not handle.
    Cancelled,
    /// It continued as new.
    ContinuedAsNew,
    /// It panicked with this message.
    Panicked(String),
    /// It cannot go on, for this reason: it wakes itself again and again, say.
    Stuck(String),
}

impl fmt::Display for CodeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("it returns a result"),
            Self::Failed(error) => write!(f, "it fails: {error}"),
            Self::Cancelled => f.write_str("it handles no request to cancel, and is dropped at one"),
            Self::ContinuedAsNew => f.write_str("it continues as new"),
            Self::Panicked(text) | Self::Stuck(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Nondeterminism {}

impl fmt::Display for Nondeterminism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the code does not do what its history says: at event {} ", self.place)?;
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
    /// Returns whether code that has ended did nothing else before: what it awaited is cancelled by its end.
    fn ends_first(&self) -> bool {
        matches!(self.found, None | Some(HistoryEvent::OperationCancelled { .. }))
    }

    /// Writes what the history has and what the code does.
    fn write_difference(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expected {
            Some(expected) => write!(f, "the history has {expected:?}")?,
            None => f.write_str("the history ends")?,
        }
        match &self.found {
            Some(found) => write!(f, ", and the code does {found:?}"),
            None => f.write_str(", and the code does nothing of the kind"),
        }
    }

    /// Writes how the code ended, and what the history has after that.
    fn write_end(&self, f: &mut fmt::Formatter<'_>, end: &CodeEnd) -> fmt::Result {
        write!(f, "the code ends ({end})")?;
        if let Some(expected) = &self.expected {
            return write!(f, ", and its history continues with {expected:?}");
        }
        if let Some(found) = &self.found {
            return write!(f, " and does {found:?}, and its history has nothing of that");
        }
        let awaits: Vec<&str> = self.awaits.iter().map(Name::as_str).collect();
        write!(f, ", and its history has it wait for the event `{}`", awaits.join("`, `"))
    }
}
