//! Measures the time from submit to handler start at a fixed rate.

use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench_protocol::{Latencies, Measurement, Order, Request, monotonic_nanoseconds, pace};
use onward::Engine;

use crate::helper::{Helper, Job};
use crate::open::{engine, open_store};
use crate::round_trips::{PlaceOrder, Seen, register};
use crate::running;

pub(crate) async fn latency(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&engine, &seen);
    let running = running::start(&engine);
    if request.settings == "other process" {
        produce_in_other_process(request, &opened.store.info().location).await?;
    } else {
        produce_here(request, &engine).await?;
    }
    running::finish(&engine, running).await?;
    Ok(measured(&seen, row.count))
}

/// Returns the time after which `count` tasks started.
pub(crate) fn measured(seen: &Seen, count: usize) -> Measurement {
    let mut starts: Latencies = std::mem::take(&mut *seen.starts.lock().unwrap_or_else(PoisonError::into_inner));
    let mut measurement = Measurement::of(starts.percentile(0.5)).observed("started", starts.count() as u64);
    measurement.lost = seen.ledger.lost(count);
    measurement.duplicated = seen.ledger.duplicated();
    measurement.with_latencies(starts)
}

/// Submits tasks at the row's rate, without waiting for earlier submits.
pub(crate) async fn produce_here(request: &Request, engine: &Engine) -> Result<()> {
    let (row, engine) = (request.row.clone(), engine.clone());
    let template = Order::new(0, 0, row.payload_bytes)?;
    let runtime = tokio::runtime::Handle::current();
    let submits = tokio::task::spawn_blocking(move || {
        let mut submits = Vec::with_capacity(row.count);
        pace(row.count, row.rate, |number| {
            let order = Order { submitted: monotonic_nanoseconds(), ..template.numbered(number) };
            let engine = engine.clone();
            submits.push(runtime.spawn(async move { engine.submit(PlaceOrder(order)).await.map(drop) }));
        });
        submits
    });
    for submit in submits.await? {
        submit.await??;
    }
    Ok(())
}

async fn produce_in_other_process(request: &Request, location: &str) -> Result<()> {
    let row = &request.row;
    let job = Job::Produce { count: row.count, rate: row.rate };
    let helper =
        Helper { path: location.into(), durability: request.durability, payload_bytes: row.payload_bytes, job };
    let mut producer = helper.spawn()?;
    let status = tokio::task::spawn_blocking(move || producer.wait()).await?.context("the producer")?;
    ensure!(status.success(), "the producer failed");
    // The last tasks of the other process may not be visible here yet.
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}
