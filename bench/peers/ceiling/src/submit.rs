//! Submits alone.

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Measurement, Order, Request, now};

use crate::database::Database;

/// How many submits pass between two checkpoints, which no latency contains.
const CHECKPOINT: usize = 16_384;

/// One submitter: a prepared insert in a commit of its own. More: inserts in commits of the size that the other run had; each
/// waits for the commit that holds it.
pub(crate) fn submits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let size = match row.submitters {
        1 => 1,
        _ => request.commits.context("give the commit sizes of another run with --commits")?.submits.round() as usize,
    };
    let directory = tempfile::tempdir_in(&request.directory)?;
    let payload = Order::new(0, 0, row.payload_bytes)?.to_json()?;
    let database = Database::create(&directory.path().join("ceiling.db"), request.class, payload)?;
    database.fill(&row.backlog)?;
    let mut latencies = Latencies::with_capacity(row.count);
    let start = now();
    let (mut done, mut since_checkpoint) = (0, 0);
    while done < row.count {
        let batch = size.max(1).min(row.count - done);
        let before = now();
        commit(&database, done as i64 + 1, batch as i64)?;
        let latency = before.elapsed();
        (0..batch).for_each(|_| latencies.record(latency));
        done += batch;
        since_checkpoint += batch;
        if since_checkpoint >= CHECKPOINT {
            database.checkpoint()?;
            since_checkpoint = 0;
        }
    }
    let elapsed = start.elapsed();
    let mut measurement = Measurement::of(latencies.percentile(0.5))
        .with("per_second", row.count as f64 / elapsed.as_secs_f64())
        .with_latencies(latencies)
        .observed("inserted", database.count("task")?);
    measurement.settings = (row.submitters > 1).then(|| format!("same commits ({size})"));
    Ok(measurement)
}

fn commit(database: &Database, first: i64, batch: i64) -> Result<()> {
    if batch == 1 {
        return database.submit(first);
    }
    database.begin()?;
    database.submit_many(first..first + batch)?;
    database.commit()
}
