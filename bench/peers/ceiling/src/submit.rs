//! Submits without claims.

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Measurement, Order, Request, now};

use crate::cycle::Cycle;
use crate::database::Database;

/// Measures submits. With one submitter each is a prepared insert in a commit of its own. With
/// more, inserts are in commits of the size that the other run had, and each waits for its commit.
pub(crate) fn submits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let sizes = match row.submitters {
        1 => None,
        _ => Some(request.commits.context("give the commit sizes of another run with --commits")?),
    };
    let mut cycle = sizes.map_or_else(|| Cycle::of_batch(1), Cycle::new);
    let directory = tempfile::tempdir_in(&request.directory)?;
    let payload = Order::new(0, 0, row.payload_bytes)?.to_json()?;
    let mut database = Database::create(&directory.path().join("ceiling.db"), request.durability, payload)?;
    database.fill(&row.backlog)?;
    let mut latencies = Latencies::with_capacity(row.count);
    let start = now();
    let mut done = 0;
    while done < row.count {
        let batch = cycle.next().submits.min(row.count - done);
        let before = now();
        commit(&database, done as i64 + 1, batch as i64)?;
        let latency = before.elapsed();
        (0..batch).for_each(|_| latencies.record(latency));
        done += batch;
        database.checkpoint_if_due(batch)?;
    }
    let elapsed = start.elapsed();
    let measurement = Measurement::of(latencies.percentile(0.5))
        .with("per_second", row.count as f64 / elapsed.as_secs_f64())
        .with_latencies(latencies)
        .observed("inserted", database.count("task")?);
    Ok(Measurement { commits: sizes, ..measurement })
}

fn commit(database: &Database, first: i64, batch: i64) -> Result<()> {
    match batch {
        0 => return Ok(()),
        1 => return database.submit(first),
        _ => {}
    }
    database.begin()?;
    database.submit_many(first..first + batch)?;
    database.commit()
}
