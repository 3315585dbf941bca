//! Registers handlers, middleware, hooks and state.

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

/// Handlers. They take effect from the next run. Handlers that belong together form a
/// [`Module`](crate::engine::Module).
impl Engine {
    /// Registers the handler of a kind or of a pattern. A pattern is the beginning of a kind
    /// followed by `*`: `image:*`, or `*` alone for every kind. The handler of a kind takes
    /// precedence over patterns, and a longer pattern over a shorter one. An engine leaves kinds
    /// without a handler to other engines.
    ///
    /// An invalid registration (a bad name, a second handler of the same kind or pattern) is an
    /// error of the run. Kinds that begin with `onward.` are reserved, and no pattern matches them.
    pub fn handle<F, Fut, R>(&self, kind: impl AsRef<str>, handler: F) -> &Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with(kind, HandlerOptions::new(), handler)
    }

    /// Registers the handler of a kind or a pattern with its own options.
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

    /// Sets options for every handler of a kind or of the kinds of a pattern (`*` for all): retry
    /// policy, timeouts, failure policy and middleware.
    ///
    /// Options of a narrower pattern override those of a wider one, and a handler's own options
    /// override those of the pattern that it was registered for. All middleware applies: that of a
    /// shorter pattern is outside that of a longer one, earlier middleware is outside later
    /// middleware, and a handler's own is innermost. A pattern may get options several times, but
    /// each setting other than middleware only once.
    pub fn options(&self, pattern: impl AsRef<str>, options: HandlerOptions) -> &Self {
        let target = Target::Pattern(pattern.as_ref().to_owned());
        lock(&self.inner.registrations).add_options(target, options);
        self
    }

    /// Runs a middleware around every handler: `options("*",
    /// HandlerOptions::new().wrap(middleware))`.
    ///
    /// ```
    /// # use onward::handlers::Next;
    /// # use onward::{Context, Engine};
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

    /// Registers the handler of every kind that has none of its own: the handler of the pattern
    /// `*`.
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

    /// Registers the handler of a typed task with options for its kind.
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

    /// Registers the handler of a typed task that is collected into
    /// [batches](crate::task::Aggregate). The handler gets the batch items, the oldest first. A
    /// task of the kind that was submitted without batching comes as the only item. A payload that
    /// does not match the type fails the whole batch permanently.
    pub fn register_batches<T, F, Fut>(&self, handler: F) -> &Self
    where
        T: Task,
        F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_batches_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of a typed task that runs in batches, with options for its kind.
    pub fn register_batches_with<T, F, Fut>(&self, options: HandlerOptions, handler: F) -> &Self
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
    /// when the task is claimed ([`Change::Started`](crate::observe::Change::Started)) and when the
    /// attempt ends. A change is reported once it is durable at the store's durability level. A
    /// rejected change, such as a late result, is not reported. Takes effect from the next run;
    /// each function gets every change.
    ///
    /// Each function runs in its own task, and is called for one transition at a time in the order
    /// of the commits, so the transitions of one task come in order. It blocks nothing else. Up to
    /// [`bounds::HOOK_QUEUE`](crate::bounds::HOOK_QUEUE) transitions wait for a slow function.
    /// Further ones are dropped, and the next call has their number ([`Transition::missed`]). A
    /// panic in it is logged, and it is called for the next transition. At the end of the run the
    /// engine waits for it up to the [shutdown limit](crate::EngineBuilder::shutdown_limit), and at
    /// least one second.
    ///
    /// Transitions that wait for the function are lost if the process dies. To miss nothing, and to
    /// see changes that other processes make (submits, other engines, cancellations of waiting
    /// tasks), follow [`events`](Self::events) from a cursor that you keep.
    ///
    /// ```
    /// # use onward::Engine;
    /// # use onward::observe::Change;
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
    /// tuple of such. A missing state is an error of the run, before anything is claimed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use onward::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Fetch { path: String }
    /// # impl Task for Fetch { const KIND: &'static str = "fetch"; type Output = String; }
    /// # struct Client;
    /// # impl Client {
    /// #     async fn get(&self, path: &str) -> std::io::Result<String> { Ok(path.to_owned()) }
    /// # }
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

    /// Adds the handlers of a module, with their state, middleware and options.
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

    /// Adds a value that handlers share and find by its type with [`Context::state`]. It replaces a
    /// value of the same type.
    pub fn state<T: Send + Sync + 'static>(&self, value: T) -> &Self {
        lock(&self.inner.app_state).insert(value);
        self
    }
}
