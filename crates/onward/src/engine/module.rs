//! Parts that a library offers and an engine mounts.

use std::future::Future;
use std::sync::Arc;

use super::app_state::AppState;
use super::injection::{FromState, stateful};
use super::registrations::Target;
use crate::handlers::{Context, Failure, Handler, HandlerOptions, Next, Output};
use crate::submit::{Task, typed};

/// Handlers with what belongs to them (state, middleware, options), which an engine takes over as a
/// whole with [`Engine::mount`](crate::Engine::mount).
///
/// What a module says holds for its own handlers: two modules may each have a state of the same
/// type, and neither sees the other's. Two handlers for one kind or pattern are an error of the run
/// that names both modules.
///
/// ```
/// use std::sync::Arc;
/// use onward::prelude::*;
/// use onward::{Module, ModuleParts};
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
///         parts.register_stateful(|mail: Mail, sender: Arc<Sender>, _context: Context| async move {
///             println!("from {} to {}", sender.from, mail.to);
///             Ok(())
///         });
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
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Says what it is made of.
    fn register(self, parts: &mut ModuleParts);
}

/// What a module is made of.
#[derive(Debug, Default)]
pub struct ModuleParts {
    handlers: Vec<(Target, Handler)>,
    options: HandlerOptions,
    state: AppState,
}

impl ModuleParts {
    /// As [`Engine::handle`](crate::Engine::handle).
    pub fn handle<F, Fut, R>(&mut self, kind: impl AsRef<str>, handler: F) -> &mut Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with(kind, HandlerOptions::new(), handler)
    }

    /// As [`Engine::handle_with`](crate::Engine::handle_with).
    pub fn handle_with<F, Fut, R>(&mut self, kind: impl AsRef<str>, options: HandlerOptions, handler: F) -> &mut Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handlers.push((Target::Pattern(kind.as_ref().to_owned()), Handler::new(options, handler)));
        self
    }

    /// As [`Engine::register`](crate::Engine::register).
    pub fn register<T, F, Fut>(&mut self, handler: F) -> &mut Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_with(HandlerOptions::new(), handler)
    }

    /// As [`Engine::register_with`](crate::Engine::register_with).
    pub fn register_with<T, F, Fut>(&mut self, options: HandlerOptions, handler: F) -> &mut Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.handlers.push((Target::of::<T>(), typed::handler(options, handler)));
        self
    }

    /// As [`Engine::register_stateful`](crate::Engine::register_stateful); the module's own state
    /// goes before the engine's.
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

    /// Gives the module's handlers a value to share, found by its type before one that the engine
    /// was given. One of the same type is replaced.
    pub fn state<T: Send + Sync + 'static>(&mut self, value: T) -> &mut Self {
        self.state.insert(value);
        self
    }

    /// Says what holds for all handlers of the module, nearer than what the engine was told of
    /// their kinds, and less near than a handler's own options. Replaces what was said before.
    pub fn options(&mut self, options: HandlerOptions) -> &mut Self {
        self.options = options;
        self
    }

    /// Runs a middleware around all handlers of the module, inside of the engine's and outside of a
    /// handler's own.
    pub fn wrap<F, Fut>(&mut self, middleware: F) -> &mut Self
    where
        F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        self.options = std::mem::take(&mut self.options).wrap(middleware);
        self
    }

    /// The handlers, each with what the module says for all of them.
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
