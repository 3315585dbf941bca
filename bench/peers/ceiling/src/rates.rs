//! The unavoidable cost of a task in the rate tests: the commit of its submit and then that of its
//! claim.

use anyhow::Result;
use bench_protocol::{Backlog, Latencies, Measurement, Order, Request, now};

use crate::database::Database;

/// Makes two bare commits for each task, without a pause. The figure is the 99th percentile of both
/// together.
pub(crate) fn two_commits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let payload = Order::new(0, 0, row.payload_bytes)?.to_json()?;
    let mut database = Database::create(&directory.path().join("ceiling.db"), request.durability, payload)?;
    database.fill(&Backlog::default())?;
    let mut latencies = Latencies::with_capacity(row.count);
    for id in 1..=i64::try_from(row.count)? {
        let before = now();
        database.submit(id)?;
        database.claim(&[id])?;
        latencies.record(before.elapsed());
        database.checkpoint_if_due(1)?;
    }
    let measurement = Measurement::of(latencies.percentile(0.99))
        .with("all_avg_us", latencies.mean())
        .with("all_max_us", latencies.percentile(1.0))
        .observed("started", database.count("claim")?);
    Ok(measurement.with_latencies(latencies))
}
