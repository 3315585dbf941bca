//! How soon an idle worker starts what somebody else submits on another connection.

use std::sync::PoisonError;
use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Order, Request, monotonic_nanoseconds, pace};
use onward::Engine;

use crate::lives::{Place, Seen, register};
use crate::open::{engine, open_place, open_store};
use crate::running;

/// How long the worker is left alone before the first submit.
const IDLE: Duration = Duration::from_millis(500);

/// From the call of the submit to the start of the handler, in an engine with connections of its own.
pub(crate) async fn wake(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let worker = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&worker, &seen);
    let running = running::start(&worker);
    let submitter = engine(&open_place(&opened.place, request.class).await?, 1).await?;
    tokio::time::sleep(IDLE).await;
    submit(request, &submitter).await?;
    running::finish(&worker, running).await?;
    let mut starts: Latencies = std::mem::take(&mut *seen.starts.lock().unwrap_or_else(PoisonError::into_inner));
    let mut measurement = Measurement::of(starts.percentile(0.5)).observed("started", starts.count() as u64);
    measurement.lost = seen.ledger.lost(row.count);
    measurement.duplicated = seen.ledger.duplicated();
    Ok(measurement.with_latencies(starts))
}

async fn submit(request: &Request, engine: &Engine) -> Result<()> {
    let (row, engine) = (request.row.clone(), engine.clone());
    let template = Order::new(0, 0, row.payload_bytes)?;
    let runtime = tokio::runtime::Handle::current();
    let submits = tokio::task::spawn_blocking(move || {
        let mut submits = Vec::with_capacity(row.count);
        pace(row.count, row.rate, |number| {
            let order = Order { submitted: monotonic_nanoseconds(), ..template.numbered(number) };
            submits.push(runtime.spawn(engine.submit(Place(order))));
        });
        submits
    });
    for submit in submits.await? {
        submit.await??;
    }
    Ok(())
}
