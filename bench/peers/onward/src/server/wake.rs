//! Measures the time until an idle worker starts a task that was submitted on another connection.

use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Measurement, Request};

use crate::latency::{measured, produce_here};
use crate::open::{engine, open_location, open_store};
use crate::round_trips::{Seen, register};
use crate::running;

/// The time for which the worker is idle before the first submit.
const IDLE: Duration = Duration::from_millis(500);

/// Measures the time from the call of the submit to the start of the handler, in an engine with
/// connections of its own.
pub(crate) async fn wake(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let worker = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&worker, &seen);
    let running = running::start(&worker);
    let submitter = engine(&open_location(&opened.location, request.durability).await?, 1).await?;
    tokio::time::sleep(IDLE).await;
    produce_here(request, &submitter).await?;
    running::finish(&worker, running).await?;
    Ok(measured(&seen, row.count))
}
