//! The stores on which every test runs, engines on them whose time stands still until it is moved, and gates for handlers.

use std::sync::Arc;
use std::time::Duration;

use onward::testing::ManualClock;
use onward::{
    Context, DrainSummary, Engine, EngineBuilder, Failure, NewTask, RetryPolicy, Store, TaskId, TaskRecord, TaskState,
};
use onward_store::{Durability, MemoryStore, SqliteStore};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A store and its clock.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    /// Where the store's file is, kept until the test is over.
    _directory: Option<TempDir>,
}

/// How many kinds of store there are.
pub(crate) const WORLDS: usize = 3;

/// A fresh store of every kind that there is.
pub(crate) async fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for kind in 0..WORLDS {
        worlds.push(world(kind).await);
    }
    worlds
}

/// A fresh store of one kind.
pub(crate) async fn world(kind: usize) -> World {
    match kind {
        0 => memory(),
        1 => sqlite_in_memory().await,
        _ => sqlite_on_a_file().await,
    }
}

fn memory() -> World {
    let clock = Arc::new(ManualClock::default());
    World { store: Arc::new(MemoryStore::with_clock(clock.clone())), clock, _directory: None }
}

async fn sqlite_in_memory() -> World {
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::options().clock(clock.clone()).open_in_memory().await.unwrap();
    World { store: Arc::new(store), clock, _directory: None }
}

async fn sqlite_on_a_file() -> World {
    let clock = Arc::new(ManualClock::default());
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteStore::options().clock(clock.clone()).durability(Durability::Normal);
    let store = options.open(directory.path().join("onward.db")).await.unwrap();
    World { store: Arc::new(store), clock, _directory: Some(directory) }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

impl World {
    /// How engines here are opened unless a test wants otherwise.
    pub(crate) fn builder(&self) -> EngineBuilder {
        Engine::builder().store(Arc::clone(&self.store)).concurrency(8).lease(HOUR).retry(RetryPolicy::NEVER)
    }

    pub(crate) async fn engine(&self) -> Engine {
        self.builder().open().await.unwrap()
    }

    /// Moves time in steps until `what` is done, as it does outside tests.
    pub(crate) async fn advance_until<T: Send + 'static>(&self, step: Duration, what: JoinHandle<T>) -> T {
        while !what.is_finished() {
            self.clock.advance(step);
            tokio::task::yield_now().await;
        }
        what.await.unwrap()
    }
}

pub(crate) fn task(kind: &str) -> NewTask {
    NewTask::new(kind).unwrap()
}

/// Submits a task of a kind.
pub(crate) async fn submit(engine: &Engine, kind: &str) -> TaskId {
    engine.submit_task(task(kind)).await.unwrap().id()
}

/// Runs an engine in the background until it is stopped.
pub(crate) fn start(engine: &Engine) -> JoinHandle<()> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.run().await.unwrap() })
}

/// Drains an engine in the background.
pub(crate) fn start_drain(engine: &Engine) -> JoinHandle<DrainSummary> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.drain().await.unwrap() })
}

/// Stops an engine and waits until its run is over.
pub(crate) async fn stop(engine: &Engine, run: JoinHandle<()>) {
    engine.stop();
    run.await.unwrap();
}

pub(crate) async fn record(world: &World, task: TaskId) -> TaskRecord {
    world.store.task(task).await.unwrap().unwrap()
}

pub(crate) async fn state(world: &World, task: TaskId) -> TaskState {
    record(world, task).await.state
}

/// The last error of a task.
pub(crate) async fn error(world: &World, task: TaskId) -> String {
    record(world, task).await.errors.last().map(|error| error.message.clone()).unwrap_or_default()
}

/// Holds handlers until a test lets them go on, and tells the test that they have started.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    entered: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { entered: Arc::new(Semaphore::new(0)), opened: Arc::new(Semaphore::new(0)) }
    }

    /// In a handler: says that it has started and waits to be let through.
    pub(crate) async fn pass(&self) {
        self.entered.add_permits(1);
        self.opened.acquire().await.unwrap().forget();
    }

    /// In a test: waits until `handlers` more have started.
    pub(crate) async fn entered(&self, handlers: u32) {
        self.entered.acquire_many(handlers).await.unwrap().forget();
    }

    /// Lets `handlers` through.
    pub(crate) fn open(&self, handlers: usize) {
        self.opened.add_permits(handlers);
    }

    /// Whether a handler has started that no test has waited for.
    pub(crate) fn has_entered(&self) -> bool {
        self.entered.available_permits() > 0
    }

    /// A handler that passes this gate and succeeds.
    pub(crate) fn handler(
        &self,
    ) -> impl Fn(Context) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>> + Send + Sync + 'static
    {
        let gate = self.clone();
        move |_| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.pass().await;
                Ok(())
            })
        }
    }

    /// A handler that passes this gate by failing as soon as it is asked to stop.
    pub(crate) fn stoppable(
        &self,
    ) -> impl Fn(Context) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>> + Send + Sync + 'static
    {
        let gate = self.clone();
        move |context| {
            let gate = gate.clone();
            Box::pin(async move {
                let cancelled = context.cancelled();
                tokio::select! {
                    () = gate.pass() => Ok(()),
                    () = cancelled.cancelled() => Err(Failure::retryable("stopped halfway")),
                }
            })
        }
    }
}
