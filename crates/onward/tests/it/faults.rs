//! What an engine does when its store fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward::{Clock, Engine, EventCursor, Failure, Store, TaskId, TaskRecord, TaskState};
use onward_store::{
    Answer, Changes, Claim, Error, EventPage, KindStatistics, Outcome, Page, PauseRecord, QueueRecord, SessionRecord,
    StoreInfo, TaskFilter, TaskPage, Write,
};

use crate::fixture::{SECOND, World, start_drain, state, task, worlds};

/// A store whose calls from one on fail for a while.
#[derive(Debug)]
struct Faulty {
    store: Arc<dyn Store>,
    calls: AtomicUsize,
    /// The first call that fails, and the first after it that does not.
    fails: std::ops::Range<usize>,
    error: fn() -> Error,
}

impl Store for Faulty {
    fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.fails.contains(&call) { Box::pin(async { Err((self.error)()) }) } else { self.store.apply(writes) }
    }
    fn changes(&self) -> Changes {
        self.store.changes()
    }
    fn clock(&self) -> Arc<dyn Clock> {
        self.store.clock()
    }
    fn task(&self, task: TaskId) -> Answer<'_, Option<TaskRecord>> {
        self.store.task(task)
    }
    fn tasks(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskPage> {
        self.store.tasks(filter, page)
    }
    fn peek(&self, claim: Claim) -> Answer<'_, Option<TaskRecord>> {
        self.store.peek(claim)
    }
    fn queues(&self) -> Answer<'_, Vec<QueueRecord>> {
        self.store.queues()
    }
    fn statistics(&self) -> Answer<'_, Vec<KindStatistics>> {
        self.store.statistics()
    }
    fn sessions(&self) -> Answer<'_, Vec<SessionRecord>> {
        self.store.sessions()
    }
    fn pauses(&self) -> Answer<'_, Vec<PauseRecord>> {
        self.store.pauses()
    }
    fn events(&self, after: EventCursor, limit: usize) -> Answer<'_, EventPage> {
        self.store.events(after, limit)
    }
    fn info(&self) -> StoreInfo {
        self.store.info()
    }
}

/// An engine whose store fails in the given calls, and the tasks that it is to run.
async fn engine_on(world: &World, fails: std::ops::Range<usize>, error: fn() -> Error) -> (Engine, Vec<TaskId>) {
    let submitted = world.engine().await.submit_all(vec![task("any"); 20]).await.unwrap();
    let store = Faulty { store: Arc::clone(&world.store), calls: AtomicUsize::new(0), fails, error };
    let engine = Engine::builder().store(Arc::new(store)).concurrency(2).open().await.unwrap();
    engine.handle("any", |_| async { Ok::<(), Failure>(()) });
    (engine, submitted.into_iter().map(onward::Submitted::id).collect())
}

/// Shows: T21
#[tokio::test]
async fn a_passing_failure_of_any_call_loses_nothing() {
    for failing in 0..12 {
        for world in worlds().await {
            let (engine, tasks) = engine_on(&world, failing..failing + 3, || Error::full("no room")).await;
            world.advance_until(SECOND / 10, start_drain(&engine)).await;
            for task in tasks {
                let record = world.store.task(task).await.unwrap().unwrap();
                assert_eq!((record.state, record.attempts), (TaskState::Completed, 1), "call {failing} failed");
            }
        }
    }
}

/// Shows: T21
#[tokio::test]
async fn a_store_that_fails_for_good_ends_the_run_with_its_error() {
    for world in worlds().await {
        let (engine, tasks) = engine_on(&world, 2..usize::MAX, || Error::corrupt("page 7 is damaged")).await;
        let run = tokio::spawn(async move { engine.drain().await.unwrap_err() });
        let error = world.advance_until(SECOND, run).await;
        assert!(error.is_corrupt(), "{error}");
        assert!(!state(&world, tasks[0]).await.is_ended());
    }
}
