//! The rows of inline steps on durare, with its SQLite provider, and with that of PostgreSQL.
//!
//! Settings: `default` is `SqliteProvider::connect`; `one connection` is the same with a pool of one, so that no writer waits for SQLite's lock.

use std::str::FromStr as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bench_protocol::{Class, Latencies, Measurement, Postgres, Request, now, run};
use durare::{DurableContext, DurableEngine, Error, PostgresProvider, SqliteProvider, WorkflowOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tempfile::TempDir;

/// The busy timeout that durare sets.
const BUSY: Duration = Duration::from_secs(5);
/// How long a shutdown may take.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// When each tenth of the steps of a long workflow had ended.
type Marks = Arc<Mutex<Vec<Instant>>>;

fn main() -> Result<()> {
    run("durare", |request| {
        let runtime = tokio::runtime::Runtime::new()?;
        match request.row.workload.as_str() {
            "steps" => runtime.block_on(in_flight(request)),
            "long" => runtime.block_on(last_over_first(request)),
            other => bail!("durare has no workload `{other}` here"),
        }
    })
}

/// Where its database is, for as long as this lives.
enum Place {
    File(#[expect(dead_code, reason = "kept until it is dropped")] TempDir),
    Server(#[expect(dead_code, reason = "kept until it is dropped")] Postgres),
}

async fn open(request: &Request, marks: Marks) -> Result<(DurableEngine, Place)> {
    let (mut engine, place) = if request.row.postgres {
        let server = Postgres::start(&request.directory, request.class)?;
        let provider = PostgresProvider::connect(&server.url()).await?;
        (DurableEngine::new(Arc::new(provider)).await?, Place::Server(server))
    } else {
        ensure!(request.class == Class::Normal, "durare's SQLite provider is of class normal");
        let directory = tempfile::tempdir_in(&request.directory)?;
        let url = format!("sqlite://{}", directory.path().join("durare.db").display());
        let provider = sqlite(&url, &request.settings).await?;
        (DurableEngine::new(Arc::new(provider)).await?, Place::File(directory))
    };
    engine.register("steps", move |context: DurableContext, count: usize| steps(context, count, marks.clone()));
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

async fn steps(context: DurableContext, count: usize, marks: Marks) -> durare::Result<usize> {
    let tenth = count.div_ceil(10).max(1);
    let mark = || marks.lock().unwrap_or_else(PoisonError::into_inner).push(now());
    for step in 0..count {
        if step % tenth == 0 {
            mark();
        }
        context.step("step", move || async move { Ok::<_, Error>(step) }).await?;
    }
    mark();
    Ok(count)
}

#[derive(Debug, Default)]
struct Ends {
    latencies: Latencies,
    completed: usize,
    failed: usize,
}

async fn in_flight(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let (engine, _place) = open(request, Marks::default()).await?;
    let (engine, next) = (Arc::new(engine), Arc::new(AtomicUsize::new(0)));
    let started = now();
    let starters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| tokio::spawn(starter(engine.clone(), next.clone(), row.count, row.steps)))
        .collect();
    let mut all = Ends::default();
    for starter in starters {
        let ends = starter.await?;
        all.latencies.merge(ends.latencies);
        all.completed += ends.completed;
        all.failed += ends.failed;
    }
    let elapsed = started.elapsed();
    engine.shutdown(SHUTDOWN).await?;
    ensure!(all.completed > 0, "none of {} completed", row.count);
    let per_second = (all.completed * row.steps) as f64 / elapsed.as_secs_f64();
    let value = if row.unit == "us/step" { 1e6 / per_second } else { per_second };
    let mut measurement = Measurement::of(value)
        .with("per_second", per_second)
        .with("failed", all.failed as f64)
        .observed("ended", (all.completed + all.failed) as u64);
    measurement.lost = (row.count - all.completed) as u64;
    Ok(measurement.with_latencies(all.latencies))
}

async fn starter(engine: Arc<DurableEngine>, next: Arc<AtomicUsize>, count: usize, steps: usize) -> Ends {
    let mut ends = Ends::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return ends;
        }
        let before = now();
        let done = one(&engine, number, steps).await;
        ends.latencies.record(before.elapsed());
        match done {
            Ok(done) if done == steps => ends.completed += 1,
            _ => ends.failed += 1,
        }
    }
}

async fn one(engine: &DurableEngine, number: usize, steps: usize) -> durare::Result<usize> {
    let options = WorkflowOptions::with_id(format!("steps-{number}"));
    engine.start::<usize, usize>("steps", steps, options).await?.result().await
}

async fn last_over_first(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let marks = Marks::default();
    let (engine, _place) = open(request, marks.clone()).await?;
    let done = one(&engine, 0, row.count).await?;
    engine.shutdown(SHUTDOWN).await?;
    let marks = std::mem::take(&mut *marks.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(marks.len() == 11, "the code was run more than once: {} marks", marks.len());
    let tenths: Vec<Duration> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (first, last) = (tenths.first().context("no first")?, tenths.last().context("no last")?);
    let per_step = |tenth: &Duration| tenth.as_secs_f64() * 1e6 / (row.count as f64 / 10.0);
    Ok(Measurement::of(last.as_secs_f64() / first.as_secs_f64())
        .with("first_us", per_step(first))
        .with("last_us", per_step(last))
        .observed("steps", done as u64))
}
