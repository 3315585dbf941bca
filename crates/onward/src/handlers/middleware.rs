//! What is done around handlers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::context::Context;
use super::failure::Failure;
use super::handler::{HandlerFunction, HandlerFuture};
use super::output::Output;

/// What a middleware calls to go on: the next middleware, or the handler.
///
/// To leave it out ends the attempt with what the middleware answers, and the handler does not run.
pub struct Next(HandlerFunction);

impl Next {
    /// Runs the rest of the attempt. A panic in it passes through, unless the middleware catches
    /// it, and is a failure in the end; when the attempt is aborted, the middleware is dropped
    /// together with what it waits for.
    ///
    /// # Errors
    /// What the handler answers, or a middleware nearer to it.
    pub async fn run(self, context: Context) -> Result<Output, Failure> {
        (self.0)(context).await
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

/// A function around handlers.
#[derive(Clone)]
pub(crate) struct Middleware(Arc<dyn Fn(Context, Next) -> HandlerFuture + Send + Sync>);

impl Middleware {
    pub(crate) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        Self(Arc::new(move |context, next| Box::pin(function(context, next))))
    }

    /// The function that runs this around `inner`.
    pub(crate) fn around(&self, inner: HandlerFunction) -> HandlerFunction {
        let outer = Arc::clone(&self.0);
        Arc::new(move |context| outer(context, Next(Arc::clone(&inner))))
    }
}

impl fmt::Debug for Middleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Middleware").finish_non_exhaustive()
    }
}
