//! Short functions for the operations of cases on an engine, and gates that hold handlers.

use onward_store::StoreReads;
use std::sync::Arc;
use std::time::Duration;

use onward::observe::DrainSummary;
use onward::{Context, Engine, Failure, NewTask, TaskId, TaskRecord, TaskState};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub(crate) use crate::test_store::TestStore;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

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

pub(crate) async fn record(store: &TestStore, task: TaskId) -> TaskRecord {
    store.task(task).await.unwrap().unwrap()
}

pub(crate) async fn state(store: &TestStore, task: TaskId) -> TaskState {
    record(store, task).await.state
}

/// Returns the last error of a task.
pub(crate) async fn error(store: &TestStore, task: TaskId) -> String {
    record(store, task).await.errors.last().map(|error| error.message.clone()).unwrap_or_default()
}

/// A gate that holds handlers until a test lets them continue, and notifies the test when they have
/// started.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    entered: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { entered: Arc::new(Semaphore::new(0)), opened: Arc::new(Semaphore::new(0)) }
    }

    /// Notifies the test that the handler has started, and waits to be let through. Called in a
    /// handler.
    pub(crate) async fn pass(&self) {
        self.entered.add_permits(1);
        self.opened.acquire().await.unwrap().forget();
    }

    /// Waits until `handlers` more handlers have started. Called in a test.
    pub(crate) async fn entered(&self, handlers: u32) {
        self.entered.acquire_many(handlers).await.unwrap().forget();
    }

    /// Lets `handlers` handlers through.
    pub(crate) fn open(&self, handlers: usize) {
        self.opened.add_permits(handlers);
    }

    /// Returns whether a handler has started for which no test has waited.
    pub(crate) fn has_entered(&self) -> bool {
        self.entered.available_permits() > 0
    }

    /// Returns a handler that passes this gate and succeeds.
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

    /// Returns a handler that waits at this gate, and fails as soon as it is asked to stop.
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
