//! Handlers and their options.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use onward_store::rules::retry::RetryPolicy;

use super::context::Context;
use super::failure::Failure;
use super::failure_policy::{FailedAttempt, FailurePolicy, Verdict};
use super::middleware::{Middleware, Next};
use super::output::Output;
use crate::engine::{AppState, HasState, KindPattern};
use crate::error::{Error, Result};

pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>>;
pub(crate) type HandlerFunction = Arc<dyn Fn(Context) -> HandlerFuture + Send + Sync>;

/// Options for every task of a kind, or of the kinds of a pattern. A task's own settings override
/// them.
///
/// ```
/// use std::time::Duration;
/// use onward::handlers::{Next, Verdict};
/// use onward::{Context, HandlerOptions};
///
/// let options = HandlerOptions::new()
///     .timeout(Duration::from_secs(60))
///     .wrap(|context: Context, next: Next| async move { next.run(context).await })
///     .on_failure(|failed| match failed.verdict {
///         Verdict::Retry { .. } if failed.failure.message().contains("quota") => Verdict::Dead,
///         verdict => verdict,
///     });
/// ```
#[derive(Debug, Clone, Default)]
pub struct HandlerOptions {
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) heartbeat_timeout: Option<Duration>,
    pub(crate) failure_policy: Option<FailurePolicy>,
    /// The first is the outermost.
    pub(crate) middleware: Vec<Middleware>,
}

impl HandlerOptions {
    /// Returns options that set nothing: the settings of the queue and the engine apply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the retry policy. A task's own policy takes precedence over it, and it takes precedence
    /// over those of the queue and the engine.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets the timeout of one attempt. A task's own timeout takes precedence over it, and it takes
    /// precedence over the engine's.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how long an attempt may run without a heartbeat of its handler
    /// ([`Context::heartbeat`]). After that it is asked to stop, aborted after its grace, and
    /// counts as failed. A heartbeat timeout detects a stuck handler long before a timeout of the
    /// whole work could; a crashed process is detected without it. A task's own takes precedence.
    /// Default: no heartbeat timeout.
    #[must_use]
    pub fn heartbeat_timeout(mut self, timeout: Duration) -> Self {
        self.heartbeat_timeout = Some(timeout);
        self
    }

    /// Sets a function that decides about failed attempts. It gets the failure (also of a panic or
    /// a timeout), the attempt and the verdict of the retry policy, and returns the verdict that
    /// applies. It also overrides the number of attempts: a function that always returns
    /// [`Verdict::Retry`] retries tasks for ever.
    ///
    /// The engine calls it before it writes the end of the attempt, in the attempt's slot, so it
    /// should be quick. It is not called for cancelled or released attempts. If it panics, the
    /// verdict of the retry policy applies.
    #[must_use]
    pub fn on_failure(mut self, decide: impl Fn(&FailedAttempt<'_>) -> Verdict + Send + Sync + 'static) -> Self {
        self.failure_policy = Some(FailurePolicy::new(decide));
        self
    }

    /// Runs a middleware around the handler. It gets the attempt, and continues with [`Next::run`].
    /// Several calls add up: the first middleware is the outermost.
    ///
    /// A middleware runs within the attempt: its time counts, a panic in it is a failure, and when
    /// the attempt is aborted it is dropped where it awaits.
    #[must_use]
    pub fn wrap<F, Fut>(mut self, middleware: F) -> Self
    where
        F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        self.middleware.push(Middleware::new(middleware));
        self
    }

    pub(crate) fn check(&self, pattern: &KindPattern) -> Result<()> {
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::invalid(format!(
                "the handler of `{pattern}` has a timeout of zero; leave it out instead"
            )));
        }
        if self.heartbeat_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::invalid(format!(
                "the handler of `{pattern}` has a heartbeat timeout of zero; leave it out instead"
            )));
        }
        Ok(self.retry.map_or(Ok(()), |retry| retry.check(&pattern.to_string()))?)
    }

    /// Adds options that are nearer to the handler. Their settings take precedence over these, and
    /// their middleware runs inside these.
    pub(crate) fn nearer(&mut self, nearer: &Self) {
        self.retry = nearer.retry.or(self.retry);
        self.timeout = nearer.timeout.or(self.timeout);
        self.heartbeat_timeout = nearer.heartbeat_timeout.or(self.heartbeat_timeout);
        if nearer.failure_policy.is_some() {
            self.failure_policy.clone_from(&nearer.failure_policy);
        }
        self.middleware.extend(nearer.middleware.iter().cloned());
    }
}

/// A handler as it was registered.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) function: HandlerFunction,
    pub(crate) options: HandlerOptions,
    /// The state of its module.
    pub(crate) state: Option<Arc<AppState>>,
    /// A function that finds a state which the handler takes as an argument and which is missing.
    pub(crate) missing: Option<fn(HasState<'_>) -> Option<&'static str>>,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Handler {
    pub(crate) fn new<F, Fut, R>(options: HandlerOptions, function: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        let function = Arc::new(move |context: Context| {
            let future = function(context);
            Box::pin(async move { future.await.map(Into::into) }) as HandlerFuture
        });
        Self { function, options, state: None, missing: None }
    }

    /// Returns the handler with all options that apply to it, and its middleware around its
    /// function.
    pub(crate) fn complete(&self, options: HandlerOptions) -> Self {
        let from_inside = options.middleware.iter().rev();
        let function = from_inside.fold(Arc::clone(&self.function), |inner, middleware| middleware.around(inner));
        Self { function, options, ..self.clone() }
    }
}
