//! The stores on which every test runs, and engines on them whose time stands still until it is moved.

use std::sync::Arc;
use std::time::Duration;

use onward::testing::ManualClock;
use onward::{Engine, EngineBuilder, NewTask, Store, TaskId};
use onward_store::MemoryStore;

/// A store and its clock.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
}

/// A fresh store of every kind that there is.
pub(crate) async fn worlds() -> Vec<World> {
    vec![memory()]
}

fn memory() -> World {
    let clock = Arc::new(ManualClock::default());
    World { store: Arc::new(MemoryStore::with_clock(clock.clone())), clock }
}

impl World {
    /// How engines here are opened unless a test wants otherwise.
    pub(crate) fn builder(&self) -> EngineBuilder {
        Engine::builder().store(Arc::clone(&self.store)).concurrency(8).grace(Duration::from_secs(5))
    }

    pub(crate) async fn engine(&self) -> Engine {
        self.builder().open().await.unwrap()
    }
}

pub(crate) fn task(kind: &str) -> NewTask {
    NewTask::new(kind).unwrap()
}

/// Submits a task of a kind.
pub(crate) async fn submit(engine: &Engine, kind: &str) -> TaskId {
    engine.submit_task(task(kind)).await.unwrap().id()
}
