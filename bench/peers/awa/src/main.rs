//! The benchmark rows on PostgreSQL for awa, with its queue storage.
//!
//! Settings: `tuned` is the setting of awa's own throughput test. It has no deadline, so that
//! claims and completions are batched, a poll every 50 ms, rotation after 1 s and 50 ms, 500
//! workers and 2 claimers. `default` is awa's default, with a pool of as many connections.

mod client;
mod submits;

use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bench_protocol::{Latencies, Measurement, Request, now, run};

use crate::client::{Crew, POLL, open};

/// The time for which a worker is idle before the first submit.
const IDLE: Duration = Duration::from_millis(500);
/// The time limit for the shutdown of a worker.
const SHUTDOWN: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    run("awa", |request| tokio::runtime::Runtime::new()?.block_on(work(request)))
}

async fn work(request: &Request) -> Result<Measurement> {
    match request.row.workload.as_str() {
        "drain" => round_trips(request, false).await,
        "bulk_round_trips" => round_trips(request, true).await,
        "bulk_submit" => submits::in_batches(request).await,
        "each_submit" => submits::one_by_one(request).await,
        "wake" => wake(request).await,
        other => bail!("awa has no workload `{other}`"),
    }
}

/// Measures tasks that are submitted in bulk before the worker starts, or while it works, until the
/// tables show that all have ended.
async fn round_trips(request: &Request, while_working: bool) -> Result<Measurement> {
    let row = &request.row;
    let crew = Crew::new(request).await?;
    if !while_working {
        submits::all(&crew.database, row).await?;
    }
    let started = now();
    crew.client.start().await?;
    if while_working {
        submits::all(&crew.database, row).await?;
    }
    crew.until_ended(row.count).await?;
    let elapsed = started.elapsed();
    let completed = crew.database.counts().await?.terminal;
    crew.client.shutdown(SHUTDOWN).await;
    let mut measurement = Measurement::of(row.count as f64 / elapsed.as_secs_f64());
    measurement.lost = crew.seen.ledger.lost(row.count);
    measurement.duplicated = crew.seen.ledger.duplicated();
    Ok(measurement.observed("completed", u64::try_from(completed)?))
}

/// Measures the time from the call of a submit on other connections to the start of the worker's
/// function.
async fn wake(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let crew = Crew::new(request).await?;
    crew.client.start().await?;
    let others = open(request, 4).await?;
    tokio::time::sleep(IDLE).await;
    submits::paced(&others, row).await?;
    crew.until_ended(row.count).await?;
    tokio::time::sleep(POLL).await;
    crew.client.shutdown(SHUTDOWN).await;
    let mut starts: Latencies = std::mem::take(&mut *crew.seen.starts.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(starts.count() > 0, "nothing ran");
    let mut measurement = Measurement::of(starts.percentile(0.5)).observed("started", starts.count() as u64);
    measurement.lost = crew.seen.ledger.lost(row.count);
    measurement.duplicated = crew.seen.ledger.duplicated();
    Ok(measurement.with_latencies(starts))
}
