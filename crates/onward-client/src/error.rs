//! The error of the crate.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a failed call. Predicates distinguish the cases on which a program acts.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Cause>);

#[derive(Debug, Clone, PartialEq)]
enum Cause {
    /// The server refused the request.
    Problem(Problem),
    /// No response came.
    Unavailable { text: String, is_uncertain: bool },
    /// A task did not end in time.
    WaitTimeout { task: String, within: Duration },
    /// A task ended otherwise than completed.
    TaskFailed { task: String, state: String, error: Option<String> },
    /// The caller passed a value that cannot be sent.
    Invalid(String),
    /// A response cannot be read.
    Unreadable(String),
}

/// A refusal by the server, or by a proxy in front of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The stable code, for programs. It is `http_STATUS` for the response of a proxy.
    pub code: String,
    /// The refusal, for people.
    #[serde(default)]
    pub detail: String,
    /// The way to a request that succeeds.
    #[serde(default)]
    pub remedy: String,
    /// The status of HTTP.
    #[serde(skip)]
    pub status: u16,
    /// The part of the request at fault, if it is one.
    pub field: Option<String>,
    /// The number of the request, which the log of the server has.
    pub request_id: Option<String>,
    /// The time after which the server expects another attempt.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// Reads the body of a response with an error.
    pub(crate) fn read(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let read: Option<Self> = serde_json::from_slice(body).ok();
        let problem = read.unwrap_or_else(|| Self {
            code: format!("http_{status}"),
            detail: format!("the response has the status {status} and no problem of Onward"),
            remedy: "look at the proxy, or at the address of the server".to_owned(),
            status,
            field: None,
            request_id: None,
            retry_after: None,
        });
        Self { status, retry_after, ..problem }
    }
}

impl Error {
    /// Returns the refusal, if the server sent one.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match &*self.0 {
            Cause::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns the stable code of the refusal, if the server sent one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| problem.code.as_str())
    }

    /// Returns the remedy of the refusal, if the server sent one.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.problem().map(|problem| problem.remedy.as_str())
    }

    fn has_status(&self, statuses: &[u16]) -> bool {
        self.problem().is_some_and(|problem| statuses.contains(&problem.status))
    }

    /// Returns whether the task, run, template or path does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.has_status(&[404])
    }

    /// Returns whether the state of the thing does not allow the request (409, 412).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.has_status(&[409, 412])
    }

    /// Returns whether a value breaks a rule, as the server (400, 413, 415, 422) or the client
    /// found.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.has_status(&[400, 413, 415, 422]) || matches!(*self.0, Cause::Invalid(_))
    }

    /// Returns whether the key is missing, not valid, or may not do this (401, 403).
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.has_status(&[401, 403])
    }

    /// Returns whether the server stops or has too much to do, and did not recover in time (429,
    /// 503).
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.has_status(&[429, 503])
    }

    /// Returns whether no response came.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(*self.0, Cause::Unavailable { .. })
    }

    /// Returns whether the connection was lost after the request was sent, and the request was not
    /// sent again because it might count twice. It may have taken effect.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        matches!(*self.0, Cause::Unavailable { is_uncertain: true, .. })
    }

    /// Returns whether a task did not end in time. It continues.
    #[must_use]
    pub fn is_wait_timeout(&self) -> bool {
        matches!(*self.0, Cause::WaitTimeout { .. })
    }

    /// Returns whether a task ended otherwise than completed, so that it has no result.
    #[must_use]
    pub fn is_task_failure(&self) -> bool {
        matches!(*self.0, Cause::TaskFailed { .. })
    }

    /// Returns the task of a wait or of a failure.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match &*self.0 {
            Cause::WaitTimeout { task, .. } | Cause::TaskFailed { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Returns the state in which a task ended otherwise than completed.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        match &*self.0 {
            Cause::TaskFailed { state, .. } => Some(state),
            _ => None,
        }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self(Box::new(Cause::Invalid(text.into())))
    }

    #[cold]
    pub(crate) fn unavailable(url: &str, reason: &str) -> Self {
        let text = format!("{url} does not respond ({reason}); start it by `onward serve`, or use another address");
        Self(Box::new(Cause::Unavailable { text, is_uncertain: false }))
    }

    #[cold]
    pub(crate) fn uncertain(url: &str, reason: &str) -> Self {
        let text = format!(
            "{url}: the connection was lost before the response ({reason}); check whether the request took effect"
        );
        Self(Box::new(Cause::Unavailable { text, is_uncertain: true }))
    }

    #[cold]
    pub(crate) fn wait_timeout(task: &str, within: Duration) -> Self {
        Self(Box::new(Cause::WaitTimeout { task: task.to_owned(), within }))
    }

    #[cold]
    pub(crate) fn task_failed(task: &str, state: &str, error: Option<String>) -> Self {
        Self(Box::new(Cause::TaskFailed { task: task.to_owned(), state: state.to_owned(), error }))
    }

    #[cold]
    pub(crate) fn unreadable(text: impl Into<String>) -> Self {
        Self(Box::new(Cause::Unreadable(text.into())))
    }
}

impl From<Problem> for Error {
    #[cold]
    fn from(problem: Problem) -> Self {
        Self(Box::new(Cause::Problem(problem)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Cause::Problem(Problem { detail, remedy, field, .. }) => {
                field.as_ref().map_or(Ok(()), |field| write!(f, "`{field}`: "))?;
                f.write_str(detail)?;
                if remedy.is_empty() { Ok(()) } else { write!(f, "; {remedy}") }
            }
            Cause::Unavailable { text, .. } | Cause::Invalid(text) | Cause::Unreadable(text) => f.write_str(text),
            Cause::WaitTimeout { task, within } => {
                write!(f, "task {task} has not ended within {within:?}; wait for it again, or cancel it")
            }
            Cause::TaskFailed { task, state, error } => {
                write!(f, "task {task} is {state}")?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}
