//! Ends with turns among signals, other workers, and calls whose replies are lost: orchestrations
//! and runs come to the same end as with messages alone.
//!
//! `ONWARD_SEQUENCES` sets the number of each, `ONWARD_SEED` the random seed.

use std::sync::{Arc, Mutex};

use onward::workflow::template::TemplateFile;
use onward::{Context, Engine, TaskFilter, TaskId, TaskState};
use onward_store::{
    AttemptEnd, EndWithTurn, Ended, Failed, Name, Outcome, Recipient, Signal, Store, StoreDecorator, StoreFuture,
    StoreReads, Write,
};
use onward_testkit::soak;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fixture::{SECOND, TestStore, start as start_run};
use crate::orchestration_faults::{Program, assert_history_is_whole, register};
use crate::test_store::StoreKind;

on_every_store! {
    orchestrations_come_to_the_same_end_as_with_messages_alone,
    runs_come_to_the_same_end_as_with_messages_alone,
}

/// The event beside an end with a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// The store writes the end alone.
    Alone,
    /// A signal that the code does not await comes before the end.
    Signal,
    /// The call fails, and nothing of it happened.
    FailedBefore,
    /// The call fails, and all of it happened.
    FailedAfter,
}

/// A store that lets something happen beside each end with a turn.
#[derive(Debug)]
struct Meddling {
    inner: Arc<dyn Store>,
    random: Mutex<fastrand::Rng>,
    /// The faults that are left. A task that has lost three leases becomes a dead letter.
    faults: Mutex<u32>,
    /// The ends that were written with a turn, and those without.
    ends: Mutex<(u64, u64)>,
}

impl Meddling {
    fn new(inner: Arc<dyn Store>, seed: u64) -> Arc<Self> {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Arc::new(Self { inner, random, faults: Mutex::new(2), ends: Mutex::default() })
    }

    fn beside(&self) -> Beside {
        let beside = match self.random.lock().unwrap().u32(0..10) {
            0 | 1 => Beside::Alone,
            2 | 3 => Beside::Signal,
            4 => Beside::FailedBefore,
            5 => Beside::FailedAfter,
            _ => Beside::Nothing,
        };
        if !matches!(beside, Beside::FailedBefore | Beside::FailedAfter) {
            return beside;
        }
        let mut faults = self.faults.lock().unwrap();
        if *faults == 0 {
            return Beside::Nothing;
        }
        *faults -= 1;
        beside
    }

    async fn signal(&self, writes: &[Write]) {
        let parents = writes.iter().filter_map(|write| match write {
            Write::EndWithTurn(end) => Some(end.turn.lease.task),
            _ => None,
        });
        let signal =
            |parent| Signal { to: Recipient::Task(parent), name: Name::new("noise").unwrap(), payload: "null".into() };
        let signals = parents.map(|parent| Write::Signal(Box::new(signal(parent)))).collect();
        self.inner.apply(signals).await.unwrap();
    }

    fn note(&self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            if let Outcome::Ended(Ended { turned, .. }) = outcome {
                let mut ends = self.ends.lock().unwrap();
                *(if turned.is_some() { &mut ends.0 } else { &mut ends.1 }) += 1;
            }
        }
    }
}

/// Returns the write that is the end alone.
fn alone(write: Write) -> Write {
    let Write::EndWithTurn(end) = write else { return write };
    let EndWithTurn { lease, end, .. } = *end;
    match end {
        AttemptEnd::Complete { result } => Write::Complete { lease, result },
        AttemptEnd::Fail { error, next } => Write::Fail { lease, error, next },
        AttemptEnd::ConfirmCancel { reason } => Write::ConfirmCancel { lease, reason },
    }
}

/// Returns the outcome of an end alone as that of an end with a turn that was not written.
fn without_turn(planned: Option<TaskState>, outcome: Outcome) -> Outcome {
    match (planned, outcome) {
        (Some(state), Outcome::Done) => Outcome::Ended(Ended { state, lease: None, turned: None }),
        (Some(_), Outcome::Failed(Failed { state, lease })) => Outcome::Ended(Ended { state, lease, turned: None }),
        (_, outcome) => outcome,
    }
}

impl StoreDecorator for Meddling {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(async move {
            let fuses = writes.iter().any(|write| matches!(write, Write::EndWithTurn(_)));
            let beside = if fuses { self.beside() } else { Beside::Nothing };
            let failed = || onward_store::Error::busy("another process has the store");
            let outcomes = match beside {
                Beside::FailedBefore => return Err(failed()),
                Beside::Alone => {
                    let planned = |write: &Write| match write {
                        Write::EndWithTurn(end) => end.end.state(),
                        _ => None,
                    };
                    let planned: Vec<_> = writes.iter().map(planned).collect();
                    let outcomes = self.inner.apply(writes.into_iter().map(alone).collect()).await?;
                    planned.into_iter().zip(outcomes).map(|(state, outcome)| without_turn(state, outcome)).collect()
                }
                Beside::Signal => {
                    self.signal(&writes).await;
                    self.inner.apply(writes).await?
                }
                Beside::Nothing | Beside::FailedAfter => self.inner.apply(writes).await?,
            };
            self.note(&outcomes);
            if beside == Beside::FailedAfter { Err(failed()) } else { Ok(outcomes) }
        })
    }
}

/// The longest that an orchestration may take, in steps of the clock. The longest timer takes four.
const STEPS: u32 = 1000;

/// Two engines on one store, with something beside their ends.
struct Engines {
    stores: Vec<Arc<Meddling>>,
    engines: Vec<Engine>,
    runs: Vec<JoinHandle<()>>,
}

impl Engines {
    async fn start(store: &TestStore, seed: u64, set_up: impl Fn(&Engine)) -> Self {
        let (mut stores, mut engines, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..2 {
            let meddling = Meddling::new(store.shared(), seed.wrapping_mul(2).wrapping_add(number));
            let engine =
                store.builder().store(meddling.clone()).concurrency(3).lease(SECOND * 10).open().await.unwrap();
            set_up(&engine);
            runs.push(start_run(&engine));
            stores.push(meddling);
            engines.push(engine);
        }
        Self { stores, engines, runs }
    }

    /// Works until a task has ended, stops, and returns the numbers of ends with and without turns.
    async fn finish(self, store: &TestStore, task: TaskId) -> (u64, u64) {
        for _ in 0..STEPS {
            if store.task(task).await.unwrap().unwrap().state.is_ended() {
                break;
            }
            store.advance(SECOND / 4).await;
        }
        let record = store.task(task).await.unwrap().unwrap();
        assert!(record.state.is_ended(), "it has not ended: {record:?}");
        for (engine, run) in self.engines.iter().zip(self.runs) {
            // A call that failed is tried again after a time, also while the engine stops.
            engine.stop();
            store.advance_until(SECOND / 4, run).await;
        }
        let ends = self.stores.iter().map(|store| *store.ends.lock().unwrap());
        ends.fold((0, 0), |(with, without), (more, other)| (with + more, without + other))
    }
}

fn seeds(store: &TestStore) -> std::ops::Range<u64> {
    let count = match store.kind {
        StoreKind::Memory => 200,
        StoreKind::Sqlite => 30,
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => 8,
    };
    let first = soak::seed();
    first..first + soak::number("ONWARD_SEQUENCES").unwrap_or(count)
}

fn add(total: &mut (u64, u64), ends: (u64, u64)) {
    *total = (total.0 + ends.0, total.1 + ends.1);
}

/// Checks that the sequences of a store reached both kinds of ends. On PostgreSQL they are too few:
/// which engine claims first depends on the time that the server takes.
fn assert_both_happened(store: &TestStore, (with, without): (u64, u64)) {
    assert!(with + without > 0, "no task ended");
    let are_enough = matches!(store.kind, StoreKind::Memory | StoreKind::Sqlite);
    assert!(!are_enough || with > 0 && without > 0, "{with} ends with a turn, {without} without");
}

/// Shows: D1, D2, D12
async fn orchestrations_come_to_the_same_end_as_with_messages_alone(store: TestStore) {
    let mut total = (0, 0);
    for seed in seeds(&store) {
        let (store, program) = (store.fresh().await, Program::random(seed));
        let engines = Engines::start(&store, seed, register).await;
        let task = engines.engines[1].submit(program.clone()).await.unwrap().id();
        for _ in 0..program.events() {
            engines.engines[1].signal(task, "event", &5).await.unwrap();
        }
        add(&mut total, engines.finish(&store, task).await);
        let record = store.task(task).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Completed, "seed {seed}: {:?}, {program:?}", record.errors);
        let value: u64 = serde_json::from_slice(record.result.bytes().unwrap()).unwrap();
        assert_eq!(value, program.value(), "seed {seed}: {program:?}");
        assert_history_is_whole(&*store.shared(), task).await;
        let submitted = store.count(TaskFilter::default()).await.unwrap();
        assert_eq!(submitted, 1 + program.tasks() as u64, "seed {seed}: {program:?}");
    }
    assert_both_happened(&store, total);
}

/// A chain, branches, a batch, and a step that fails and is forgiven.
const TEMPLATE: &str = r"
steps:
  a: {task: double, with: '${{ input }}'}
  b: {task: double, with: '${{ steps.a.result }}', depends_on: [a]}
  c: {task: double, with: '${{ steps.b.result }}', depends_on: [b]}
  many: {each: '[1, 2, 3, 4, 5]', task: double, with: '${{ item }}', depends_on: [a]}
  bad: {task: fail, on_failure: continue, depends_on: [a]}
  last: {task: double, with: '${{ steps.c.result }}', depends_on: [c, many, bad]}
  sum: {value: ['${{ steps.last.result }}', '${{ steps.many.result }}', '${{ steps.bad.result }}'],
    depends_on: [last, many, bad]}";

fn set_up(engine: &Engine) {
    engine.add_workflow(TemplateFile::read("mixed.yaml", TEMPLATE).unwrap());
    engine.handle("double", |context: Context| async move {
        let number: u64 = serde_json::from_slice(context.payload()).unwrap();
        Ok(json!(number * 2).to_string())
    });
    engine.handle("fail", |_: Context| std::future::ready(Err::<String, _>(onward::Failure::permanent("no account"))));
}

/// Shows: W2, W4
async fn runs_come_to_the_same_end_as_with_messages_alone(store: TestStore) {
    let mut total = (0, 0);
    for seed in seeds(&store) {
        let store = store.fresh().await;
        let engines = Engines::start(&store, seed, set_up).await;
        let run = engines.engines[1].start_run("mixed").input(&json!(7)).await.unwrap().id;
        add(&mut total, engines.finish(&store, run).await);
        let record = store.task(run).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Completed, "seed {seed}: {:?}", record.errors);
        let result: Value = serde_json::from_slice(record.result.bytes().unwrap()).unwrap();
        assert_eq!(result, json!([112, [2, 4, 6, 8, 10], null]), "seed {seed}");
        let children = store.count(TaskFilter { parent: Some(run), ..TaskFilter::default() }).await.unwrap();
        assert_eq!(children, 10, "seed {seed}: a step was submitted twice");
    }
    assert_both_happened(&store, total);
}
