//! What a handler answers when it did not succeed.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use onward_store::rules::retry::FailureClass;
use onward_store::{Name, OnDependencyFailure};

/// Why an attempt did not succeed, and whether trying again may help.
///
/// Whatever converts into `Box<dyn Error + Send + Sync>` becomes a retryable failure by `?`: any
/// error, that box itself, `anyhow::Error` and `eyre::Report`, `String` and `&str`. The causes are
/// kept in the text. A failure that was [turned into an error](Self::into_error) keeps its class on
/// the way back, also below a context of anyhow.
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
/// It is no `std::error::Error` itself: then it could not be made of every other one. In a function
/// that returns another error, write `.map_err(Failure::into_error)?`, or plain `?` into
/// `anyhow::Error` with the feature `anyhow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    class: FailureClass,
    /// There if it is no failure, but another end of the attempt.
    alternative_end: Option<Box<AlternativeEnd>>,
}

/// What an attempt asks for that has not failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AlternativeEnd {
    /// To go on when its children have ended.
    Children(ChildrenWait),
    /// To be finished by somebody else, within a time.
    Completion(Option<Duration>),
    /// To go on in another queue.
    Move(Name),
    /// To begin again, as an orchestration, with another payload.
    ContinueAsNew(Bytes),
    /// To end, as an orchestration, as cancelled.
    Cancelled,
}

/// How an attempt waits for the children of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChildrenWait {
    pub(crate) memo: Bytes,
    pub(crate) on_failure: OnDependencyFailure,
}

impl Failure {
    /// Trying again may help: the retry policy says whether and when.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self { message: message.into(), class: FailureClass::Retryable, alternative_end: None }
    }

    /// Trying again cannot help: the task has failed, whatever its policy says.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), class: FailureClass::Permanent, alternative_end: None }
    }

    /// Trying again may help after this time, which takes the place of the policy's delay. The
    /// attempt counts.
    pub fn retry_after(message: impl Into<String>, after: Duration) -> Self {
        Self { message: message.into(), class: FailureClass::RetryAfter(after), alternative_end: None }
    }

    /// Nothing was wrong with the task (something it needs is busy): try again after this time and
    /// do not count the attempt. A handler that always answers so is tried for ever.
    pub fn not_counted(message: impl Into<String>, after: Duration) -> Self {
        Self { message: message.into(), class: FailureClass::NotCounted(after), alternative_end: None }
    }

    /// Nothing went wrong: the attempt ends for a while, without a result, and the task goes on
    /// when all of its children have ended, however they did. Its handler is then called once more
    /// and finds `memo` in [`Context::memo`](crate::Context::memo) and the children in
    /// [`Context::children`](crate::Context::children). This attempt is not counted. The memo is at
    /// most as large as a payload may be.
    ///
    /// What the attempt has spawned is submitted in the same commit. A task without live children
    /// goes on at once.
    ///
    /// ```
    /// use onward::{Context, Failure, NewTask};
    ///
    /// async fn order(context: Context) -> Result<String, Failure> {
    ///     if context.memo().is_none() {
    ///         context.spawn_task(NewTask::new("pack")?);
    ///         context.spawn_task(NewTask::new("invoice")?);
    ///         return Err(Failure::await_children("both"));
    ///     }
    ///     Ok(format!("{} tasks done", context.children().await?.len()))
    /// }
    /// ```
    pub fn await_children(memo: impl Into<Bytes>) -> Self {
        Self::waiting(memo.into(), OnDependencyFailure::Ignore)
    }

    /// The same, but fail-fast: the first child that ends otherwise than completed fails the task,
    /// and the other children are cancelled.
    pub fn await_children_or_fail(memo: impl Into<Bytes>) -> Self {
        Self::waiting(memo.into(), OnDependencyFailure::Fail)
    }

    fn waiting(memo: Bytes, on_failure: OnDependencyFailure) -> Self {
        Self::with_alternative_end(
            AlternativeEnd::Children(ChildrenWait { memo, on_failure }),
            "it waits for its children",
        )
    }

    pub(crate) fn letting_go(within: Option<Duration>) -> Self {
        Self::with_alternative_end(AlternativeEnd::Completion(within), "it waits to be finished from elsewhere")
    }

    pub(crate) fn moving(queue: Name) -> Self {
        let message = format!("it goes on in the queue `{queue}`");
        Self::with_alternative_end(AlternativeEnd::Move(queue), message)
    }

    /// What a panic says, as a failure.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::retryable(format!("it panicked: {}", text.unwrap_or("(no message)")))
    }

    pub(crate) fn with_alternative_end(alternative_end: AlternativeEnd, message: impl Into<String>) -> Self {
        Self { alternative_end: Some(Box::new(alternative_end)), ..Self::retryable(message) }
    }

    /// What it stands for, if it is no failure.
    pub(crate) fn alternative_end(&self) -> Option<&AlternativeEnd> {
        self.alternative_end.as_deref()
    }

    /// What went wrong. The store keeps the first 8 KiB of it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What it asks for.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        self.class
    }

    /// Returns the same with another message.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same with more at the end of its message.
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
