//! What an engine does when its store fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward::{Clock, Engine, EventCursor, Failure, Store, Submitted, TaskId, TaskRecord, TaskState};
use onward_store::{
    Answer, Changes, Claim, Error, EventPage, KindStatistics, NewsReceiver, Outcome, Page, PauseRecord, QueueRecord,
    SessionRecord, StoreInfo, TaskFilter, TaskPage, Write,
};
use onward_testkit::{Fault, FaultyStore};

use crate::fixture::{SECOND, World, start_drain, task, worlds};

const TASKS: usize = 20;

/// An engine on a store, and tasks that it is to run: every second one fails at its first attempt.
async fn engine_on(world: &World, store: Arc<dyn Store>) -> (Engine, Vec<TaskId>) {
    let submitted = world.engine().await.submit_all(vec![task("any"); TASKS]).await.unwrap();
    let engine = Engine::builder().store(store).concurrency(2).retry(again_at_once()).open().await.unwrap();
    engine.handle("any", |context| async move {
        if context.id().0 % 2 == 0 && context.attempt() == 1 { Err(Failure::retryable("at first")) } else { Ok(()) }
    });
    (engine, submitted.into_iter().map(Submitted::id).collect())
}

fn again_at_once() -> onward::RetryPolicy {
    onward::RetryPolicy { attempts: 9, backoff: onward::Backoff::Constant { delay: std::time::Duration::ZERO } }
}

async fn assert_all_completed(world: &World, tasks: &[TaskId], what: &str) {
    for task in tasks {
        let record = world.store.task(*task).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Completed, "{what}: task {task}");
    }
}

/// Fails each call of a drain in turn, until there are no more.
async fn fail_each_call_in_turn(fault: Fault) {
    for store in 0..worlds().await.len() {
        for failing in 1.. {
            let world = worlds().await.swap_remove(store);
            let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store)));
            let (engine, tasks) = engine_on(&world, faulty.clone()).await;
            faulty.fail_once(failing, fault);
            world.advance_until(SECOND / 10, start_drain(&engine)).await;
            assert_all_completed(&world, &tasks, &format!("call {failing} failed")).await;
            if faulty.calls() < failing {
                break;
            }
        }
    }
}

/// Shows: T21
#[tokio::test]
async fn no_failing_call_loses_a_task() {
    fail_each_call_in_turn(Fault::Before).await;
}

/// Shows: T21
#[tokio::test]
async fn no_lost_answer_loses_a_task() {
    fail_each_call_in_turn(Fault::After).await;
}

/// Shows: T21
#[tokio::test]
async fn an_engine_goes_on_when_its_store_has_been_mended() {
    for world in worlds().await {
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store)));
        let (engine, tasks) = engine_on(&world, faulty.clone()).await;
        faulty.fail_from(3, Fault::Before);
        let drain = start_drain(&engine);
        while faulty.calls() < 10 {
            world.clock.advance(SECOND);
            tokio::task::yield_now().await;
        }
        faulty.heal();
        world.advance_until(SECOND, drain).await;
        assert_all_completed(&world, &tasks, "mended").await;
    }
}

/// Shows: T21
#[tokio::test]
async fn a_store_that_fails_for_good_ends_the_run_with_its_error() {
    for world in worlds().await {
        let damaged = Damaged { store: Arc::clone(&world.store), calls: AtomicUsize::new(0) };
        let (engine, _) = engine_on(&world, Arc::new(damaged)).await;
        let run = tokio::spawn(async move { engine.drain().await.unwrap_err() });
        let error = world.advance_until(SECOND, run).await;
        assert!(error.is_corrupt(), "{error}");
    }
}

/// A store that turns out to be damaged at the third call.
#[derive(Debug)]
struct Damaged {
    store: Arc<dyn Store>,
    calls: AtomicUsize,
}

impl Store for Damaged {
    fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < 2 {
            return self.store.apply(writes);
        }
        Box::pin(async { Err(Error::corrupt("page 7 is damaged; restore a backup")) })
    }
    fn changes(&self) -> Changes {
        self.store.changes()
    }
    fn news(&self) -> NewsReceiver {
        self.store.news()
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
