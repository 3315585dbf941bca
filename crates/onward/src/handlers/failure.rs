//! The failure that a handler returns.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use onward_store::rules::retry::FailureClass;
use onward_store::{Name, OnDependencyFailure};

/// The reason why an attempt did not succeed, and whether a retry may help.
///
/// Everything that converts into `Box<dyn Error + Send + Sync>` becomes a retryable failure by `?`:
/// any error, that box itself, `anyhow::Error` and `eyre::Report`, `String` and `&str`. The text
/// includes the causes. A failure that was [turned into an error](Self::into_error) keeps its class
/// on the way back, also below a context of anyhow.
///
/// ```
/// use std::time::Duration;
/// use onward::Failure;
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse::<u32>()?)
/// }
/// assert_eq!(parse("x").unwrap_err().message(), "invalid digit found in string");
/// let overloaded = Failure::retry_after("the server asked for a pause", Duration::from_secs(30));
/// ```
///
/// It is not a `std::error::Error` itself, because it could not convert from every other error
/// then. In a function that returns another error, write `.map_err(Failure::into_error)?`, or plain
/// `?` into `anyhow::Error` with the feature `anyhow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    class: FailureClass,
    /// Set if this is not a failure, but another end of the attempt.
    alternative_end: Option<Box<AlternativeEnd>>,
}

/// An end of an attempt that has not failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AlternativeEnd {
    /// Continues when its children have ended.
    Children(ChildrenWait),
    /// Is completed externally, within a time.
    Completion(Option<Duration>),
    /// Continues in another queue.
    Move(Name),
    /// Begins again, as an orchestration, with another payload.
    ContinueAsNew(Bytes),
    /// Ends, as an orchestration, as cancelled.
    Cancelled,
    /// Returns the task to its queue, uncounted.
    Release,
    /// The process that ran the attempt has ended.
    Crashed,
}

/// The wait of an attempt for the children of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChildrenWait {
    pub(crate) checkpoint: Bytes,
    pub(crate) on_failure: OnDependencyFailure,
}

impl Failure {
    /// Returns a failure that a retry may fix: the retry policy decides whether and when.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self { message: message.into(), class: FailureClass::Retryable, alternative_end: None }
    }

    /// Returns a failure that a retry cannot fix: the task fails, whatever its policy is.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), class: FailureClass::Permanent, alternative_end: None }
    }

    /// Returns a failure that a retry may fix after this time, which replaces the policy's delay.
    /// The attempt counts.
    pub fn retry_after(message: impl Into<String>, after: Duration) -> Self {
        Self { message: message.into(), class: FailureClass::RetryAfter(after), alternative_end: None }
    }

    /// Returns a failure that is not the task's fault, for example because something that it needs
    /// is busy. The task is retried after this time and the attempt does not count. A handler that
    /// always returns this is retried for ever.
    pub fn not_counted(message: impl Into<String>, after: Duration) -> Self {
        Self { message: message.into(), class: FailureClass::NotCounted(after), alternative_end: None }
    }

    /// Gives the task back as if this attempt had not been. It waits in its queue again at once,
    /// and the attempt does not count. A handler that always returns this runs its task for ever.
    #[must_use]
    pub fn released() -> Self {
        Self::with_alternative_end(AlternativeEnd::Release, "it was given back")
    }

    /// Ends an attempt whose process has ended, for a handler that runs its work in another
    /// process. The attempt counts, and the task is retried at once, even if its retry policy
    /// permits no retry. It becomes a dead letter with the last attempt of its policy, but not
    /// before its third ([`bounds::LOST_LEASES`](onward_store::bounds::LOST_LEASES)).
    pub fn crashed(message: impl Into<String>) -> Self {
        Self::with_alternative_end(AlternativeEnd::Crashed, message)
    }

    /// Ends the attempt without a failure or a result. The task continues when all of its children
    /// have ended, however they did. Its handler is then called once more, and finds `checkpoint`
    /// in [`Context::checkpoint_bytes`](crate::Context::checkpoint_bytes) and the children in
    /// [`Context::children`](crate::Context::children). This attempt does not count. `checkpoint`
    /// has the size limit of a payload.
    ///
    /// The tasks that the attempt has spawned are submitted in the same commit. A task without live
    /// children continues at once.
    ///
    /// ```
    /// use onward::{Context, Failure, NewTask};
    ///
    /// async fn order(context: Context) -> Result<String, Failure> {
    ///     if context.checkpoint_bytes().is_none() {
    ///         context.spawn_task(NewTask::new("pack")?);
    ///         context.spawn_task(NewTask::new("invoice")?);
    ///         return Err(Failure::await_children("both"));
    ///     }
    ///     Ok(format!("{} tasks done", context.children().await?.len()))
    /// }
    /// ```
    pub fn await_children(checkpoint: impl Into<Bytes>) -> Self {
        Self::waiting(checkpoint.into(), OnDependencyFailure::Ignore)
    }

    /// Waits for the children as [`await_children`](Self::await_children) does, but fails fast: the
    /// first child that does not complete fails the task, and the other children are cancelled.
    pub fn await_children_or_fail(checkpoint: impl Into<Bytes>) -> Self {
        Self::waiting(checkpoint.into(), OnDependencyFailure::Fail)
    }

    fn waiting(checkpoint: Bytes, on_failure: OnDependencyFailure) -> Self {
        Self::with_alternative_end(
            AlternativeEnd::Children(ChildrenWait { checkpoint, on_failure }),
            "it waits for its children",
        )
    }

    pub(crate) fn letting_go(within: Option<Duration>) -> Self {
        Self::with_alternative_end(AlternativeEnd::Completion(within), "it waits for external completion")
    }

    pub(crate) fn moving(queue: Name) -> Self {
        let message = format!("it continues in the queue `{queue}`");
        Self::with_alternative_end(AlternativeEnd::Move(queue), message)
    }

    /// Returns the message of a panic as a failure.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::retryable(format!("it panicked: {}", text.unwrap_or("(no message)")))
    }

    pub(crate) fn with_alternative_end(alternative_end: AlternativeEnd, message: impl Into<String>) -> Self {
        Self { alternative_end: Some(Box::new(alternative_end)), ..Self::retryable(message) }
    }

    /// Returns the other end of the attempt, if this is not a failure.
    pub(crate) fn alternative_end(&self) -> Option<&AlternativeEnd> {
        self.alternative_end.as_deref()
    }

    /// Returns the message. The store keeps its first 8 KiB.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the class, which decides about retries.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        self.class
    }

    /// Returns the failure with another message.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Appends to the message.
    pub(crate) fn appended(mut self, mark: &str, text: &str) -> Self {
        self.message.push_str(mark);
        self.message.push_str(text);
        self
    }

    pub(crate) fn into_parts(self) -> (String, FailureClass) {
        (self.message, self.class)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
