//! Handlers, and what holds for them.

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
use crate::engine::{AppState, Has, KindPattern};
use crate::error::{Error, Result};

pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>>;
pub(crate) type HandlerFunction = Arc<dyn Fn(Context) -> HandlerFuture + Send + Sync>;

/// What holds for every task of a kind, or of the kinds of a pattern, unless the task says
/// otherwise.
///
/// ```
/// use std::time::Duration;
/// use onward::{Context, HandlerOptions, Next, Verdict};
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
    /// Nothing of its own: the queue's and the engine's settings hold.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How tasks of this kind are tried again. A task's own policy goes before it; the queue's and
    /// the engine's after it.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// How long one attempt may take. A task's own timeout goes before it; the engine's after it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long an attempt may go on without a sign of life of its handler
    /// ([`Context::heartbeat`]); then it is asked to stop, and after its grace aborted, and counts
    /// as failed. It notices a handler that is stuck long before a timeout for the whole work
    /// could; a process that is gone is noticed without it. A task's own goes before it. Default:
    /// the handler may be silent.
    #[must_use]
    pub fn heartbeat_timeout(mut self, timeout: Duration) -> Self {
        self.heartbeat_timeout = Some(timeout);
        self
    }

    /// What becomes of an attempt that failed: called with the failure (of a panic and a timeout
    /// too), its attempt, and what the retry policy makes of it, and answers what holds in its
    /// place. It has the last word, also over the number of attempts: one that always answers
    /// [`Verdict::Retry`] has tasks tried for ever.
    ///
    /// It is called before the end of the attempt is written, in the attempt's slot, so it should
    /// be quick; it is not called for what is cancelled or given back. Should it panic, the retry
    /// policy holds.
    #[must_use]
    pub fn on_failure(mut self, decide: impl Fn(&FailedAttempt<'_>) -> Verdict + Send + Sync + 'static) -> Self {
        self.failure_policy = Some(FailurePolicy::new(decide));
        self
    }

    /// Runs a middleware around the handler: it is given the attempt, and goes on with
    /// [`Next::run`]. May be said several times: what was given first is outermost.
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

    /// Adds what is said nearer to the handler: its settings hold before these, its middleware runs
    /// inside of these.
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
    /// What its module gives it.
    pub(crate) state: Option<Arc<AppState>>,
    /// Finds a state that it takes as an argument and that is not there.
    pub(crate) missing: Option<fn(Has<'_>) -> Option<&'static str>>,
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

    /// The handler with all that holds for it, its middleware around its function.
    pub(crate) fn complete(&self, options: HandlerOptions) -> Self {
        let from_inside = options.middleware.iter().rev();
        let function = from_inside.fold(Arc::clone(&self.function), |inner, middleware| middleware.around(inner));
        Self { function, options, ..self.clone() }
    }
}
