//! Measures orchestrations that are started and awaited, with a number of them in flight: the cost
//! of an activity, a step, a start and an end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Ends, Measurement, Numbers, Request, Row, now};
use onward::orchestration::{OrchestrationContext, try_join_all};
use onward::{Engine, Failure, Store, Task};
use serde::{Deserialize, Serialize};

use crate::open::open_store;
use crate::running;

/// The work of an orchestration: a number of activities or steps. Its result is how many it has
/// done.
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
    /// Returns the work of the orchestrations of a row.
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

/// Opens an engine with the slots of a row, for activities and for turns.
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

/// Starts orchestrations and awaits each, with one in flight for each submitter. The figure is
/// orchestrations or steps a second, or the time of one, as the row's unit says.
pub(crate) async fn in_flight(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    register(&engine, Duration::from_millis(row.activity_ms));
    let running = running::start(&engine);

    let before = opened.commits();
    let started = now();
    let ends = start_all(request, &engine).await?;
    let elapsed = started.elapsed();
    // The operations are steps where the row is about steps.
    let operations = if row.workload == "steps" { row.count * row.steps } else { row.count };
    let commits = opened.commit_sizes(&before, operations);

    running::finish(&engine, running).await?;
    Ok(Measurement { commits, ..ends.measurement(row, elapsed)? })
}

async fn start_all(request: &Request, engine: &Engine) -> Result<Ends> {
    let (row, numbers) = (&request.row, Numbers::new(request.row.count));
    let (work, steps) = (Work::of(row, &request.settings), row.steps);
    let starters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| {
            let (engine, numbers) = (engine.clone(), numbers.clone());
            let one = move |_| one(engine.clone(), work, steps);
            tokio::spawn(Ends::of_starter(numbers, one))
        })
        .collect();
    let mut all = Ends::default();
    for starter in starters {
        all.merge(starter.await?);
    }
    Ok(all)
}

/// Returns whether an orchestration ended with the expected result.
async fn one(engine: Engine, work: Work, steps: usize) -> bool {
    match engine.submit(work).await {
        Ok(handle) => handle.wait().await.is_ok_and(|done| done == steps),
        Err(_) => false,
    }
}
