//! Functions that run around handlers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::context::Context;
use super::failure::Failure;
use super::handler::{HandlerFunction, HandlerFuture};
use super::output::Output;

/// The rest of an attempt, which a middleware continues with: the next middleware, or the handler.
///
/// A middleware that does not run it ends the attempt with its own return value, and the handler
/// does not run.
pub struct Next(HandlerFunction);

impl Next {
    /// Runs the rest of the attempt. A panic in it passes through, unless the middleware catches
    /// it, and becomes a failure. When the attempt is aborted, the middleware is dropped together
    /// with the future that it awaits.
    ///
    /// # Errors
    /// The failure of the handler, or of a middleware nearer to it.
    pub async fn run(self, context: Context) -> Result<Output, Failure> {
        (self.0)(context).await
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

/// A function that runs around handlers.
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

    /// Returns a function that runs this middleware around `inner`.
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
