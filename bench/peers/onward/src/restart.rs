//! Opens a file that a killed process left behind.

use onward::StoreReads;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bench_protocol::{Measurement, Request, now};
use onward::Store;
use tokio::sync::Notify;

use crate::helper::leave_behind;
use crate::open::{engine, open_file};
use crate::{round_trips, running};

/// Measures the time from opening to the start of the first handler.
pub(crate) async fn restart(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let path = directory.path().join("onward.db");
    leave_behind(&path, request.durability, row.payload_bytes, row.backlog.waiting, row.backlog.in_flight)?;

    let first = Arc::new(Notify::new());
    let started = now();
    let store: Arc<dyn Store> = Arc::new(open_file(&path, request.durability).await?);
    let opened = started.elapsed();
    let engine = engine(&store, row.slots).await?;
    engine.handle(round_trips::KIND, {
        let first = first.clone();
        move |_context| {
            first.notify_one();
            async { Ok(()) }
        }
    });
    let running = running::start(&engine);
    first.notified().await;
    let elapsed = started.elapsed();

    running::stop(&engine, running).await?;
    let queues = store.queues().await?;
    let there: u64 =
        queues.iter().map(|queue| queue.waiting + queue.running + queue.scheduled + queue.ended.completed).sum();
    let expected = (row.backlog.waiting + row.backlog.in_flight) as u64;
    ensure!(there == expected, "{there} tasks are in the file, not {expected}");
    Ok(Measurement::of(elapsed.as_secs_f64() * 1e3).with("open_ms", opened.as_secs_f64() * 1e3).observed("started", 1))
}
