//! Modules: handlers that a library offers and an engine mounts.

use std::future::Future;
use std::sync::Arc;

use super::app_state::AppState;
use super::injection::{FromState, stateful};
use super::registrations::Target;
use crate::handlers::{Context, Failure, Handler, HandlerOptions, Next, Output};
use crate::submit::{Task, typed};

/// Handlers with their state, middleware and options, which an engine adds as a whole with
/// [`Engine::mount`](crate::Engine::mount).
///
/// A module's settings apply to its own handlers. Two modules may each have a state of the same
/// type, and neither sees the other's. Two handlers for one kind or pattern are an error of the run
/// that names both modules.
///
/// ```
/// use std::sync::Arc;
/// use onward::prelude::*;
/// use onward::engine::{Module, ModuleParts};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Mail { to: String }
///
/// impl Task for Mail {
///     const KIND: &'static str = "mail";
///     type Output = ();
/// }
///
/// struct Sender { from: String }
/// struct Mailing { from: String }
///
/// impl Module for Mailing {
///     fn name(&self) -> &str { "mailing" }
///
///     fn register(self, parts: &mut ModuleParts) {
///         parts.state(Sender { from: self.from });
///         parts.register_stateful(
///             |mail: Mail, sender: Arc<Sender>, _context: Context| async move {
///                 println!("from {} to {}", sender.from, mail.to);
///                 Ok(())
///             },
///         );
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), onward::Error> {
/// let engine = Engine::builder().memory().open().await?;
/// engine.mount(Mailing { from: "us".into() });
/// engine.submit(Mail { to: "you".into() }).await?;
/// assert_eq!(engine.drain().await?.completed, 1);
/// # Ok(()) }
/// ```
pub trait Module {
    /// Returns the name of the module, for messages.
    fn name(&self) -> &str;

    /// Adds the handlers, options and state of the module to `parts`.
    fn register(self, parts: &mut ModuleParts);
}

/// The handlers, options and state of a module.
#[derive(Debug, Default)]
pub struct ModuleParts {
    handlers: Vec<(Target, Handler)>,
    options: HandlerOptions,
    state: AppState,
}

impl ModuleParts {
    /// Registers a handler as [`Engine::handle`](crate::Engine::handle) does.
    pub fn handle<F, Fut, R>(&mut self, kind: impl AsRef<str>, handler: F) -> &mut Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with(kind, HandlerOptions::new(), handler)
    }

    /// Registers a handler as [`Engine::handle_with`](crate::Engine::handle_with) does.
    pub fn handle_with<F, Fut, R>(&mut self, kind: impl AsRef<str>, options: HandlerOptions, handler: F) -> &mut Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handlers.push((Target::Pattern(kind.as_ref().to_owned()), Handler::new(options, handler)));
        self
    }

    /// Registers a handler as [`Engine::register`](crate::Engine::register) does.
    pub fn register<T, F, Fut>(&mut self, handler: F) -> &mut Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_with(HandlerOptions::new(), handler)
    }

    /// Registers a handler as [`Engine::register_with`](crate::Engine::register_with) does.
    pub fn register_with<T, F, Fut>(&mut self, options: HandlerOptions, handler: F) -> &mut Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.handlers.push((Target::of::<T>(), typed::handler(options, handler)));
        self
    }

    /// Registers a handler as [`Engine::register_stateful`](crate::Engine::register_stateful) does.
    /// The module's own state takes precedence over the engine's.
    pub fn register_stateful<T, S, F, Fut>(&mut self, handler: F) -> &mut Self
    where
        T: Task,
        S: FromState,
        F: Fn(T, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.handlers.push((Target::of::<T>(), stateful(HandlerOptions::new(), handler)));
        self
    }

    /// Adds a value that the module's handlers share and find by its type. It takes precedence over
    /// a value of the engine and replaces one of the module of the same type.
    pub fn state<T: Send + Sync + 'static>(&mut self, value: T) -> &mut Self {
        self.state.insert(value);
        self
    }

    /// Sets options for all handlers of the module. They override the engine's options for their
    /// kinds, and a handler's own options override them. Replaces earlier options of the module.
    pub fn options(&mut self, options: HandlerOptions) -> &mut Self {
        self.options = options;
        self
    }

    /// Runs a middleware around all handlers of the module, inside the engine's middleware and
    /// outside a handler's own.
    pub fn wrap<F, Fut>(&mut self, middleware: F) -> &mut Self
    where
        F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        self.options = std::mem::take(&mut self.options).wrap(middleware);
        self
    }

    /// Returns the handlers, each merged with the module's options and state.
    pub(crate) fn into_handlers(self) -> impl Iterator<Item = (Target, Handler)> {
        let (state, of_all) = (Arc::new(self.state), self.options);
        self.handlers.into_iter().map(move |(target, mut handler)| {
            let mut options = of_all.clone();
            options.nearer(&handler.options);
            handler.options = options;
            handler.state = Some(Arc::clone(&state));
            (target, handler)
        })
    }
}
