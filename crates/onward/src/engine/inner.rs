//! The engine: what a program embeds.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{
    Claim, Clock, EventCursor, NewTask, Outcome, QueueChoice, QueueSelection, Refusal, Scope, SessionId, Store,
    Submitted, TaskId, TaskRecord, Timestamp, Write,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::app_state::StateMap;
use super::builder::{EngineBuilder, Settings};
use super::injection::{FromState, stateful};
use super::module::{Module, ModuleParts};
use super::registrations::{Registrations, Target};
use super::run::Run;
use super::weak_engine::{HeldHandles, Origin};
use crate::control::OwnRetentions;
use crate::dispatch::{Delivery, Dispatcher, Floor, Goal, Mail};
use crate::error::{Error, Result};
use crate::handlers::{Connections, Context, Failure, Handler, HandlerOptions, Next, Output, batch};
use crate::observe::{DrainSummary, EventStream, Hook, Hooks, Snapshot, Telemetry, Transition};
use crate::orchestration::replay::store_guard;
use crate::orchestration::{
    CodeTable, ConfinedStore, Evictor, OrchestrationContext, OrchestrationOptions, Registered, Stage,
};
use crate::pressure::Gauge;
use crate::schedules::{Providers, Scheduler};
use crate::submit::{Handle, Submission, Task, Waiters, Waiting, submit_described, typed};
use crate::{bounds, timer};

/// Submits tasks to a store and runs them. Cheap to clone; all clones are one engine.
///
/// Any number of engines, in one process or several, may share a store: each task is run by one of
/// them at a time.
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    origin: Origin,
}

impl Clone for Engine {
    fn clone(&self) -> Self {
        self.origin.note_use(&self.inner);
        Self::of(Arc::clone(&self.inner))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.origin.note_drop(&self.inner);
    }
}

/// What all clones of an engine share.
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) telemetry: Telemetry,
    pub(crate) waiters: Waiters,
    /// Told by the dispatcher when schedules may have been changed.
    pub(crate) schedules_changed: Notify,
    pub(crate) providers: Providers,
    /// How high the pressure is.
    pub(crate) gauge: Gauge,
    pub(crate) connections: Connections,
    pub(crate) own_retentions: OwnRetentions,
    pub(crate) held_handles: HeldHandles,
    registrations: Mutex<Registrations>,
    orchestrations: Mutex<Registered>,
    state: Mutex<StateMap>,
    hooks: Mutex<Vec<Hook>>,
    course: Mutex<Course>,
}

/// The run under way, and what stops it or the next one.
#[derive(Default)]
struct Course {
    run: Option<Arc<Run>>,
    stop: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn run(&self) -> Option<Arc<Run>> {
        lock(&self.course).run.clone()
    }

    /// The code of orchestrations as it is registered now.
    pub(crate) fn codes(&self) -> Result<CodeTable> {
        lock(&self.orchestrations).table()
    }

    pub(crate) fn register_orchestration<T, F, Answer>(&self, options: OrchestrationOptions, function: F)
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        lock(&self.orchestrations).add(options, function);
    }

    pub(crate) fn register_orchestration_json<F, Answer>(&self, kind: &str, options: OrchestrationOptions, function: F)
    where
        F: Fn(serde_json::Value, OrchestrationContext) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<serde_json::Value, Failure>> + Send + 'static,
    {
        lock(&self.orchestrations).add_json(kind, options, function);
    }

    pub(crate) fn is_running(&self) -> bool {
        lock(&self.course).run.is_some()
    }
}

/// Opening.
impl Engine {
    /// Opens an engine with the default settings on a SQLite file, which is made if it is missing;
    /// or, with the feature `postgres`, on a PostgreSQL database (`postgres://user@host/database`),
    /// where many processes on many machines work together.
    ///
    /// # Errors
    /// What the store reports if it cannot be opened.
    pub async fn open(place: impl AsRef<Path>) -> Result<Self> {
        Self::builder().place(place.as_ref()).open().await
    }

    /// Opens an engine with other settings.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder::new()
    }

    pub(crate) fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self::of(Arc::new(Inner {
            clock: store.clock(),
            store: Arc::new(ConfinedStore::new(store)),
            gauge: Gauge::new(&settings.pressure),
            settings,
            telemetry: Telemetry::new(),
            waiters: Waiters::default(),
            schedules_changed: Notify::new(),
            providers: Providers::default(),
            connections: Connections::default(),
            own_retentions: OwnRetentions::default(),
            held_handles: HeldHandles::default(),
            registrations: Mutex::default(),
            orchestrations: Mutex::default(),
            state: Mutex::default(),
            hooks: Mutex::default(),
            course: Mutex::default(),
        }))
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        let origin = Origin::new(&inner);
        Self { inner, origin }
    }

    /// The store, for what it can be asked: tasks, queues, statistics, sessions, pauses.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }
}

/// Handlers. They count from the next run on. Several that belong together are a
/// [`Module`](crate::Module).
impl Engine {
    /// Registers the handler of a kind, or of a pattern: the beginning of kinds and a `*`
    /// (`image:*`; `*` alone for every kind). A kind's own handler goes before those of patterns,
    /// and of these the longest that matches holds. This engine leaves kinds that none of its
    /// handlers is for to others.
    ///
    /// What is wrong with a registration (a bad name, a second handler of the same kind or pattern)
    /// is told by the run. Kinds that begin with `onward.` are reserved, and no pattern matches
    /// them.
    pub fn handle<F, Answer, R>(&self, kind: impl AsRef<str>, handler: F) -> &Self
    where
        F: Fn(Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with(kind, HandlerOptions::new(), handler)
    }

    /// Registers the handler of a kind or a pattern with options that hold for it.
    pub fn handle_with<F, Answer, R>(&self, kind: impl AsRef<str>, options: HandlerOptions, handler: F) -> &Self
    where
        F: Fn(Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<R, Failure>> + Send + 'static,
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
    pub fn wrap<F, Answer>(&self, middleware: F) -> &Self
    where
        F: Fn(Context, Next) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        self.options("*", HandlerOptions::new().wrap(middleware))
    }

    /// Registers the handler of every kind that has none of its own: that of the pattern `*`.
    pub fn handle_any<F, Answer, R>(&self, handler: F) -> &Self
    where
        F: Fn(Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_any_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of every kind that has none of its own, with options.
    pub fn handle_any_with<F, Answer, R>(&self, options: HandlerOptions, handler: F) -> &Self
    where
        F: Fn(Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Into<Output>,
    {
        self.handle_with("*", options, handler)
    }

    /// Registers the handler of a typed task.
    pub fn register<T, F, Answer>(&self, handler: F) -> &Self
    where
        T: Task,
        F: Fn(T, Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of a typed task with options that hold for its kind.
    pub fn register_with<T, F, Answer>(&self, options: HandlerOptions, handler: F) -> &Self
    where
        T: Task,
        F: Fn(T, Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        let target = Target::of::<T>();
        lock(&self.inner.registrations).add(target, typed::handler(options, handler), None);
        self
    }

    /// Registers the handler of a typed task that is collected and handed over in
    /// [bundles](crate::Aggregate): it gets the members, the oldest first. A task of the kind that
    /// was not to be collected comes as the only one. A payload that is not what the type expects
    /// fails all of them for good.
    pub fn register_bundles<T, F, Answer>(&self, handler: F) -> &Self
    where
        T: Task,
        F: Fn(Vec<T>, Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.register_bundles_with(HandlerOptions::new(), handler)
    }

    /// Registers the handler of a typed task that is handed over in bundles, with options that hold
    /// for its kind.
    pub fn register_bundles_with<T, F, Answer>(&self, options: HandlerOptions, handler: F) -> &Self
    where
        T: Task,
        F: Fn(Vec<T>, Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
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
    /// up. One that is slow has up to [`bounds::HOOK_LINE`](crate::bounds::HOOK_LINE) transitions
    /// wait for it; those that come then are left out, and the next that it is told says how many
    /// were ([`Transition::missed`]). A panic in it is logged, and it is called for the next. When
    /// the run ends it is waited for, up to the [shutdown limit](EngineBuilder::shutdown_limit) and
    /// at least a second.
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
    pub fn after_commit<F, Answer>(&self, hook: F) -> &Self
    where
        F: Fn(Transition) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = ()> + Send + 'static,
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
    pub fn register_stateful<T, S, F, Answer>(&self, handler: F) -> &Self
    where
        T: Task,
        S: FromState,
        F: Fn(T, S, Context) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
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
        lock(&self.inner.state).insert(value);
        self
    }
}

/// Submitting. Acknowledged means durable, in the class of the store.
impl Engine {
    /// Submits a typed task. To be waited for, or not: the task runs anyhow.
    ///
    /// Nothing is written before the future is awaited; if it is dropped while the commit is under
    /// way, the task may have been submitted.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the task breaks a limit; what the store reports if it
    /// could not keep it.
    #[expect(clippy::needless_pass_by_value, reason = "a submitted task is the store's")]
    pub fn submit<T: Task>(&self, task: T) -> impl Future<Output = Result<Handle<T::Output>>> + Send + use<T> {
        submit_described(self.clone(), typed::new_task(&task).map(Box::new))
    }

    /// Submits a typed task with other than its type's settings:
    /// `engine.submit_with(task).priority(Priority::HIGH).await?`.
    #[expect(clippy::needless_pass_by_value, reason = "a submitted task is the store's")]
    pub fn submit_with<T: Task>(&self, task: T) -> Submission<T> {
        Submission::new(self.clone(), &task)
    }

    /// Submits a task. Nothing is written before the future is awaited; if it is dropped while the
    /// commit is under way, the task may have been submitted.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the task breaks a limit; what the store reports if it
    /// could not keep it.
    pub fn submit_task(&self, task: NewTask) -> impl Future<Output = Result<Submitted>> + Send {
        self.submit_boxed(Box::new(task))
    }

    /// Boxed, so that futures that wait for a commit are small: thousands may at once.
    pub(crate) async fn submit_boxed(&self, task: Box<NewTask>) -> Result<Submitted> {
        task.kind.check_own("kind")?;
        let telemetry = self.inner.telemetry.kind(&task.kind);
        let span = tracing::info_span!(
            "submit",
            task = tracing::field::Empty,
            kind = task.kind.as_str(),
            queue = task.queue.as_str()
        );
        let recorded = span.clone();
        let submitted = async {
            match self.apply(Write::Submit(task)).await? {
                Outcome::Submitted(submitted) => Ok(submitted),
                _ => Err(Error::unexpected("a submit")),
            }
        };
        let submitted = submitted.instrument(span).await?;
        recorded.record("task", submitted.id().0);
        telemetry.submitted(submitted);
        Ok(submitted)
    }

    /// Submits several tasks, at most 100 000, in one commit: all or none. The answers are in the
    /// order of the tasks.
    ///
    /// A typed task is turned into a [`NewTask`] by [`Task::to_new_task`], or by
    /// [`Submission::into_new_task`] with other settings.
    ///
    /// Tasks may [depend](NewTask::depends_on) on each other by their positions
    /// ([`Dependency::Member`](crate::Dependency::Member)), earlier ones on later ones too: where
    /// the order does not do, they are submitted, and so numbered, in one that does.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if a task breaks a limit, or if tasks depend on each other
    /// in a circle; the text says which. Then none was kept.
    pub async fn submit_all(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>> {
        tasks.iter().try_for_each(|task| task.kind.check_own("kind"))?;
        if !onward_store::rules::dependencies::is_in_order(&tasks) {
            return crate::submit::submit_in_order(self, tasks).await;
        }
        let kinds: Vec<_> = tasks.iter().map(|task| self.inner.telemetry.kind(&task.kind)).collect();
        let unknown = tracing::field::Empty;
        let span = tracing::info_span!("submit_all", tasks = tasks.len(), first = unknown, last = unknown);
        let recorded = span.clone();
        let writes = tasks.into_iter().map(|task| Write::Submit(Box::new(task))).collect();
        let Outcome::All(outcomes) = self.apply(Write::All(writes)).instrument(span).await? else {
            return Err(Error::unexpected("several submits"));
        };
        let submitted = outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Submitted(submitted) => Ok(submitted),
            _ => Err(Error::unexpected("a submit")),
        });
        let submitted = submitted.collect::<Result<Vec<_>>>()?;
        if let [first, ..] = submitted[..]
            && let Some(last) = submitted.last()
        {
            recorded.record("first", first.id().0).record("last", last.id().0);
        }
        kinds.iter().zip(&submitted).for_each(|(kind, submitted)| kind.submitted(*submitted));
        Ok(submitted)
    }
}

/// Running. One run at a time; handlers run as tasks of the tokio runtime.
///
/// Dropping the future of a run is like [`stop`](Engine::stop): the run ends in the background.
impl Engine {
    /// Runs tasks until [`stop`](Self::stop), and [schedules](Self::schedule) with them.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the handlers are not in order or the engine runs
    /// already; what the store reports if it failed for good. Passing failures of the store are
    /// waited out.
    pub async fn run(&self) -> Result<()> {
        self.run_to(Goal::Stopped).await.map(drop)
    }

    /// Runs tasks as [`run`](Self::run) does, and returns what came of them.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_stopped(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Stopped).await
    }

    /// Runs tasks until every task that this engine could run has ended: those due later and those
    /// that others run are waited for, as are pauses that end by themselves, and limits that hold
    /// tasks back until others have ended or a token comes. What is paused without an end, what
    /// waits to be [finished elsewhere](Failure::await_completion), and kinds and queues that this
    /// engine does not serve, are left. No schedules are fired.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn drain(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Drained).await
    }

    /// Fires the schedules that are due, and runs tasks until nothing is due and nothing runs here.
    /// What a [rate](crate::Rate) holds back is due and is waited for. What is due later stays, and
    /// so does what waits because others run as many tasks as a concurrency allows.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_idle(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Idle).await
    }

    /// As [`run_until_idle`](Self::run_until_idle), but leaves what a rate or pressure holds back.
    pub(crate) async fn run_until_settled(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Settled).await
    }

    /// Stops the run: it claims nothing more, gives back what has not started, and waits for
    /// running handlers up to the [shutdown limit](EngineBuilder::shutdown_limit). Those that still
    /// run are then asked to stop, aborted after their [grace](EngineBuilder::grace), and their
    /// tasks given back without the attempt being counted. The run's future completes when that is
    /// done. If nothing runs, the next run ends at once.
    pub fn stop(&self) {
        lock(&self.inner.course).stop.cancel();
    }

    async fn run_to(&self, goal: Goal) -> Result<DrainSummary> {
        let (run, stop) = self.begin()?;
        let stop_when_dropped = stop.clone().drop_guard();
        let ending = EndOfRun(Arc::clone(&self.inner));
        let dispatcher = Dispatcher::new(Arc::clone(&run), goal, stop);
        let engine = self.clone();
        let finished = tokio::spawn(async move {
            let hooks = run.hooks.start(&run.inner);
            let _evicting = evict_ended(&run);
            let result = engine.beside_schedules(goal, dispatcher).await;
            finish_hooks(&run, hooks).await;
            drop(ending);
            result
        })
        .await;
        drop(stop_when_dropped);
        match finished {
            Ok(result) => result,
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(onward_store::Error::closed().caused_by("the tokio runtime shuts down").into()),
        }
    }

    /// Runs the dispatcher, and fires schedules as long as it runs. In tasks of their own: the
    /// dispatcher wakes up often.
    async fn beside_schedules(self, goal: Goal, dispatcher: Dispatcher) -> Result<DrainSummary> {
        match goal {
            Goal::Drained => dispatcher.run().await,
            Goal::Idle | Goal::Settled => {
                Scheduler::new(self).run_once().await;
                dispatcher.run().await
            }
            Goal::Stopped => {
                let over = dispatcher.stop_token().child_token();
                let over_when_dropped = over.clone().drop_guard();
                let (scheduler, scheduler_over) = (Scheduler::new(self.clone()), over.clone());
                let scheduler = tokio::spawn(async move { scheduler.run(&scheduler_over).await });
                let (forgetful, forget_over) = (self.clone(), over.clone());
                let retention = self.inner.settings.retention;
                let retention = tokio::spawn(async move { retention.run(&forgetful, &forget_over).await });
                let providers = tokio::spawn(async move { self.inner.providers.run(&self, &over).await });
                let result = dispatcher.run().await;
                drop(over_when_dropped);
                // They only end early if the runtime does, or if they have nothing to do.
                let _ = tokio::join!(scheduler, retention, providers);
                result
            }
        }
    }

    fn begin(&self) -> Result<(Arc<Run>, CancellationToken)> {
        store_guard::check()?;
        let state = lock(&self.inner.state).clone();
        let orchestrations = self.inner.codes()?;
        let run = Arc::new(Run {
            handlers: lock(&self.inner.registrations).table(
                &state,
                &orchestrations,
                self.inner.settings.serves_reserved,
            )?,
            orchestrations,
            stage: Stage::new(
                self.inner.settings.orchestrations_kept,
                self.inner.settings.turns,
                &self.inner.telemetry.orchestrations,
            ),
            state,
            mail: Mail::default(),
            floor: Floor::default(),
            hooks: Hooks::new(&lock(&self.inner.hooks)),
            inner: Arc::clone(&self.inner),
        });
        let mut course = lock(&self.inner.course);
        if course.run.is_some() {
            return Err(runs_already(course.stop.is_cancelled()));
        }
        course.run = Some(Arc::clone(&run));
        Ok((run, course.stop.clone()))
    }

    /// What this engine does at this moment, with live progress.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let idle = || Snapshot {
            concurrency: self.inner.settings.concurrency,
            pressure: self.inner.gauge.pressure(),
            ..Snapshot::default()
        };
        self.inner.run().map_or_else(idle, |run| Snapshot::of(&run))
    }
}

/// Frees the memory of orchestrations that end, until what is returned is dropped.
fn evict_ended(run: &Arc<Run>) -> JoinSet<()> {
    let mut evicting = JoinSet::new();
    if !run.orchestrations.is_empty() {
        evicting.spawn(Evictor::new(run).run());
    }
    evicting
}

/// Says why no run begins while there is one, which may be about to end.
#[cold]
fn runs_already(is_stopping: bool) -> Error {
    Error::invalid(if is_stopping {
        "the last run of this engine has not ended: it was stopped, or its future was dropped, and it waits for running handlers up to its \
         shutdown limit; keep the future of a run, call `stop`, and await the future before the next run"
    } else {
        "the engine runs already; raise its concurrency instead of running it twice"
    })
}

/// Waits until hooks have been told everything, or the shutdown limit has passed, or a second if
/// that is longer.
async fn finish_hooks(run: &Run, mut hooks: JoinSet<()>) {
    if run.hooks.is_empty() {
        return;
    }
    run.hooks.close();
    let clock = &*run.inner.clock;
    let over_at = clock.steady().saturating_add(run.inner.settings.shutdown_limit.max(bounds::HOOKS_AT_END));
    tokio::select! {
        () = async { while hooks.join_next().await.is_some() {} } => {}
        () = timer::reached(clock, over_at) => {
            tracing::warn!("a hook did not take in what was committed before the shutdown limit and is aborted");
        }
    }
}

/// Makes room for the next run, however this one ended.
struct EndOfRun(Arc<Inner>);

impl Drop for EndOfRun {
    fn drop(&mut self) {
        *lock(&self.0.course) = Course::default();
    }
}

impl Run {
    /// A claim for the handlers of this run; its session and limit are to be filled in. No handler
    /// is for an orchestration, whatever its kinds: what has no code here is left to others.
    pub(crate) fn claim(&self) -> Claim {
        let queues = self.inner.settings.queues.as_ref();
        Claim {
            session: SessionId(0),
            queues: queues.map_or(QueueSelection::All, |queues| {
                QueueSelection::Only(queues.iter().map(|queue| (queue.clone(), 0)).collect())
            }),
            kinds: self.handlers.kinds(),
            orchestrations: false,
            limit: 0,
            choice: QueueChoice { mode: self.inner.settings.queue_mode, ..QueueChoice::default() },
            least: None,
        }
    }
}

impl Run {
    /// A claim for the orchestrations whose code this run has.
    pub(crate) fn claim_of_turns(&self) -> Claim {
        Claim { kinds: self.orchestrations.kinds(), orchestrations: true, ..self.claim() }
    }

    /// Claims for everything that this run serves.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        if self.orchestrations.is_empty() { vec![self.claim()] } else { vec![self.claim(), self.claim_of_turns()] }
    }
}

/// What a cancellation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// The task had not started and has ended.
    Ended,
    /// The task runs; its handler is asked to stop.
    Requested,
}

/// Looking after tasks.
impl Engine {
    /// Waits until a task has ended, wherever it runs. Cancel-safe; thousands may wait at once, and
    /// nothing is polled.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is no such task; what the store reports if it
    /// could not be read.
    pub async fn wait(&self, task: TaskId) -> Result<TaskRecord> {
        loop {
            let waiting = Waiting::new(&self.inner, task);
            let record = self.record(task).await?;
            if record.state.is_ended() {
                return Ok(record);
            }
            waiting.news().await;
        }
    }

    pub(crate) async fn record(&self, task: TaskId) -> Result<TaskRecord> {
        Ok(self.inner.store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?)
    }

    /// Cancels a task, wherever it is: one that has not started ends; the handler of a running one
    /// is asked to stop, at once in this process, else when its process hears of it.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended).
    pub async fn cancel(&self, task: TaskId) -> Result<Cancellation> {
        match self.apply(Write::Cancel { task }).await? {
            Outcome::Cancelled => Ok(Cancellation::Ended),
            Outcome::CancelRequested => {
                self.ask_to_stop(&[task]);
                Ok(Cancellation::Requested)
            }
            _ => Err(Error::unexpected("a cancellation")),
        }
    }

    /// Has the handlers of those of the tasks that run here know at once that they should stop.
    pub(crate) fn ask_to_stop(&self, tasks: &[TaskId]) {
        if let Some(run) = self.inner.run() {
            tasks.iter().for_each(|task| run.floor.cancel(*task));
        }
    }

    /// Makes an ended task wait again under its old number, with its attempts counted from zero.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), and a [refusal](Error::refusal) if the task has not
    /// ended or its key is taken.
    pub async fn retry(&self, task: TaskId) -> Result<()> {
        self.done(Write::Retry { task }).await
    }

    /// Stops claims of what `scope` names, in every process, until it is resumed. What runs goes
    /// on; what was claimed and has not started is given back.
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn pause(&self, scope: Scope) -> Result<()> {
        self.done(Write::Pause { scope, until: None }).await
    }

    /// Stops claims of what `scope` names until a moment, or until it is resumed.
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn pause_until(&self, scope: Scope, until: Timestamp) -> Result<()> {
        self.done(Write::Pause { scope, until: Some(until) }).await
    }

    /// Ends a pause; also fine where there is none.
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn resume(&self, scope: Scope) -> Result<()> {
        self.done(Write::Resume { scope }).await
    }

    /// Events from `cursor` on: [`EventCursor::START`] for all that the store still has.
    #[must_use]
    pub fn events(&self, cursor: EventCursor) -> EventStream {
        EventStream::new(Arc::clone(&self.inner.store), cursor)
    }

    pub(crate) async fn done(&self, write: Write) -> Result<()> {
        match self.apply(write).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::unexpected("a write")),
        }
    }

    /// Applies one write; a refusal is an error.
    pub(crate) async fn apply(&self, write: Write) -> Result<Outcome> {
        self.origin.note_use(&self.inner);
        told(self.inner.store.apply(vec![write]).await?.pop())
    }

    /// The same of one that wakes orchestrations: where they run in this process, it goes with the
    /// claim of whom it wakes.
    pub(crate) async fn apply_and_wake(&self, write: Write) -> Result<Outcome> {
        self.origin.note_use(&self.inner);
        store_guard::check()?;
        let Some(run) = self.inner.run() else { return self.apply(write).await };
        let delivery = match run.mail.hand_in(write) {
            Ok(delivery) => delivery,
            Err(write) => return self.apply(write).await,
        };
        run.floor.stir();
        match delivery.await {
            Ok(Delivery::Answered(outcome)) => told(Some(outcome?)),
            Ok(Delivery::GivenBack(write)) => self.apply(*write).await,
            Err(_) => Err(onward_store::Error::closed().into()),
        }
    }
}

/// What a store answered one write.
fn told(outcome: Option<Outcome>) -> Result<Outcome> {
    match outcome {
        Some(Outcome::Refused(refusal)) => Err(refusal.into()),
        Some(outcome) => Ok(outcome),
        None => Err(Error::unexpected("a write")),
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.inner.settings;
        f.debug_struct("Engine")
            .field("name", &settings.name)
            .field("store", &self.inner.store.info().location)
            .field("is_running", &self.inner.is_running())
            .finish_non_exhaustive()
    }
}
