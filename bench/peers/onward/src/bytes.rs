//! Handlers that report bytes.

use anyhow::Result;
use bench_protocol::{BYTES_CHUNK, BYTES_TOTAL, Measurement, Request, microseconds_per, now};
use onward::{Context, Failure};

use crate::dispatch::KIND;
use crate::open::{engine, open_store};
use crate::running;
use crate::submit::keyed;

/// The number of snapshots in the timed part.
const SNAPSHOTS: usize = 100;

/// Reports each chunk when it is done.
pub(crate) fn report(context: &Context) {
    let mut done = 0;
    while done < BYTES_TOTAL {
        done += BYTES_CHUNK;
        context.progress_bytes(done, BYTES_TOTAL);
    }
}

/// Measures snapshots of `count` running tasks that have reported their bytes.
pub(crate) async fn snapshots(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    engine.handle(KIND, |context| async move {
        report(&context);
        context.cancelled().cancelled().await;
        Ok::<(), Failure>(())
    });
    for number in 0..row.count {
        engine.submit_task(keyed(KIND, format!("snap-{number}"))?).await?;
    }
    let running = running::start(&engine);
    while engine.snapshot().running.iter().filter(|task| task.bytes.is_some()).count() < row.count {
        tokio::task::yield_now().await;
    }
    let start = now();
    let mut seen = 0;
    for _ in 0..SNAPSHOTS {
        seen = engine.overview().await?.engine.map_or(0, |snapshot| snapshot.running.len());
    }
    let elapsed = start.elapsed();
    engine.cancel_all(onward::TaskFilter::default()).await?;
    running::stop(&engine, running).await?;
    Ok(Measurement::of(microseconds_per(elapsed, SNAPSHOTS)).observed("running", seen as u64))
}
