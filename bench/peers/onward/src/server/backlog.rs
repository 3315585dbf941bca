//! Measures the processing of a backlog, and round trips of tasks that are submitted in bulk while
//! others run.

use onward::StoreReads;
use std::time::Duration;

use anyhow::{Result, ensure};
use bench_protocol::{Backlog, Measurement, Request, now};
use onward::task::When;
use onward_store::tokio_postgres::{NoTls, connect};

use super::bulk::in_batches;
use crate::open::{Opened, engine, open_location, open_store};
use crate::round_trips::{Seen, register};
use crate::{backlog, running};

/// The number of tasks of a history that the engine makes. The others are copies.
const SOME: usize = 4096;

/// The number of copies after which the temporary table, which each copy reads whole, is vacuumed.
const VACUUMED: usize = 16;

/// The interval of the check whether all tasks have run.
const POLL: Duration = Duration::from_millis(2);

/// Measures an engine that starts on a backlog which was submitted before.
pub(crate) async fn drain(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&engine, &seen);
    in_batches(&engine, row).await?;
    let started = now();
    let summary = engine.run_until_idle().await?;
    let elapsed = started.elapsed();
    ensure!(summary.completed == row.count as u64, "the engine completed {}", summary.completed);
    Ok(measurement(request, &seen, elapsed).observed("completed", completed(&opened).await?))
}

/// Measures tasks that are submitted in bulk while an engine runs. If the row has waiting tasks,
/// these run first, and as many are left at the end.
pub(crate) async fn round_trips(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    fill(request).await?;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&engine, &seen);
    let before = completed(&opened).await?;
    let started = now();
    let running = running::start(&engine);
    in_batches(&engine, row).await?;
    until(&seen, row.count).await;
    running::stop(&engine, running).await?;
    let elapsed = started.elapsed();
    let done = completed(&opened).await?.saturating_sub(before);
    let waiting: u64 = opened.store.queues().await?.iter().map(|queue| queue.waiting).sum();
    let due = (row.count + row.backlog.waiting) as u64;
    ensure!(done + waiting == due, "{done} completed and {waiting} wait, of {due}");
    if row.backlog.waiting > 0 {
        let value = done as f64 / elapsed.as_secs_f64();
        return Ok(Measurement::of(value).observed("completed", done.min(row.count as u64)));
    }
    Ok(measurement(request, &seen, elapsed).observed("completed", done))
}

/// Waits until `count` handlers have run. The engine is then stopped, which completes their tasks.
async fn until(seen: &Seen, count: usize) {
    while seen.ledger.total() < count as u64 {
        tokio::time::sleep(POLL).await;
    }
}

fn measurement(request: &Request, seen: &Seen, elapsed: Duration) -> Measurement {
    let row = &request.row;
    let mut measurement = Measurement::of(row.count as f64 / elapsed.as_secs_f64());
    measurement.lost = seen.ledger.lost(row.count);
    measurement.duplicated = seen.ledger.duplicated();
    measurement
}

async fn completed(opened: &Opened) -> Result<u64> {
    Ok(opened.store.statistics().await?.iter().map(|kind| kind.ended.completed).sum())
}

/// Makes the waiting and the ended tasks with a store that is closed again.
async fn fill(request: &Request) -> Result<()> {
    let row = &request.row;
    if row.backlog.waiting + row.backlog.finished == 0 {
        return Ok(());
    }
    let url = request.server()?;
    let some = row.backlog.finished.min(SOME);
    let mut first = row.clone();
    first.backlog = Backlog { finished: some, ..row.backlog };
    backlog::fill(&open_location(url.as_ref(), request.durability).await?, &first).await?;
    multiply(url, row.backlog.finished.checked_div(some).unwrap_or(0)).await?;
    let engine = engine(&open_location(url.as_ref(), request.durability).await?, 1).await?;
    backlog::submit(&engine, row.backlog.waiting, row.payload_bytes, When::Now).await
}

/// Multiplies the ended tasks of a store by `times`, by copying their rows with other numbers.
/// Running millions of tasks would take most of an hour.
async fn multiply(url: &str, times: usize) -> Result<()> {
    if times < 2 {
        return Ok(());
    }
    let (client, connection) = connect(url, NoTls).await?;
    tokio::spawn(connection);
    let first = "CREATE TEMP TABLE copied AS SELECT * FROM onward.history; \
                 CREATE TEMP TABLE step AS SELECT max(id) AS ids, max(end_number) AS ends FROM copied";
    client.batch_execute(first).await?;
    let again = "UPDATE copied SET id = id + step.ids, end_number = end_number + step.ends FROM step; \
                 INSERT INTO onward.history SELECT * FROM copied";
    for time in 1..times {
        if time % VACUUMED == 0 {
            client.batch_execute("VACUUM copied").await?;
        }
        client.batch_execute(again).await?;
    }
    let numbers =
        "SELECT setval('onward.last_task', max(id)), setval('onward.ends', max(end_number)) FROM onward.history";
    Ok(client.batch_execute(numbers).await?)
}
