//! Orchestrations that are started and awaited, so many in flight: what an activity, a step, a start and an end cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Request, Row, now};
use onward::orchestration::{OrchestrationContext, try_join_all};
use onward::{Engine, Failure, Store, Task};
use serde::{Deserialize, Serialize};

use crate::open::open_store;
use crate::running;

/// What an orchestration does: so many of one thing. Its result is how many it has done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Activities, all at once.
    FanOut(usize),
    /// Activities, one after the other.
    Chain(usize),
    /// Inline steps, one after the other.
    Steps(usize),
}

impl Task for Work {
    const KIND: &'static str = "work";
    const ORCHESTRATION: bool = true;
    type Output = usize;
}

impl Work {
    /// What the orchestrations of a row do.
    fn of(row: &Row, settings: &str) -> Self {
        match row.workload.as_str() {
            "fan_out" => Self::FanOut(row.steps),
            "steps" if settings != "queued activities" => Self::Steps(row.steps),
            _ => Self::Chain(row.steps),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Part(usize);

impl Task for Part {
    const KIND: &'static str = "part";
    type Output = usize;
}

async fn work(work: Work, context: OrchestrationContext) -> Result<usize, Failure> {
    match work {
        Work::FanOut(parts) => {
            let done = try_join_all((0..parts).map(|part| context.activity(Part(part)))).await?;
            Ok(done.iter().enumerate().filter(|(part, done)| *part == **done).count())
        }
        Work::Chain(parts) => {
            for part in 0..parts {
                context.activity(Part(part)).await?;
            }
            Ok(parts)
        }
        Work::Steps(steps) => {
            for step in 0..steps {
                context.step("step", move || async move { Ok(step) }).await?;
            }
            Ok(steps)
        }
    }
}

/// An engine with the slots of a row, for activities and for turns.
pub(crate) async fn engine(store: &Arc<dyn Store>, row: &Row) -> Result<Engine> {
    let builder = Engine::builder().store(store.clone()).concurrency(row.slots.max(1)).turns(row.turns.max(1));
    Ok(builder.open().await?)
}

fn register(engine: &Engine, activity: Duration) {
    engine.register(move |Part(part): Part, _context| async move {
        if !activity.is_zero() {
            tokio::time::sleep(activity).await;
        }
        Ok(part)
    });
    engine.orchestrate(work);
}

/// What came of the orchestrations of one starter, or of all.
#[derive(Debug, Default)]
struct Ends {
    latencies: Latencies,
    completed: usize,
    failed: usize,
}

/// Starts orchestrations and awaits each: so many starters, each with one in flight. The figure is orchestrations or steps a second, or
/// what one takes, as the row's unit says.
pub(crate) async fn in_flight(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    register(&engine, Duration::from_millis(row.activity_ms));
    let running = running::start(&engine);

    let before = opened.commits();
    let started = now();
    let mut ends = start_all(request, &engine).await?;
    let elapsed = started.elapsed();
    // Lives of what the row counts: steps where it is about them.
    let operations = if row.workload == "steps" { row.count * row.steps } else { row.count };
    let commits = opened.commit_sizes(&before, operations);

    running::finish(&engine, running).await?;
    let per_second = operations as f64 * ends.completed as f64 / row.count as f64 / elapsed.as_secs_f64();
    let value = match row.unit.as_str() {
        "us/step" => 1e6 / per_second,
        "us p50" => ends.latencies.percentile(0.5),
        _ => per_second,
    };
    let mut measurement = Measurement::of(value)
        .with("per_second", per_second)
        .with("failed", ends.failed as f64)
        .observed("ended", (ends.completed + ends.failed) as u64);
    measurement.lost = (row.count - ends.completed) as u64;
    measurement.commits = commits;
    Ok(measurement.with_latencies(ends.latencies))
}

async fn start_all(request: &Request, engine: &Engine) -> Result<Ends> {
    let row = &request.row;
    let next = Arc::new(AtomicUsize::new(0));
    let work = Work::of(row, &request.settings);
    let starters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| tokio::spawn(starter(engine.clone(), work, next.clone(), row.count, row.steps)))
        .collect();
    let mut all = Ends::default();
    for starter in starters {
        let ends = starter.await??;
        all.latencies.merge(ends.latencies);
        all.completed += ends.completed;
        all.failed += ends.failed;
    }
    Ok(all)
}

async fn starter(engine: Engine, work: Work, next: Arc<AtomicUsize>, count: usize, steps: usize) -> Result<Ends> {
    let mut ends = Ends::default();
    while next.fetch_add(1, Ordering::Relaxed) < count {
        let before = now();
        let done = engine.submit(work).await?.wait().await;
        ends.latencies.record(before.elapsed());
        match done {
            Ok(done) if done == steps => ends.completed += 1,
            _ => ends.failed += 1,
        }
    }
    Ok(ends)
}
