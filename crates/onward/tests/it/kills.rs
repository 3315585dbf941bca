//! Kills the process of an engine with `kill -9` under load and starts it again. Each task has one
//! result, and it is its own.
//!
//! `ONWARD_ROUNDS` sets the number of kills (default: 20). `ONWARD_SEED` determines when they
//! happen and the tasks.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use onward::observe::{Change, EventCursor, EventStream};
use onward::store::Durability;
use onward::{Engine, Failure, TaskId, TaskState};
use onward_testkit::soak::{self, Tally};

use crate::fixture::task;

const STORE: &str = "ONWARD_TEST_STORE";

/// The number of tasks for every two kills. A task that loses three leases in a row becomes a dead
/// letter. So it may lose two before all tasks have ended.
const BATCH: usize = 1000;

/// A process that runs one of the ignored tests here, killed when it is dropped.
pub(crate) struct Worker(Child);

impl Worker {
    pub(crate) fn start(test: &str, store: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--ignored", "--nocapture"]).env(STORE, store);
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap())
    }
}

impl Worker {
    /// Kills the process without waiting until it is gone.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
    }
}

/// Returns the place of the store. Called in a worker process.
pub(crate) fn store_of_worker() -> String {
    std::env::var(STORE).expect("the test says which store it is")
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

async fn engine(store: &str) -> Engine {
    Engine::builder().sqlite(store).durability(Durability::Normal).concurrency(8).open().await.unwrap()
}

/// Not a test: the worker process.
#[tokio::test]
#[ignore = "it is a process of the test, started by it"]
async fn worker() {
    let engine = engine(&store_of_worker()).await;
    engine.handle("reverse", |context| async move {
        tokio::task::yield_now().await;
        Ok::<_, Failure>(reversed(context.payload()))
    });
    engine.run().await.unwrap();
}

fn reversed(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().rev().copied().collect()
}

/// Shows: T21, B4
#[tokio::test]
async fn each_task_has_one_result_and_it_is_its_own_though_its_engine_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("onward.db").display().to_string();
    let engine = engine(&store).await;
    let mut tally = Tally { seed: soak::seed(), ..Tally::default() };
    let mut random = fastrand::Rng::with_seed(tally.seed);
    let mut watch = Watch { events: engine.events(EventCursor::START), completed: BTreeMap::new(), lost: 0 };
    for _ in 0..soak::number("ONWARD_ROUNDS").unwrap_or(20).div_ceil(2) {
        let worker = Worker::start("kills::worker", &store);
        let submitted = submit(&engine, &mut random).await;
        watch.some_completions(&mut random).await;
        drop(worker);
        let worker = Worker::start("kills::worker", &store);
        watch.some_completions(&mut random).await;
        drop(worker);
        let _worker = Worker::start("kills::worker", &store);
        for (id, payload) in &submitted {
            assert_has_its_result(&engine, *id, payload).await;
        }
        watch.until_now().await;
        tally.attempted += submitted.len() as u64;
    }
    tally.acknowledged = watch.completed.len() as u64;
    tally.duplicated = watch.completed.values().filter(|times| **times > 1).count() as u64;
    tally.recovered = watch.lost;
    println!("{tally}");
    assert_eq!((tally.acknowledged, tally.duplicated), (tally.attempted, 0));
    assert!(tally.recovered > 0, "no kill has interrupted anything");
}

/// Submits tasks with random payloads.
async fn submit(engine: &Engine, random: &mut fastrand::Rng) -> Vec<(TaskId, Vec<u8>)> {
    let payloads: Vec<Vec<u8>> = (0..BATCH).map(|_| random_bytes(random)).collect();
    let with_payload = |payload: &Vec<u8>| onward::NewTask { payload: payload.clone().into(), ..task("reverse") };
    let submitted = engine.submit_all(payloads.iter().map(with_payload).collect()).await.unwrap();
    submitted.iter().map(|submitted| submitted.id()).zip(payloads).collect()
}

fn random_bytes(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = random.usize(0..2000);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

async fn assert_has_its_result(engine: &Engine, id: TaskId, payload: &[u8]) {
    let record = engine.wait(id).await.unwrap();
    assert_eq!(record.state, TaskState::Completed, "task {id}: {:?}", record.errors);
    assert_eq!(record.payload.as_deref(), Some(payload), "the payload of task {id}");
    assert_eq!(record.result.as_deref(), Some(&*reversed(payload)), "the result of task {id}");
}

/// A watch on the events so far.
struct Watch {
    events: EventStream,
    /// The number of completions of each task.
    completed: BTreeMap<TaskId, u32>,
    /// The number of lost leases.
    lost: u64,
}

impl Watch {
    /// Waits until a random moment of the work.
    async fn some_completions(&mut self, random: &mut fastrand::Rng) {
        let enough = self.completed.len() + random.usize(1..BATCH / 3);
        while self.completed.len() < enough {
            let event = self.events.next().await.unwrap();
            self.note(event.task, &event.change);
        }
        // The moment right after a completion is not random, so a random delay follows.
        (0..random.u32(0..1_000_000)).for_each(|_| std::hint::spin_loop());
    }

    async fn until_now(&mut self) {
        while let Some(event) = self.events.try_next().await.unwrap() {
            self.note(event.task, &event.change);
        }
    }

    fn note(&mut self, task: TaskId, change: &Change) {
        match change {
            Change::Completed => *self.completed.entry(task).or_default() += 1,
            Change::LeaseLost => self.lost += 1,
            _ => {}
        }
    }
}
