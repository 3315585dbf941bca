//! Round trips of tasks, and the processing of a backlog, on two connections.

use std::sync::Arc;

use anyhow::{Result, ensure};
use bench_protocol::{Measurement, Numbers, Request, Row, now};

use crate::database::{Database, make, payload};
use crate::submits;

/// The batch sizes that are tried.
const BATCHES: [usize; 4] = [128, 512, 1024, 4096];

/// The number of trials of each batch size, in turn. The best trial counts.
const TRIALS: usize = 2;

/// The number of connections.
const CONNECTIONS: usize = 2;

/// Measures round trips with the batch size that is fastest for half of the tasks.
pub(crate) async fn best_batch(request: &Request) -> Result<Measurement> {
    let mut trial = request.row.clone();
    trial.count = (trial.count / 2).max(1);
    trial.backlog = bench_protocol::Backlog::default();
    let mut best = (BATCHES[0], 0.0);
    for batch in [BATCHES; TRIALS].into_iter().flatten().filter(|batch| *batch <= trial.count) {
        let speed = run(request.server()?, &trial, batch).await?.value;
        if speed > best.1 {
            best = (batch, speed);
        }
    }
    Ok(run(request.server()?, &request.row, best.0).await?.with("batch", best.0 as f64))
}

async fn run(url: &str, row: &Row, batch: usize) -> Result<Measurement> {
    make(url, row).await?;
    let submits = if row.workload == "drain" { 0 } else { row.count.div_ceil(batch) };
    if row.workload == "drain" {
        submits::all(url, row).await?;
    }
    let (row, batches) = (Arc::new(row.clone()), Numbers::new(submits));
    let mut databases = Vec::new();
    for _ in 0..CONNECTIONS {
        databases.push(Database::open(url).await?);
    }
    let claims = Numbers::new(row.count);
    let started = now();
    let all = databases.into_iter();
    let all: Vec<_> =
        all.map(|database| tokio::spawn(live(database, row.clone(), batches.clone(), claims.clone(), batch))).collect();
    let mut completed = 0;
    for one in all {
        completed += one.await??;
    }
    let elapsed = started.elapsed();
    let database = Database::open(url).await?;
    let (history, live) = (database.count("history").await?, database.count("task").await?);
    let expected = ((row.count + row.backlog.finished) as u64, row.backlog.waiting as u64);
    ensure!((history, live) == expected, "history has {history} tasks and {live} are live, not {expected:?}");
    Ok(Measurement::of(row.count as f64 / elapsed.as_secs_f64()).observed("completed", completed))
}

/// Runs one connection: it submits a batch while there are any, claims a batch and completes it.
/// Returns the number of completed tasks.
async fn live(database: Database, row: Arc<Row>, batches: Numbers, claims: Numbers, batch: usize) -> Result<u64> {
    let payload = payload(&row)?;
    let mut completed = 0;
    loop {
        let submits = batches.take();
        if let Some(number) = submits {
            let size = batch.min(row.count - number * batch);
            database.submit(&vec![payload.as_slice(); size]).await?;
        }
        // Claims as many tasks in total as were submitted, so that the backlog keeps its size.
        let limit = (0..batch).map_while(|_| claims.take()).count();
        if limit == 0 && submits.is_none() {
            return Ok(completed);
        }
        let ids = claim(&database, limit).await?;
        completed += database.complete(&ids).await?;
    }
}

/// Claims exactly `limit` tasks. Waits for tasks that another connection still holds or is about to
/// submit.
async fn claim(database: &Database, limit: usize) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(limit);
    while ids.len() < limit {
        ids.extend(database.claim(limit - ids.len()).await?);
    }
    Ok(ids)
}
