//! The engine: a program embeds it.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{Clock, NewTask, Outcome, Refusal, Store, StoreReads, TaskId, TaskRecord, Write};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::app_state::AppState;
use super::builder::EngineBuilder;
use super::registrations::Registrations;
use super::run::Run;
use super::settings::Settings;
use super::weak_engine::{HandleOrigin, HeldHandles};
use crate::control::OwnRetentions;
use crate::dispatch::{Credit, OutboxReply, SkippedKinds};
use crate::error::{Error, Result};
use crate::handlers::{Connections, Failure};
use crate::observe::{Hook, Telemetry};
use crate::orchestration::replay::store_guard;
use crate::orchestration::{
    CodeTable, GuardedStore, OrchestrationContext, OrchestrationOptions, Registered, RemoteCode,
};
use crate::pressure::Gauge;
use crate::schedules::Providers;
use crate::submit::{Task, Waiters};
use crate::workflow::{LiveSender, Templates};

/// An engine that submits tasks to a store and runs them. It is cheap to clone; all clones are one
/// engine.
///
/// Any number of engines, in one process or several, may share a store. Each task is run by one
/// engine at a time.
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    origin: HandleOrigin,
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

/// The state that all clones of an engine share.
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) telemetry: Telemetry,
    pub(crate) waiters: Waiters,
    /// The credit of an engine that starts tasks only on credit.
    pub(crate) credit: Credit,
    /// The kinds that claims leave to other engines.
    pub(crate) skipped_kinds: SkippedKinds,
    /// Notified by the dispatcher when schedules may have changed.
    pub(crate) schedules_changed: Notify,
    pub(crate) providers: Providers,
    /// The present pressure.
    pub(crate) gauge: Gauge,
    pub(crate) connections: Connections,
    pub(crate) own_retentions: OwnRetentions,
    pub(crate) held_handles: HeldHandles,
    /// The templates of workflows.
    pub(crate) templates: Templates,
    /// The events that runs publish to listeners of the moment.
    pub(crate) live_events: LiveSender,
    pub(super) registrations: Mutex<Registrations>,
    pub(super) orchestrations: Mutex<Registered>,
    pub(super) app_state: Mutex<AppState>,
    pub(super) hooks: Mutex<Vec<Hook>>,
    pub(super) current: Mutex<CurrentRun>,
}

/// The current run, and the token that stops it or the next one.
#[derive(Default)]
pub(super) struct CurrentRun {
    pub(super) run: Option<Arc<Run>>,
    pub(super) stop: CancellationToken,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn run(&self) -> Option<Arc<Run>> {
        lock(&self.current).run.clone()
    }

    /// Returns the code of the orchestrations that are registered now.
    pub(crate) fn codes(&self) -> Result<CodeTable> {
        lock(&self.orchestrations).table()
    }

    pub(crate) fn register_orchestration<T, F, Fut>(&self, options: OrchestrationOptions, function: F)
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        lock(&self.orchestrations).add(options, function);
    }

    pub(crate) fn register_orchestration_json<F, Fut>(&self, kind: &str, options: OrchestrationOptions, function: F)
    where
        F: Fn(serde_json::Value, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<serde_json::Value, Failure>> + Send + 'static,
    {
        lock(&self.orchestrations).add_json(kind, options, function);
    }

    pub(crate) fn register_remote_orchestration(&self, kind: &str, code: Arc<dyn RemoteCode>) {
        lock(&self.orchestrations).add_remote(kind, code);
    }

    pub(crate) fn is_running(&self) -> bool {
        lock(&self.current).run.is_some()
    }
}

/// Opening.
impl Engine {
    /// Opens an engine with the default settings on a SQLite file, which is created if it does not
    /// exist. With the feature `postgres` it also opens a PostgreSQL database
    /// (`postgres://user@host/database`), where many processes on many machines work together.
    ///
    /// # Errors
    /// The store's error if it cannot be opened.
    pub async fn open(place: impl AsRef<Path>) -> Result<Self> {
        Self::builder().location(place.as_ref()).open().await
    }

    /// Opens an engine with other settings.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder::new()
    }

    pub(crate) fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self::of(Arc::new(Inner {
            clock: store.clock(),
            store: Arc::new(GuardedStore::new(store)),
            gauge: Gauge::new(&settings.pressure),
            settings,
            telemetry: Telemetry::new(),
            waiters: Waiters::default(),
            credit: Credit::default(),
            skipped_kinds: SkippedKinds::default(),
            schedules_changed: Notify::new(),
            providers: Providers::default(),
            connections: Connections::default(),
            own_retentions: OwnRetentions::default(),
            held_handles: HeldHandles::default(),
            templates: Templates::default(),
            live_events: LiveSender::default(),
            registrations: Mutex::default(),
            orchestrations: Mutex::default(),
            app_state: Mutex::default(),
            hooks: Mutex::default(),
            current: Mutex::default(),
        }))
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        let origin = HandleOrigin::new(&inner);
        Self { inner, origin }
    }

    /// Returns the store, for reads of tasks, queues, statistics, sessions and pauses.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }
}

/// Writing.
impl Engine {
    pub(crate) async fn record(&self, task: TaskId) -> Result<TaskRecord> {
        Ok(self.inner.store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?)
    }

    pub(crate) async fn done(&self, write: Write) -> Result<()> {
        match self.apply(write).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::unexpected("a write")),
        }
    }

    /// Applies one write and returns a refusal as an error. The reply comes after the commit, at
    /// the durability level of the store.
    pub(crate) async fn apply(&self, write: Write) -> Result<Outcome> {
        self.origin.note_use(&self.inner);
        refusal_as_error(self.inner.store.apply(vec![write]).await?.pop())
    }

    /// Submits a task. If it is an orchestration or a run of a workflow that this process executes,
    /// the submission is committed together with its claim.
    pub(crate) async fn apply_submit(&self, new: Box<NewTask>) -> Result<Outcome> {
        // A plain task goes to the store at once. A store commits the writes of all callers
        // together, so waiting for the dispatcher would only add delay.
        let starts = new.orchestration && self.inner.run().is_some_and(|run| run.starts_at_once(&new));
        let write = Write::Submit(new);
        if starts { self.apply_and_wake(write).await } else { self.apply(write).await }
    }

    /// Applies a write that wakes orchestrations. If they run in this process, the write is
    /// committed together with the claim of the orchestrations that it wakes.
    pub(crate) async fn apply_and_wake(&self, write: Write) -> Result<Outcome> {
        self.origin.note_use(&self.inner);
        store_guard::check()?;
        let Some(run) = self.inner.run() else { return self.apply(write).await };
        let reply = match run.outbox.enqueue(write) {
            Ok(reply) => reply,
            Err(write) => return self.apply(write).await,
        };
        run.state.wake();
        match reply.await {
            Ok(OutboxReply::Applied(outcome)) => refusal_as_error(Some(outcome?)),
            Ok(OutboxReply::Returned(write)) => self.apply(*write).await,
            Err(_) => Err(onward_store::Error::closed().into()),
        }
    }
}

/// Returns the outcome of a single write, with a refusal as an error.
fn refusal_as_error(outcome: Option<Outcome>) -> Result<Outcome> {
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
