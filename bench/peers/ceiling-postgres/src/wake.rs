//! The unavoidable cost of a task on an idle worker: the commit of its submit and then that of its
//! claim.

use std::time::Duration;

use anyhow::{Result, ensure};
use bench_protocol::{Latencies, Measurement, Request, now};

use crate::database::{Database, make, payload};

/// Makes two bare commits for each task, on two connections, at the rate of the row. The figure is
/// the median of both together.
pub(crate) async fn two_commits(request: &Request) -> Result<Measurement> {
    let (url, row) = (request.server()?, &request.row);
    make(url, row).await?;
    let (submitter, worker, payload) = (Database::open(url).await?, Database::open(url).await?, payload(row)?);
    let mut latencies = Latencies::with_capacity(row.count);
    let started = now();
    for number in 0..row.count {
        let due = started + Duration::from_secs_f64(number as f64 / f64::from(row.rate));
        tokio::time::sleep_until(due.into()).await;
        let before = now();
        submitter.submit(&[&payload]).await?;
        let claimed = worker.claim(1).await?;
        latencies.record(before.elapsed());
        ensure!(claimed.len() == 1, "nothing was claimed");
    }
    let started = latencies.count() as u64;
    Ok(Measurement::of(latencies.percentile(0.5)).with_latencies(latencies).observed("started", started))
}
