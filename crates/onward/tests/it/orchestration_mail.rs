//! Random signals, steps, ends, cancellations and senders. Every acknowledged signal is in one
//! history once, or waits.
//!
//! `ONWARD_SIGNALS` sets the number of signals, `ONWARD_SEED` the random seed.

use onward_store::StoreReads;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward::orchestration::{Either, HistoryEvent, OrchestrationContext, select};
use onward::store::Page;
use onward::task::AttemptError;
use onward::{Engine, Failure, Name, TaskFilter, TaskId, TaskState};
use onward_testkit::soak::{self, Tally};
use tokio::task::JoinHandle;

use crate::fixture::{TestStore, start, stop};
use crate::orchestrations::Part;
use crate::test_store::StoreKind;

on_every_store! {
    every_acknowledged_signal_is_accounted_for with threads,
}

const SENDERS: u64 = 8;

/// The number of keys. It is so small that senders often meet an orchestration that is about to
/// end.
const KEYS: u64 = 4;

async fn short_step() -> Result<(), Failure> {
    tokio::task::yield_now().await;
    Ok(())
}

/// Takes signals and ends in every possible way, by chance.
async fn entity(_: Part, context: OrchestrationContext) -> Result<String, Failure> {
    let queue = context.queue::<u64>("number")?;
    let (mut taken, most) = (Vec::new(), context.random() % 20);
    while (taken.len() as u64) < most {
        match context.random() % 5 {
            0 => {
                while let Some(number) = queue.try_next()? {
                    taken.push(number);
                }
            }
            1 => match select(queue.next(), context.timer(Duration::ZERO)).await {
                Either::First(number) => taken.push(number?),
                Either::Second(()) => break,
            },
            2 => context.step("short", short_step).await?,
            3 => match select(queue.next(), context.step("short", short_step)).await {
                Either::First(number) => taken.push(number?),
                Either::Second(done) => done?,
            },
            _ => taken.push(queue.next().await?),
        }
    }
    let text = serde_json::to_string(&taken).unwrap_or_default();
    if context.random().is_multiple_of(4) { Err(Failure::permanent(text)) } else { Ok(text) }
}

async fn engine(store: &TestStore) -> Engine {
    let engine = store.engine().await;
    engine.orchestrate(entity);
    engine
}

/// Sends signals until `count` are sent. Sometimes ends the orchestration that received one.
async fn send(engine: Engine, next: Arc<AtomicU64>, count: u64, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acknowledged = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return acknowledged;
        }
        let key = Part(format!("{}", random.u64(..KEYS)));
        let Ok(part) = engine.signal_or_start(key, "number", &number).await else { continue };
        acknowledged.push(number);
        // An orchestration that has ended in the meantime is not ended again. None is ended in both
        // ways, because requests to stop wait in the mailbox as signals do.
        if random.u32(..50) == 0 {
            match part.id().0 % 2 {
                0 => drop(engine.terminate(part.id(), "by chance").await),
                _ => drop(engine.cancel(part.id()).await),
            }
        }
    }
}

fn senders(engine: &Engine, count: u64, seed: u64) -> Vec<JoinHandle<Vec<u64>>> {
    let next = Arc::new(AtomicU64::new(0));
    let sender = |place| tokio::spawn(send(engine.clone(), Arc::clone(&next), count, seed.wrapping_add(place)));
    (0..SENDERS).map(sender).collect()
}

async fn every_orchestration(engine: &Engine) -> Vec<(TaskId, TaskState)> {
    let filter = TaskFilter { kind: Some(Name::new("part").unwrap()), ..TaskFilter::default() };
    let (mut all, mut page) = (Vec::new(), Page::default());
    loop {
        let found = engine.store().tasks(filter.clone(), page).await.unwrap();
        all.extend(found.tasks.iter().map(|task| (task.id, task.state)));
        let Some(before) = found.next else { return all };
        page.before = Some(before);
    }
}

/// Returns the signals of a history, in the order of their arrival, and the number of unread ones.
async fn signals_of(engine: &Engine, task: TaskId) -> (Vec<u64>, u64) {
    let (mut numbers, mut unread) = (Vec::new(), 0);
    for event in engine.orchestration_history(task).await.unwrap() {
        match event {
            HistoryEvent::SignalReceived { payload, .. } | HistoryEvent::SignalCarried { payload, .. } => {
                numbers.push(serde_json::from_slice(&payload).unwrap());
            }
            HistoryEvent::SignalsUnread { count, .. } => unread += count,
            _ => {}
        }
    }
    (numbers, unread)
}

/// Returns the numbers that the code of an ended orchestration reports as taken.
async fn taken_by(engine: &Engine, task: TaskId, state: TaskState) -> Option<Vec<u64>> {
    let record = engine.store().task(task).await.unwrap()?;
    match state {
        TaskState::Completed => {
            let text: String = serde_json::from_slice(&record.result.into_bytes()?).ok()?;
            serde_json::from_str(&text).ok()
        }
        TaskState::Failed => serde_json::from_str(&record.errors.last()?.message).ok(),
        _ => None,
    }
}

async fn errors_of(engine: &Engine, task: TaskId) -> Vec<AttemptError> {
    engine.store().task(task).await.unwrap().map(|record| record.errors).unwrap_or_default()
}

/// Shows: D3, D9
async fn every_acknowledged_signal_is_accounted_for(store: TestStore) {
    let count = match store.kind {
        StoreKind::Memory | StoreKind::Sqlite => 2000,
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => 300,
    };
    let (seed, count) = (soak::seed(), soak::number("ONWARD_SIGNALS").unwrap_or(count));
    let engines = [engine(&store).await, engine(&store).await];
    let runs = engines.each_ref().map(start);
    let mut acknowledged = HashSet::new();
    for sender in senders(&engines[0], count, seed) {
        acknowledged.extend(sender.await.unwrap());
    }
    for (engine, run) in engines.iter().zip(runs) {
        stop(engine, run).await;
    }
    engines[0].run_until_idle().await.unwrap();
    let mut tally = Tally { attempted: count, acknowledged: acknowledged.len() as u64, seed, ..Tally::default() };
    let (missing, waiting) = account(&engines[0], acknowledged, &mut tally).await;
    println!("{tally}");
    let some: Vec<u64> = missing.iter().copied().take(20).collect();
    assert_eq!(
        (tally.lost, tally.duplicated),
        (0, 0),
        "seed {seed}: {waiting} wait, and {} are of no history, such as {some:?}",
        missing.len()
    );
}

/// Counts lost signals, which are neither in a history nor waiting, and signals that are in two
/// histories.
async fn account(engine: &Engine, mut missing: HashSet<u64>, tally: &mut Tally) -> (HashSet<u64>, u64) {
    let mut waiting = 0;
    for (task, state) in every_orchestration(engine).await {
        // The mailbox of a dead orchestration may contain requests to stop, which the store counts
        // as signals.
        assert_ne!(
            state,
            TaskState::Dead,
            "orchestration {task}, seed {}: {:?}",
            tally.seed,
            errors_of(engine, task).await
        );
        let (numbers, unread) = signals_of(engine, task).await;
        waiting += engine.orchestration_status(task).await.unwrap().record().waiting;
        if let Some(taken) = taken_by(engine, task, state).await {
            let read = numbers.len() - usize::try_from(unread).unwrap();
            assert_eq!(taken, numbers[..read], "of orchestration {task}, seed {}", tally.seed);
        }
        tally.duplicated += numbers.iter().filter(|number| !missing.remove(number)).count() as u64;
    }
    // The store counts the waiting signals without naming them.
    tally.lost = (missing.len() as u64).abs_diff(waiting);
    (missing, waiting)
}
