//! Handlers, and which one a kind has.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use onward_store::Name;
use onward_store::rules::retry::RetryPolicy;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>>;
pub(crate) type HandlerFunction = Arc<dyn Fn(Context) -> HandlerFuture + Send + Sync>;

/// What holds for every task of a kind unless the task says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HandlerOptions {
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) timeout: Option<Duration>,
}

impl HandlerOptions {
    /// Nothing of its own: the queue's and the engine's settings hold.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How tasks of this kind are tried again. A task's own policy goes before it; the queue's and the engine's after it.
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
}

/// A handler and what holds for its kind.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) function: HandlerFunction,
    pub(crate) options: HandlerOptions,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Handler {
    pub(crate) fn new<F, Answer, R>(options: HandlerOptions, function: F) -> Self
    where
        F: Fn(Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        let function = Arc::new(move |context: Context| {
            let answer = function(context);
            Box::pin(async move { answer.await.map(Into::into) }) as HandlerFuture
        });
        Self { function, options }
    }
}

/// The handlers as they were registered; what is wrong with them is told when the engine runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registrations {
    kinds: Vec<(String, Handler)>,
    any: Vec<Handler>,
}

impl Registrations {
    pub(crate) fn add(&mut self, kind: &str, handler: Handler) {
        self.kinds.push((kind.to_owned(), handler));
    }

    pub(crate) fn add_any(&mut self, handler: Handler) {
        self.any.push(handler);
    }

    /// Checks the registrations and makes them a table.
    pub(crate) fn table(&self) -> Result<HandlerTable> {
        let mut kinds = HashMap::with_capacity(self.kinds.len());
        for (kind, handler) in &self.kinds {
            check(kind, &handler.options)?;
            if kinds.insert(Name::new(kind)?, handler.clone()).is_some() {
                return Err(Error::invalid(format!("the kind `{kind}` has two handlers; register one")));
            }
        }
        if self.any.len() > 1 {
            return Err(Error::invalid("there are two handlers for any kind; register one with `handle_any`"));
        }
        if kinds.is_empty() && self.any.is_empty() {
            return Err(Error::invalid(
                "the engine has no handler and could run nothing; register one with `handle` or `register`",
            ));
        }
        Ok(HandlerTable { kinds, any: self.any.first().cloned() })
    }
}

fn check(kind: &str, options: &HandlerOptions) -> Result<()> {
    if options.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(Error::invalid(format!("the handler of `{kind}` has a timeout of zero; leave it out instead")));
    }
    Ok(options.retry.map_or(Ok(()), |retry| retry.check(kind))?)
}

/// Which handler a kind has.
#[derive(Debug)]
pub(crate) struct HandlerTable {
    kinds: HashMap<Name, Handler>,
    any: Option<Handler>,
}

impl HandlerTable {
    pub(crate) fn get(&self, kind: &Name) -> Option<&Handler> {
        self.kinds.get(kind).or(self.any.as_ref())
    }

    /// The kinds that have a handler; `None` if every kind has one.
    pub(crate) fn kinds(&self) -> Option<Vec<Name>> {
        self.any.is_none().then(|| self.kinds.keys().cloned().collect())
    }
}
