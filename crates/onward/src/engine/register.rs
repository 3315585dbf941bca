//! Registering handlers, middleware, hooks and state.

use std::future::Future;
use std::sync::Arc;

use super::injection::{FromState, stateful};
use super::inner::{Engine, lock};
use super::module::{Module, ModuleParts};
use super::registrations::Target;
use crate::error::Result;
use crate::handlers::{Context, Failure, Handler, HandlerOptions, Next, Output, batch};
use crate::observe::{Hook, Transition};
use crate::submit::{Task, typed};

/// Handlers. They count from the next run on. Several that belong together are a
/// [`Module`].
impl Engine {
    /// Registers the handler of a kind, or of a pattern: the beginning of kinds and a `*`
    /// (`image:*`; `*` alone for every kind). A kind's own handler goes before those of patterns,
    /// and of these the longest that matches holds. This engine leaves kinds that none of its
    /// handlers is for to others.
    ///
    /// What is wrong with a registration (a bad name, a second handler of the same kind or pattern)
    /// is told by the run. Kinds that begin with `onward.` are reserved, and no pattern matches
    /// them.
    pub fn handle<F, Fut, R>(&self, kind: impl AsRef<str>, handler: F) -> &Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with(kind, HandlerOptions::new(), handler)
    }

    /// Registers the handler of a kind or a pattern with options that hold for it.
    pub fn handle_with<F, Fut, R>(&self, kind: impl AsRef<str>, options: HandlerOptions, handler: F) -> &Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        let target = Target::Pattern(kind.as_ref().to_owned());
        lock(&self.inner.registrations).add(target, Handler::new(options, handler), None);
        self
    }

    /// Says what holds for every handler of a kind or of the kinds of a pattern (`*` for all): how
    /// it is tried again, how long it may take, what becomes of failures, what runs around it.
    ///
    /// What is said of fewer kinds holds before what is said of more, and a handler's own options
    /// before what is said of the pattern that it was registered for. All middleware counts: that
    /// of the shorter pattern is outside, what was given first outside of what was given later, and
    /// a handler's own is innermost. One pattern may be given options several times, but each
    /// setting other than middleware once.
    pub fn options(&self, pattern: impl AsRef<str>, options: HandlerOptions) -> &Self {
        let target = Target::Pattern(pattern.as_ref().to_owned());
        lock(&self.inner.registrations).add_options(target, options);
        self
    }

    /// Runs a middleware around every handler: `options("*",
    /// HandlerOptions::new().wrap(middleware))`.
    ///
    /// ```
    /// # use onward::{Context, Engine, Next};
    /// # fn middleware(engine: &Engine) {
    /// engine.wrap(|context: Context, next: Next| async move {
    ///     let (kind, task) = (context.kind().clone(), context.id());
    ///     let answer = next.run(context).await;
    ///     println!("{kind} {task}: {}", if answer.is_ok() { "ok" } else { "failed" });
    ///     answer
    /// });
    /// # }
    /// ```
    pub fn wrap<F, Fut>(&self, middleware: F) -> &Self
    where
        F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        self.options("*", HandlerOptions::new().wrap(middleware))
    }

    /// Registers the handler of every kind that has none of its own: that of the pattern `*`.
    pub fn handle_any<F, Fut, R>(&self, handler: F) -> &Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_any_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of every kind that has none of its own, with options.
    pub fn handle_any_with<F, Fut, R>(&self, options: HandlerOptions, handler: F) -> &Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with("*", options, handler)
    }

    /// Registers the handler of a typed task.
    pub fn register<T, F, Fut>(&self, handler: F) -> &Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of a typed task with options that hold for its kind.
    pub fn register_with<T, F, Fut>(&self, options: HandlerOptions, handler: F) -> &Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        let target = Target::of::<T>();
        lock(&self.inner.registrations).add(target, typed::handler(options, handler), None);
        self
    }

    /// Registers the handler of a typed task that is collected and handed over in
    /// [bundles](crate::Aggregate): it gets the members, the oldest first. A task of the kind that
    /// was not to be collected comes as the only one. A payload that is not what the type expects
    /// fails all of them for good.
    pub fn register_bundles<T, F, Fut>(&self, handler: F) -> &Self
    where
        T: Task,
        F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_bundles_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of a typed task that is handed over in bundles, with options that hold
    /// for its kind.
    pub fn register_bundles_with<T, F, Fut>(&self, options: HandlerOptions, handler: F) -> &Self
    where
        T: Task,
        F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        let target = Target::of::<T>();
        lock(&self.inner.registrations).add(target, batch::handler(options, handler), None);
        self
    }

    /// Calls a function after the commit of each change that this engine makes to a task it runs:
    /// when it is claimed ([`Change::Started`](crate::Change::Started)) and however the attempt
    /// ends. What is told is durable, in the class of the store; what was refused (a late result)
    /// is not told. Counts from the next run on; each function is told everything.
    ///
    /// Each function has a task of its own, in which it is called for one transition after the
    /// other, in the order of the commits: those of one task come in their order. It holds nobody
    /// up. One that is slow has up to [`bounds::HOOK_QUEUE`](crate::bounds::HOOK_QUEUE) transitions
    /// wait for it; those that come then are left out, and the next that it is told says how many
    /// were ([`Transition::missed`]). A panic in it is logged, and it is called for the next. When
    /// the run ends it is waited for, up to the [shutdown
    /// limit](crate::EngineBuilder::shutdown_limit) and at least a second.
    ///
    /// What waits for it is lost if the process dies. To miss nothing ever, and to see what others
    /// do to tasks too (submits, other engines, cancellations of what waits), follow
    /// [`events`](Self::events) from a cursor that you keep.
    ///
    /// ```
    /// # use onward::{Change, Engine};
    /// # fn hook(engine: &Engine) {
    /// engine.after_commit(|transition| async move {
    ///     if transition.change == Change::Dead {
    ///         eprintln!("task {} of kind {} needs a look", transition.task, transition.kind);
    ///     }
    /// });
    /// # }
    /// ```
    pub fn after_commit<F, Fut>(&self, hook: F) -> &Self
    where
        F: Fn(Transition) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        lock(&self.inner.hooks).push(Hook::new(hook));
        self
    }

    /// Registers the handler of a typed task that takes application state: `Arc<Client>`, or a
    /// tuple of such. What is missing is told by the run, before anything is claimed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use onward::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Fetch { path: String }
    /// # impl Task for Fetch { const KIND: &'static str = "fetch"; type Output = String; }
    /// # struct Client;
    /// # impl Client { async fn get(&self, path: &str) -> std::io::Result<String> { Ok(path.to_owned()) } }
    /// # fn stateful(engine: &Engine) {
    /// engine.state(Client);
    /// engine.register_stateful(|task: Fetch, client: Arc<Client>, _context: Context| async move {
    ///     Ok(client.get(&task.path).await?)
    /// });
    /// # }
    /// ```
    pub fn register_stateful<T, S, F, Fut>(&self, handler: F) -> &Self
    where
        T: Task,
        S: FromState,
        F: Fn(T, S, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        let target = Target::of::<T>();
        lock(&self.inner.registrations).add(target, stateful(HandlerOptions::new(), handler), None);
        self
    }

    /// Takes over the handlers of a module, with their state, middleware and options.
    pub fn mount(&self, module: impl Module) -> &Self {
        let owner: Arc<str> = module.name().into();
        let mut parts = ModuleParts::default();
        module.register(&mut parts);
        let mut registrations = lock(&self.inner.registrations);
        for (target, handler) in parts.into_handlers() {
            registrations.add(target, handler, Some(Arc::clone(&owner)));
        }
        drop(registrations);
        self
    }

    /// Gives handlers a value to share, found by its type with [`Context::state`]; one of the same
    /// type is replaced.
    pub fn state<T: Send + Sync + 'static>(&self, value: T) -> &Self {
        lock(&self.inner.app_state).insert(value);
        self
    }
}
