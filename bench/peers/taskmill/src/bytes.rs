//! Snapshots of running tasks that report bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use bench_protocol::{Measurement, Request, microseconds_per, now};
use tokio_util::sync::CancellationToken;

use crate::dispatch::submit_all;
use crate::tasks::{Ending, Handler, scheduler_in_memory};

/// The number of snapshots in the timed part.
const SNAPSHOTS: usize = 100;

/// Measures snapshots. taskmill's suite lets the tasks end while it takes snapshots; here they keep
/// running, so that as many run as the row's name says.
pub(crate) async fn snapshots(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let attempts = Arc::new(AtomicU64::new(0));
    let handler = Handler { ending: Ending::HoldsWithBytes, attempts: attempts.clone() };
    let scheduler = scheduler_in_memory(row, handler, &request.settings).await?;
    submit_all(&scheduler, row).await?;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (scheduler, stop) = (scheduler.clone(), stop.clone());
        async move { scheduler.run(stop).await }
    });
    while attempts.load(Ordering::Relaxed) < row.count as u64 {
        tokio::task::yield_now().await;
    }
    let start = now();
    let mut seen = 0;
    for _ in 0..SNAPSHOTS {
        seen = scheduler.snapshot().await?.running.len();
    }
    let elapsed = start.elapsed();
    stop.cancel();
    running.await?;
    Ok(Measurement::of(microseconds_per(elapsed, SNAPSHOTS)).observed("running", seen as u64))
}
