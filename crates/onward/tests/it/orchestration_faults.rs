//! Random orchestrations in processes that die at random. Their results are those that their code
//! computes.
//!
//! `ONWARD_SEQUENCES` sets the number of orchestrations, `ONWARD_SEED` the random seed.

use onward_store::StoreReads;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use onward::orchestration::{Either, OrchestrationContext, select, try_join_all};
use onward::{Engine, Failure, Store, Task, TaskId, TaskState};
use onward_testkit::soak::{self, Tally};
use onward_testkit::{Fault, FaultyStore, Side};
use serde::{Deserialize, Serialize};

use crate::fixture::{SECOND, TestStore};
use crate::test_store::StoreKind;

on_every_store! {
    orchestrations_survive_any_death,
}

/// An operation of the code.
#[derive(Serialize, Deserialize, Debug, Clone)]
enum Op {
    Activity(u64),
    Flaky(u64),
    Timer(u64),
    Event,
    Step(u64),
    Detach(u64),
    All(Vec<Op>),
    /// A race of an operation against a future that is never ready.
    First(Box<Op>),
    Child(Vec<Op>),
}

/// The program of an orchestration, in segments. The orchestration continues as new after each.
#[derive(Serialize, Deserialize, Debug, Clone)]
pub(crate) struct Program {
    segments: Vec<Vec<Op>>,
    digest: u64,
}

impl Task for Program {
    const KIND: &'static str = "program";
    const ORCHESTRATION: bool = true;
    type Output = u64;
}

#[derive(Serialize, Deserialize)]
struct Square(u64);

impl Task for Square {
    const KIND: &'static str = "square";
    type Output = u64;
}

fn mix(digest: u64, value: u64) -> u64 {
    (digest ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
}

impl Op {
    fn random(random: &mut fastrand::Rng, depth: u32) -> Self {
        let number = random.u64(1..1000);
        match random.u32(0..if depth == 0 { 6 } else { 9 }) {
            0 => Self::Activity(number),
            1 => Self::Flaky(number),
            2 => Self::Timer(number),
            3 => Self::Event,
            4 => Self::Step(number),
            5 => Self::Detach(number),
            6 => Self::All((0..random.u32(1..5)).map(|_| Self::random(random, depth - 1)).collect()),
            7 => Self::First(Box::new(Self::random(random, depth - 1))),
            _ => Self::Child((0..random.u32(1..4)).map(|_| Self::random(random, depth - 1).without_events()).collect()),
        }
    }

    /// Replaces events, because children receive none.
    fn without_events(self) -> Self {
        match self {
            Self::Event => Self::Activity(7),
            Self::All(ops) => Self::All(ops.into_iter().map(Self::without_events).collect()),
            Self::First(op) => Self::First(Box::new(op.without_events())),
            other => other,
        }
    }

    fn events(&self) -> usize {
        match self {
            Self::Event => 1,
            Self::All(ops) => ops.iter().map(Self::events).sum(),
            Self::First(op) => op.events(),
            _ => 0,
        }
    }

    /// Returns the number of tasks that it submits, including sub-orchestrations and their tasks.
    fn tasks(&self) -> usize {
        match self {
            Self::Activity(_) | Self::Flaky(_) | Self::Detach(_) => 1,
            Self::All(ops) => ops.iter().map(Self::tasks).sum(),
            Self::First(op) => op.tasks(),
            Self::Child(ops) => 1 + ops.iter().map(Self::tasks).sum::<usize>(),
            Self::Timer(_) | Self::Event | Self::Step(_) => 0,
        }
    }

    /// Returns its value.
    fn value(&self) -> u64 {
        match self {
            Self::Activity(number) | Self::Flaky(number) => number * number,
            Self::Timer(_) | Self::Detach(_) => 3,
            Self::Event => 5,
            Self::Step(number) => number + 1,
            Self::All(ops) => ops.iter().fold(11, |digest, op| mix(digest, op.value())),
            Self::First(op) => op.value(),
            Self::Child(ops) => ops.iter().fold(0, |digest, op| mix(digest, op.value())),
        }
    }

    fn play(self, context: OrchestrationContext) -> BoxFuture<'static, Result<u64, Failure>> {
        Box::pin(async move {
            Ok(match self {
                Self::Activity(number) => context.activity(Square(number)).await?,
                Self::Flaky(number) => {
                    let mut task = onward::NewTask::new("flaky")?;
                    task.payload = number.to_string().into();
                    context.activity_task(task).await?
                }
                Self::Timer(milliseconds) => {
                    context.timer(Duration::from_millis(milliseconds)).await;
                    3
                }
                Self::Event => context.event("event")?.await?,
                Self::Step(number) => context.step("step", move || async move { Ok(number + 1) }).await?,
                Self::Detach(number) => {
                    context.detach(Square(number))?;
                    3
                }
                Self::All(ops) => {
                    let all = try_join_all(ops.into_iter().map(|op| op.play(context.clone()))).await?;
                    all.into_iter().fold(11, mix)
                }
                Self::First(op) => match select(op.play(context.clone()), context.event::<u64>("never")?).await {
                    Either::First(value) => value?,
                    Either::Second(never) => never?,
                },
                Self::Child(ops) => context.orchestration(Program { segments: vec![ops], digest: 0 }).await?,
            })
        })
    }
}

impl Program {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut segment = |_| (0..random.u32(1..4)).map(|_| Op::random(&mut random, 2)).collect();
        Self { segments: (0..2).map(&mut segment).collect(), digest: 0 }
    }

    /// Returns the number of events for which it waits.
    pub(crate) fn events(&self) -> usize {
        self.ops().map(Op::events).sum()
    }

    /// Returns the number of tasks that it submits, including sub-orchestrations and their tasks.
    pub(crate) fn tasks(&self) -> usize {
        self.ops().map(Op::tasks).sum()
    }

    fn ops(&self) -> impl Iterator<Item = &Op> {
        self.segments.iter().flatten()
    }

    pub(crate) fn value(&self) -> u64 {
        self.ops().fold(self.digest, |digest, op| mix(digest, op.value()))
    }

    async fn play(mut self, context: OrchestrationContext) -> Result<u64, Failure> {
        for op in self.segments.remove(0) {
            self.digest = mix(self.digest, op.play(context.clone()).await?);
        }
        if self.segments.is_empty() { Ok(self.digest) } else { Err(context.continue_as_new(&self)) }
    }
}

/// Registers the code that runs programs on an engine.
pub(crate) fn register(engine: &Engine) {
    engine.register(|task: Square, _| async move { Ok(task.0 * task.0) });
    let at_once = onward::RetryPolicy { attempts: 9, backoff: onward::Backoff::Constant { delay: Duration::ZERO } };
    engine.handle_with("flaky", onward::HandlerOptions::new().retry(at_once), |context: onward::Context| async move {
        if context.attempt() == 1 {
            return Err(Failure::retryable("at first"));
        }
        let number: u64 = serde_json::from_slice(context.payload())?;
        Ok((number * number).to_string())
    });
    engine.orchestrate(Program::play);
}

/// A simulated process: an engine on a runtime of its own, which is shut down without closing the
/// engine.
struct Life {
    runtime: tokio::runtime::Runtime,
    engine: Engine,
    faulty: Arc<FaultyStore>,
}

impl Life {
    /// Starts a process that lives until the store has had `calls` calls. Later calls never return.
    async fn begin(store: &TestStore, calls: u64, side: Side) -> Self {
        let faulty = Arc::new(FaultyStore::new(store.shared()));
        faulty.fail_from(calls, side, Fault::Timeout);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let engine = Engine::builder().store(faulty.clone()).concurrency(3).open().await.unwrap();
        register(&engine);
        Self { runtime, engine, faulty }
    }

    /// Works until an orchestration has ended, or until the process dies.
    async fn live(self, store: &TestStore, task: TaskId, calls: u64) {
        while !is_over(store, task).await {
            let engine = self.engine.clone();
            let idle = self.runtime.spawn(async move { engine.run_until_idle().await });
            tokio::select! {
                idle = idle => drop(idle.unwrap().unwrap()),
                () = self.faulty.called(calls) => break,
            }
            store.clock.advance(SECOND / 4);
        }
        self.runtime.shutdown_background();
    }
}

async fn is_over(store: &TestStore, task: TaskId) -> bool {
    store.task(task).await.unwrap().is_some_and(|record| record.state.is_ended())
}

/// The number of deaths. A task that has lost three leases becomes a dead letter.
const DEATHS: u32 = 2;

/// Runs a random orchestration through random deaths.
async fn survive(store: &TestStore, seed: u64, tally: &mut Tally) {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_add(1));
    let program = Program::random(seed);
    let engine = Engine::builder().store(store.shared()).open().await.unwrap();
    let task = engine.submit(program.clone()).await.unwrap().id();
    for _ in 0..program.events() {
        engine.signal(task, "event", &5).await.unwrap();
    }
    tally.attempted += 1;
    tally.acknowledged += 1;
    for life in 0..=DEATHS {
        let calls = if life < DEATHS { random.u64(1..30) } else { u64::MAX };
        let side = if random.bool() { Side::Before } else { Side::After };
        Life::begin(store, calls, side).await.live(store, task, calls).await;
        if is_over(store, task).await {
            break;
        }
        tally.recovered += 1;
        store.clock.advance(SECOND * 11);
    }
    assert_came_right(store, task, &program, seed).await;
}

async fn assert_came_right(store: &TestStore, task: TaskId, program: &Program, seed: u64) {
    let record = store.task(task).await.unwrap().unwrap();
    assert_eq!(record.state, TaskState::Completed, "seed {seed}: {:?}, {program:?}", record.errors);
    let value: u64 = serde_json::from_slice(&record.result.into_bytes().unwrap()).unwrap();
    assert_eq!(value, program.value(), "seed {seed}: {program:?}");
    assert_history_is_whole(&*store.shared(), task).await;
    // The orchestration submitted each task, and none twice.
    let submitted = store.count(onward::TaskFilter::default()).await.unwrap();
    assert_eq!(submitted, 1 + program.tasks() as u64, "seed {seed}: {program:?}");
}

/// Checks that the chunks of a history have no gap, and as many events as its record states.
pub(crate) async fn assert_history_is_whole(store: &dyn Store, task: TaskId) {
    let record = store.instance(task).await.unwrap().unwrap();
    let chunks = store.instance_history(task, 0, 1000).await.unwrap();
    let mut next = 0;
    for chunk in chunks {
        assert_eq!(chunk.first, next);
        next += onward::orchestration::decode_history(&chunk).unwrap().len() as u64;
    }
    assert_eq!(next, record.length);
}

/// Shows: D1, D2, D3, D4, D12, B7
async fn orchestrations_survive_any_death(store: TestStore) {
    let count = match store.kind {
        StoreKind::Memory => 1000,
        StoreKind::Sqlite => 100,
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => 10,
    };
    let (first, count) = (soak::seed(), soak::number("ONWARD_SEQUENCES").unwrap_or(count));
    let mut total = Tally { seed: first, ..Tally::default() };
    for seed in first..first + count {
        survive(&store.fresh().await, seed, &mut total).await;
    }
    println!("{total}");
}
