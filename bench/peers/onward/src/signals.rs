//! Measures the time from sending a signal until the code that awaits it continues.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Request, monotonic_nanoseconds, pace};
use onward::orchestration::OrchestrationContext;
use onward::{Engine, Failure, Task, TaskId};
use serde::{Deserialize, Serialize};

use crate::open::open_store;
use crate::orchestrations::engine;
use crate::running;

/// An orchestration that receives a number of signals, each with its send time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Listener {
    signals: usize,
}

impl Task for Listener {
    const KIND: &'static str = "listener";
    const ORCHESTRATION: bool = true;
    type Output = usize;
}

type SharedLatencies = Arc<Mutex<Latencies>>;

async fn listen(
    listener: Listener,
    context: OrchestrationContext,
    latencies: SharedLatencies,
) -> Result<usize, Failure> {
    for _ in 0..listener.signals {
        let sent = context.event::<u64>("sent")?.await?;
        let latency = Duration::from_nanos(monotonic_nanoseconds() - sent);
        latencies.lock().unwrap_or_else(PoisonError::into_inner).record(latency);
    }
    Ok(listener.signals)
}

/// Sends signals at a fixed rate, to the listeners in turn.
pub(crate) async fn resumed(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    let latencies = SharedLatencies::default();
    engine.orchestrate({
        let latencies = latencies.clone();
        move |listener: Listener, context| listen(listener, context, latencies.clone())
    });
    let running = running::start(&engine);
    let listeners = row.submitters.max(1);
    let mut handles = Vec::with_capacity(listeners);
    for _ in 0..listeners {
        handles.push(engine.submit(Listener { signals: row.count / listeners }).await?);
    }
    // The delay lets all listeners reach their wait.
    tokio::time::sleep(Duration::from_millis(500)).await;
    send_all(row.count, row.rate, &engine, handles.iter().map(|handle| handle.id()).collect()).await?;
    let mut resumed = 0;
    for handle in handles {
        resumed += handle.wait().await?;
    }
    running::finish(&engine, running).await?;
    let mut latencies: Latencies = std::mem::take(&mut *latencies.lock().unwrap_or_else(PoisonError::into_inner));
    let mut measurement = Measurement::of(latencies.percentile(0.99)).observed("resumed", latencies.count() as u64);
    measurement.lost = (row.count - resumed) as u64;
    Ok(measurement.with_latencies(latencies))
}

async fn send_all(count: usize, rate: u32, engine: &Engine, listeners: Vec<TaskId>) -> Result<()> {
    let (engine, runtime) = (engine.clone(), tokio::runtime::Handle::current());
    let sends = tokio::task::spawn_blocking(move || {
        let mut sends = Vec::with_capacity(count);
        pace(count, rate, |number| {
            let (engine, listener) = (engine.clone(), listeners[number as usize % listeners.len()]);
            let sent = monotonic_nanoseconds();
            sends.push(runtime.spawn(async move { engine.signal(listener, "sent", &sent).await }));
        });
        sends
    });
    for send in sends.await? {
        send.await??;
    }
    Ok(())
}
