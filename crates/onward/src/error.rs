//! The error type of this crate.

use std::error::Error as StdError;
use std::fmt;

use onward_store::{EventCursor, Refusal, TaskId};

/// The result of an operation of an engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: what went wrong, with which object, and the remedy.
///
/// Either the store failed, or it rejected the operation. The predicates distinguish the cases on
/// which a program acts. The text is for people, and programs must not depend on it.
#[derive(Clone)]
pub struct Error(Cause);

#[derive(Clone)]
enum Cause {
    Store(onward_store::Error),
    Refused(Box<Refusal>),
    /// A refusal in words that fit what the caller asked for.
    Reworded {
        refusal: Box<Refusal>,
        text: String,
    },
    EventsForgotten {
        after: EventCursor,
        oldest: EventCursor,
    },
    Unanswered(String),
}

impl Error {
    #[cold]
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        onward_store::Error::invalid(message).into()
    }

    #[cold]
    pub(crate) fn unexpected(what: &str) -> Self {
        onward_store::Error::corrupt(format!("the store returned the outcome of another write for {what}")).into()
    }

    /// Returns the error of a run that does not exist.
    #[cold]
    pub(crate) fn no_run(run: TaskId) -> Self {
        let text = format!("there is no run {run}; `onward workflow runs` lists those there are");
        Self(Cause::Reworded { refusal: Box::new(Refusal::TaskNotFound(run)), text })
    }

    #[cold]
    pub(crate) fn forgotten(after: EventCursor, oldest: EventCursor) -> Self {
        Self(Cause::EventsForgotten { after, oldest })
    }

    #[cold]
    pub(crate) fn unanswered(message: String) -> Self {
        Self(Cause::Unanswered(message))
    }

    fn store(&self) -> Option<&onward_store::Error> {
        match &self.0 {
            Cause::Store(error) => Some(error),
            Cause::Refused(_) | Cause::Reworded { .. } | Cause::EventsForgotten { .. } | Cause::Unanswered(_) => None,
        }
    }

    /// Returns the refusal if the store rejected the operation. Nothing was changed then.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.0 {
            Cause::Store(_) | Cause::EventsForgotten { .. } | Cause::Unanswered(_) => None,
            Cause::Refused(refusal) | Cause::Reworded { refusal, .. } => Some(refusal),
        }
    }

    /// Returns a cursor if events were pruned before their
    /// [reader](crate::observe::EventStream) had read them: the one before the oldest event that
    /// remains.
    #[must_use]
    pub fn events_forgotten(&self) -> Option<EventCursor> {
        match self.0 {
            Cause::EventsForgotten { oldest, .. } => Some(oldest),
            Cause::Store(_) | Cause::Refused(_) | Cause::Reworded { .. } | Cause::Unanswered(_) => None,
        }
    }

    /// Returns true if an orchestration did not reply to an [update](crate::Engine::update) in
    /// time. It may still carry the update out.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(self.0, Cause::Unanswered(_))
    }

    /// Returns true if the caller's input is invalid. Nothing was changed.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_invalid) || matches!(self.refusal(), Some(Refusal::Invalid(_)))
    }

    /// Returns true if there is no such task, queue, schedule, file or directory.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_not_found)
            || matches!(
                self.refusal(),
                Some(Refusal::TaskNotFound(_) | Refusal::QueueNotFound(_) | Refusal::ScheduleNotFound(_))
            )
    }

    /// Returns true if the task has already ended.
    #[must_use]
    pub fn is_already_ended(&self) -> bool {
        matches!(self.refusal(), Some(Refusal::AlreadyEnded { .. }))
    }

    /// Returns true if the disk or a limit is full. Once there is room the engine continues by
    /// itself.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_full)
    }

    /// Returns true if the store may not be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_read_only)
    }

    /// Returns true if the store is damaged, or is not a store at all.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_corrupt)
    }

    /// Returns true if the store belongs to another version of Onward.
    #[must_use]
    pub fn is_version(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_version)
    }

    /// Returns true if the store's file is not the one that was opened: it was moved, removed,
    /// replaced or overwritten.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_replaced)
    }

    /// Returns true if the server of the store does not accept the user, the password or the key,
    /// or one of them is missing.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_denied)
    }

    /// Returns true if the operation is worth a retry as it is.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.store().is_some_and(onward_store::Error::is_transient)
    }
}

impl From<onward_store::Error> for Error {
    fn from(error: onward_store::Error) -> Self {
        if let Some(refusal) = error.refusal() {
            return refusal.clone().into();
        }
        Self(Cause::Store(error))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self(Cause::Refused(Box::new(refusal)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Store(error) => error.fmt(f),
            Cause::Refused(refusal) => refusal.fmt(f),
            Cause::Unanswered(message) | Cause::Reworded { text: message, .. } => f.write_str(message),
            Cause::EventsForgotten { after, oldest } => write!(
                f,
                "the events from {after} up to {oldest} were pruned before they were read; continue with the oldest event that remains, and \
                 keep history for longer than readers of events are away"
            ),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Store(error) => fmt::Debug::fmt(error, f),
            Cause::Refused(refusal) => fmt::Debug::fmt(refusal, f),
            Cause::Reworded { refusal, text } => f.debug_tuple("Reworded").field(refusal).field(text).finish(),
            Cause::Unanswered(message) => f.debug_tuple("Unanswered").field(message).finish(),
            Cause::EventsForgotten { after, oldest } => {
                f.debug_struct("EventsForgotten").field("after", after).field("oldest", oldest).finish()
            }
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.store().and_then(StdError::source)
    }
}
