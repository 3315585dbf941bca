//! The unavoidable cost of a chain of steps: a commit for the start with its claim, one for the
//! first step with its claim, and one for each end with the next step.

use anyhow::{Result, ensure};
use bench_protocol::{Latencies, Measurement, Request, now};

use crate::database::{Database, make, payload};

/// Runs one chain after the other. The figure is the median time of a chain.
pub(crate) async fn one_commit_each(request: &Request) -> Result<Measurement> {
    let (url, row) = (request.server()?, &request.row);
    make(url, row).await?;
    let (database, payload) = (Database::open(url).await?, payload(row)?);
    let mut latencies = Latencies::with_capacity(row.count);
    for _ in 0..row.count {
        let before = now();
        let mut open = step(&database, &[], Some(&payload)).await?;
        for left in (0..=row.steps).rev() {
            open = step(&database, &open, (left > 0).then_some(&payload)).await?;
        }
        latencies.record(before.elapsed());
    }
    let ended = latencies.count() as u64;
    Ok(Measurement::of(latencies.percentile(0.5)).with_latencies(latencies).observed("ended", ended))
}

/// Ends tasks, and submits and claims the next one, in one commit and one round trip.
async fn step(database: &Database, ends: &[i64], next: Option<&Vec<u8>>) -> Result<Vec<i64>> {
    let payloads: Vec<&[u8]> = next.into_iter().map(Vec::as_slice).collect();
    let (began, ended, submitted, claimed, committed) = tokio::join!(
        database.client.batch_execute("BEGIN"),
        database.complete(ends),
        database.submit(&payloads),
        database.claim(1),
        database.client.batch_execute("COMMIT"),
    );
    began?;
    submitted?;
    committed?;
    let (ended, claimed) = (usize::try_from(ended?)?, claimed?);
    ensure!((ended, claimed.len()) == (ends.len(), payloads.len()), "a step was lost");
    Ok(claimed)
}
