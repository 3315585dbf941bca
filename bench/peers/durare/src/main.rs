//! The rows of inline steps on durare, with its SQLite provider and its PostgreSQL provider.
//!
//! Settings: `default` is `SqliteProvider::connect`. `one connection` is the same with a pool of
//! one connection, so that no writer waits for SQLite's lock.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bench_protocol::{DurabilityLevel, Ends, Measurement, Numbers, Request, StepTimes, now, run};
use durare::{DurableContext, DurableEngine, Error, PostgresProvider, SqliteProvider, WorkflowOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tempfile::TempDir;

/// The busy timeout that durare sets.
const BUSY: Duration = Duration::from_secs(5);
/// The time limit for a shutdown.
const SHUTDOWN: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    run("durare", |request| {
        let runtime = tokio::runtime::Runtime::new()?;
        match request.row.workload.as_str() {
            "steps" | "workflow_linear" => runtime.block_on(in_flight(request)),
            "long" => runtime.block_on(last_over_first(request)),
            other => bail!("durare has no workload `{other}` here"),
        }
    })
}

/// Opens an engine. Returns it with the directory of its file, if it has one.
async fn open(request: &Request, times: StepTimes) -> Result<(DurableEngine, Option<TempDir>)> {
    let (mut engine, place) = if request.row.postgres {
        let provider = PostgresProvider::connect(request.server()?).await?;
        (DurableEngine::new(Arc::new(provider)).await?, None)
    } else {
        ensure!(request.durability == DurabilityLevel::Normal, "durare's SQLite provider is of durability normal");
        let directory = tempfile::tempdir_in(&request.directory)?;
        let url = format!("sqlite://{}", directory.path().join("durare.db").display());
        let provider = sqlite(&url, &request.settings).await?;
        (DurableEngine::new(Arc::new(provider)).await?, Some(directory))
    };
    engine.register("steps", move |context: DurableContext, count: usize| steps(context, count, times.clone()));
    engine.launch().await?;
    Ok((engine, place))
}

async fn sqlite(url: &str, settings: &str) -> Result<SqliteProvider> {
    if settings != "one connection" {
        return Ok(SqliteProvider::connect(url).await?);
    }
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(BUSY);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    Ok(SqliteProvider::from_pool(pool))
}

async fn steps(context: DurableContext, count: usize, times: StepTimes) -> durare::Result<usize> {
    for step in 0..count {
        times.step(step, count);
        context.step("step", move || async move { Ok::<_, Error>(step) }).await?;
    }
    times.step(count, count);
    Ok(count)
}

async fn in_flight(request: &Request) -> Result<Measurement> {
    let (row, numbers) = (&request.row, Numbers::new(request.row.count));
    let (engine, _directory) = open(request, StepTimes::default()).await?;
    let (engine, steps) = (Arc::new(engine), row.steps);
    let started = now();
    let starters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| {
            let (engine, numbers) = (engine.clone(), numbers.clone());
            tokio::spawn(Ends::of_starter(numbers, move |number| good(engine.clone(), number, steps)))
        })
        .collect();
    let mut all = Ends::default();
    for starter in starters {
        all.merge(starter.await?);
    }
    let elapsed = started.elapsed();
    engine.shutdown(SHUTDOWN).await?;
    all.measurement(row, elapsed)
}

async fn good(engine: Arc<DurableEngine>, number: usize, steps: usize) -> bool {
    one(&engine, number, steps).await.is_ok_and(|done| done == steps)
}

async fn one(engine: &DurableEngine, number: usize, steps: usize) -> durare::Result<usize> {
    let options = WorkflowOptions::with_id(format!("steps-{number}"));
    engine.start::<usize, usize>("steps", steps, options).await?.result().await
}

async fn last_over_first(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let times = StepTimes::default();
    let (engine, _directory) = open(request, times.clone()).await?;
    let done = one(&engine, 0, row.count).await?;
    engine.shutdown(SHUTDOWN).await?;
    Ok(times.last_over_first(row.count)?.observed("steps", done as u64))
}
