//! Engines on several nodes of one PostgreSQL store; `cargo xtask test` starts a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use onward::control::Cancellation;
use onward::queues::Scope;
use onward::store::PostgresStore;
use onward::testing::ManualClock;
use onward::{Engine, Failure, RetryPolicy, Store, TaskFilter, TaskId, TaskState};
use onward_store::{Durability, StoreReads, Write};

use crate::fixture::{Gate, HOUR, SECOND, start, stop, submit, task};

/// Returns the URL of a schema that no other test uses. If there is no server, prints that and
/// returns `None`.
pub(crate) fn new_schema() -> Option<String> {
    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var("ONWARD_POSTGRES_URL").ok();
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"));
    assert!(url.is_some() || !is_required, "PostgreSQL is required; run the tests with `cargo xtask test`");
    if url.is_none() {
        println!("not tested: ONWARD_POSTGRES_URL is not set; `cargo xtask test` starts PostgreSQL");
    }
    let schema = format!("e{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
    Some(format!("{}#{schema}", url?))
}

/// Nodes of one store, on one clock: an engine each, with connections of its own.
struct Nodes {
    stores: Vec<Arc<dyn Store>>,
    clock: Arc<ManualClock>,
}

impl Nodes {
    /// Opens `count` nodes on a schema of their own. If there is no server, prints that and returns
    /// `None`, and the test ends.
    async fn new(count: usize) -> Option<Self> {
        let url = new_schema()?;
        let clock = Arc::new(ManualClock::default());
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..count {
            // A test must not wait for long if a notification is lost.
            let options = PostgresStore::options().clock(clock.clone()).poll(Duration::from_millis(100));
            stores.push(Arc::new(options.durability(Durability::Normal).open(&url).await.unwrap()));
        }
        Some(Self { stores, clock })
    }

    async fn engine(&self, node: usize) -> Engine {
        let store = Arc::clone(&self.stores[node]);
        Engine::builder().store(store).concurrency(4).lease(HOUR).retry(RetryPolicy::NEVER).open().await.unwrap()
    }

    async fn state(&self, id: TaskId) -> TaskState {
        self.stores[0].task(id).await.unwrap().unwrap().state
    }
}

/// Shows: B2, W10, Q5
#[tokio::test]
async fn a_task_submitted_on_one_node_runs_on_another_and_the_first_is_notified_of_its_end() {
    let Some(nodes) = Nodes::new(2).await else { return };
    let (front, worker) = (nodes.engine(0).await, nodes.engine(1).await);
    worker.handle("work", |_| async { Ok::<_, Failure>("done there") });
    let run = start(&worker);
    let id = submit(&front, "work").await;
    let record = front.wait(id).await.unwrap();
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"done there"[..])));
    stop(&worker, run).await;
}

/// Shows: T13, W10
#[tokio::test]
async fn a_cancellation_reaches_a_handler_on_another_node() {
    let Some(nodes) = Nodes::new(2).await else { return };
    let (front, worker) = (nodes.engine(0).await, nodes.engine(1).await);
    let gate = Gate::new();
    worker.handle("work", gate.stoppable());
    let run = start(&worker);
    let id = submit(&front, "work").await;
    gate.entered(1).await;
    assert_eq!(front.cancel(id).await.unwrap(), Cancellation::Requested);
    assert_eq!(front.wait(id).await.unwrap().state, TaskState::Cancelled);
    stop(&worker, run).await;
}

/// Shows: T14, W10
#[tokio::test]
async fn a_pause_on_one_node_holds_what_waits_from_all() {
    let Some(nodes) = Nodes::new(2).await else { return };
    let (front, worker) = (nodes.engine(0).await, nodes.engine(1).await);
    worker.handle("work", |_| async { Ok::<(), Failure>(()) });
    front.pause(Scope::All).await.unwrap();
    let id = submit(&front, "work").await;
    assert_eq!(worker.drain().await.unwrap().completed, 0);
    assert_eq!(nodes.state(id).await, TaskState::Waiting);
    front.resume(Scope::All).await.unwrap();
    assert_eq!(worker.drain().await.unwrap().completed, 1);
}

/// The process ends without closing its session, and its connections break.
///
/// Shows: T21, B4
#[test]
fn the_tasks_of_a_node_that_died_run_on_another_when_its_lease_is_over() {
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Some(nodes) = runtime.block_on(Nodes::new(1)) else { return };
    let location = nodes.stores[0].info().location;
    let (clock, gate) = (Arc::clone(&nodes.clock), Gate::new());
    let (entered, held) = (gate.clone(), gate.clone());
    let id = doomed.block_on(async move {
        let url = std::env::var("ONWARD_POSTGRES_URL").unwrap();
        let schema = location.rsplit_once('#').unwrap().1;
        let options = PostgresStore::options().clock(clock).durability(Durability::Normal);
        let store = Arc::new(options.open(&format!("{url}#{schema}")).await.unwrap());
        let engine = Engine::builder().store(store).lease(HOUR).open().await.unwrap();
        engine.handle("work", held.handler());
        let id = submit(&engine, "work").await;
        // The task of the runtime ends with the runtime.
        drop(start(&engine));
        entered.entered(1).await;
        id
    });
    doomed.shutdown_background();
    runtime.block_on(async {
        let engine = nodes.engine(0).await;
        engine.handle("work", |_| async { Ok::<_, Failure>("taken over") });
        nodes.clock.advance(HOUR + SECOND);
        nodes.stores[0].apply(vec![Write::Sweep]).await.unwrap();
        engine.drain().await.unwrap();
        let record = nodes.stores[0].task(id).await.unwrap().unwrap();
        assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"taken over"[..])));
    });
}

/// Shows: T5, Q11
#[tokio::test]
async fn each_moment_of_a_schedule_is_fired_once_by_whichever_node() {
    const MOMENTS: u32 = 3;
    let Some(nodes) = Nodes::new(2).await else { return };
    let engines = [nodes.engine(0).await, nodes.engine(1).await];
    let ended = Arc::new(tokio::sync::Semaphore::new(0));
    let mut runs = Vec::new();
    for engine in &engines {
        let reported = Arc::clone(&ended);
        engine.handle("report", move |_| {
            let reported = Arc::clone(&reported);
            async move {
                reported.add_permits(1);
                Ok::<(), Failure>(())
            }
        });
        runs.push(start(engine));
    }
    // A moment may come before the task of the previous one has ended.
    let schedule = engines[0].schedule("often").every(HOUR / 4).task(task("report"));
    schedule.overlap(onward::schedules::Overlap::Allow).await.unwrap();
    for _ in 0..MOMENTS {
        // Every node is notified of the schedule and fires it when it is due. Only then the clock
        // moves on.
        nodes.clock.advance(HOUR / 4);
        ended.acquire().await.unwrap().forget();
    }
    for (engine, run) in engines.iter().zip(runs) {
        stop(engine, run).await;
    }
    let reports = TaskFilter { kind: Some(onward::Name::new("report").unwrap()), ..TaskFilter::default() };
    assert_eq!(nodes.stores[0].count(reports).await.unwrap(), u64::from(MOMENTS));
}

/// Shows: W10
#[tokio::test]
async fn reads_that_are_not_polled_keep_no_connection_from_others() {
    let Some(nodes) = Nodes::new(1).await else { return };
    let mut begun: Vec<_> = (0..64).map(|_| nodes.stores[0].queues()).collect();
    assert!(begun.iter_mut().all(|read| read.now_or_never().is_none()));
    tokio::time::timeout(SECOND * 30, nodes.stores[0].queues()).await.unwrap().unwrap();
}
