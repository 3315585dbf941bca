//! Orchestrations in three processes, which are killed one after the other with `kill -9`.
//!
//! `ONWARD_ROUNDS` sets the number of kills (default: 30), `ONWARD_SEED` their times.

use onward::observe::EventCursor;
use onward::{Engine, TaskFilter, TaskId, TaskState};
use onward_store::StoreReads;
use onward_testkit::soak::{self, Tally};

use crate::fixture::SECOND;
use crate::kills::{Worker, store_of_worker};
use crate::orchestration_faults::{Program, assert_history_is_whole, register};

const PROCESSES: usize = 3;

/// The test that is a worker process.
const WORKER: &str = "orchestration_kills::worker";

/// The number of orchestrations that are started after each kill.
const STARTED: usize = 10;

/// The longest that a kill waits for more work. It is real time, because the workers are real
/// processes.
const IDLE_AT_MOST: std::time::Duration = std::time::Duration::from_secs(1);

/// Opens an engine on a file, or on a database if `store` is a URL.
async fn engine(store: &str) -> Engine {
    let builder = Engine::builder();
    #[cfg(feature = "postgres")]
    let builder = if store.starts_with("postgres://") { builder.postgres(store) } else { builder.sqlite(store) };
    #[cfg(not(feature = "postgres"))]
    let builder = builder.sqlite(store);
    builder.durability(onward::store::Durability::Normal).lease(SECOND * 2).open().await.unwrap()
}

/// Not a test: the worker process.
#[tokio::test]
#[ignore = "it is a process of the test, started by it"]
async fn worker() {
    let engine = engine(&store_of_worker()).await;
    register(&engine);
    engine.run().await.unwrap();
}

/// Shows: D1, D2, D3, D4
#[tokio::test]
async fn orchestrations_on_sqlite_survive_processes_that_are_killed() {
    let directory = tempfile::tempdir().unwrap();
    survive_kills(directory.path().join("onward.db").to_str().unwrap(), 30).await;
}

/// Shows: D1, D2, D3, D4
#[cfg(feature = "postgres")]
#[tokio::test]
async fn orchestrations_on_postgres_survive_processes_that_are_killed() {
    let Some(store) = crate::postgres::new_schema() else { return };
    survive_kills(&store, 30).await;
}

async fn survive_kills(store: &str, kills: u64) {
    let engine = engine(store).await;
    let mut random = fastrand::Rng::with_seed(soak::seed());
    let kills = soak::number("ONWARD_ROUNDS").unwrap_or(kills);
    let mut tally = Tally { seed: soak::seed(), ..Tally::default() };
    let mut started = Vec::new();
    let mut workers: Vec<Worker> = (0..PROCESSES).map(|_| Worker::start(WORKER, store)).collect();
    let mut events = engine.events(EventCursor::START);
    while tally.recovered < kills {
        let first = started.len();
        for _ in 0..STARTED {
            started.push(start(&engine, &mut random).await);
        }
        some_work(&mut events, &mut random).await;
        // A task that loses three leases in a row becomes a dead letter. So all victims are killed
        // before another process can take over a task of one of them, and each task loses one lease
        // before all have ended. The second loss is left for a process that a busy machine stops
        // for longer than its lease.
        let victims = random.usize(1..=PROCESSES);
        workers[..victims].iter_mut().for_each(Worker::kill);
        drop(workers.drain(..victims));
        workers.extend((0..victims).map(|_| Worker::start(WORKER, store)));
        tally.recovered += victims as u64;
        random.shuffle(&mut workers);
        for (task, program) in &started[first..] {
            assert_came_right(&engine, *task, program).await;
        }
    }
    tally.attempted = started.len() as u64;
    tally.acknowledged = tally.attempted;
    drop(workers);
    assert_nothing_was_done_twice(&engine, &started).await;
    println!("{tally}");
}

/// Waits until a random moment of the work, or an idle moment if the work ends sooner.
async fn some_work(events: &mut onward::observe::EventStream, random: &mut fastrand::Rng) {
    let moment = async {
        for _ in 0..random.u32(1..600) {
            events.next().await.unwrap();
        }
    };
    tokio::time::timeout(IDLE_AT_MOST, moment).await.ok();
}

async fn start(engine: &Engine, random: &mut fastrand::Rng) -> (TaskId, Program) {
    let program = Program::random(random.u64(..));
    let task = engine.submit(program.clone()).await.unwrap().id();
    for _ in 0..program.events() {
        engine.signal(task, "event", &5).await.unwrap();
    }
    (task, program)
}

async fn assert_came_right(engine: &Engine, task: TaskId, program: &Program) {
    let record = engine.wait(task).await.unwrap();
    assert_eq!(record.state, TaskState::Completed, "{:?} {program:?}", record.errors);
    let value: u64 = serde_json::from_slice(&record.result.into_bytes().unwrap()).unwrap();
    assert_eq!(value, program.value(), "{program:?}");
    assert_history_is_whole(&**engine.store(), task).await;
}

/// Checks that each orchestration submitted exactly the tasks of its code, none twice.
async fn assert_nothing_was_done_twice(engine: &Engine, started: &[(TaskId, Program)]) {
    let tasks: usize = started.iter().map(|(_, program)| 1 + program.tasks()).sum();
    let submitted = engine.store().count(TaskFilter::default()).await.unwrap();
    assert_eq!(submitted, tasks as u64);
}
