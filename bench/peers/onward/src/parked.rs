//! Measures very many orchestrations that wait for a timer: the memory of each, and the time until
//! all have ended.

use onward::StoreReads;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use bench_protocol::{DurabilityLevel, Measurement, Request, Usage, now};
use onward::orchestration::OrchestrationContext;
use onward::store::{Clock, SystemClock};
use onward::{Engine, Failure, Store, Task, Timestamp};
use serde::{Deserialize, Serialize};

use crate::helper::{Helper, Job, wait_until_ready};
use crate::open::{open_file, open_store};
use crate::running;

/// The interval at which the store is polled for progress.
const POLL: Duration = Duration::from_millis(20);
/// The number of concurrent submitters.
const SUBMITTERS: usize = 256;
/// The number of turns that may run at once.
const TURNS: usize = 256;
/// The time allowed for parking: for each orchestration, and for a start.
const PARKING_EACH: Duration = Duration::from_micros(300);
const PARKING: Duration = Duration::from_secs(1);
/// A delay long enough that no timer fires.
const FAR: Duration = Duration::from_secs(86_400);

/// An orchestration that waits until a moment, in microseconds since 1970.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Sleeper {
    wake: i64,
}

impl Task for Sleeper {
    const KIND: &'static str = "sleeper";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

async fn sleep(sleeper: Sleeper, context: OrchestrationContext) -> Result<(), Failure> {
    context.timer_until(Timestamp::from_microseconds(sleeper.wake)).await;
    Ok(())
}

fn wall() -> i64 {
    SystemClock.now().as_microseconds()
}

fn in_(time: Duration) -> i64 {
    wall() + time.as_micros() as i64
}

/// Returns the moment at which timers are to fire, so that all orchestrations are parked by then.
fn when_parked(count: usize) -> i64 {
    in_(PARKING + PARKING_EACH * u32::try_from(count).unwrap_or(u32::MAX))
}

async fn engine(store: &Arc<dyn Store>, kept: usize) -> Result<Engine> {
    let builder = Engine::builder().store(store.clone()).turns(TURNS).orchestrations_cached(kept);
    let engine = builder.shutdown_limit(Duration::ZERO).open().await?;
    engine.orchestrate(sleep);
    Ok(engine)
}

/// Starts `count` orchestrations and waits until all are parked.
async fn park(engine: &Engine, count: usize, wake: i64) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let submitters: Vec<_> = (0..SUBMITTERS)
        .map(|_| {
            let (engine, next) = (engine.clone(), next.clone());
            tokio::spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    engine.submit(Sleeper { wake }).await?;
                }
                Ok::<_, onward::Error>(())
            })
        })
        .collect();
    for submitter in submitters {
        submitter.await??;
    }
    while parked(engine).await? < count as u64 {
        ensure!(wall() < wake, "timers fired before all were parked: this machine takes longer than expected");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn parked(engine: &Engine) -> Result<u64> {
    Ok(engine.store().queues().await?.iter().map(|queue| queue.scheduled).sum())
}

/// Waits until `count` orchestrations have completed.
async fn completed(engine: &Engine, count: usize) -> Result<()> {
    while engine.store().statistics().await?.iter().map(|kind| kind.ended.completed).sum::<u64>() < count as u64 {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn until(wake: i64) {
    tokio::time::sleep(Duration::from_micros(u64::try_from(wake - wall()).unwrap_or(0))).await;
}

fn kept(request: &Request) -> usize {
    if request.settings == "evicted" { 1 } else { request.row.count }
}

/// Measures the resident memory of each orchestration, in KiB.
pub(crate) async fn memory(request: &Request) -> Result<Measurement> {
    let count = request.row.count;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, kept(request)).await?;
    let running = running::start(&engine);
    let before = Usage::read()?;
    let started = now();
    park(&engine, count, in_(FAR)).await?;
    let parking = started.elapsed();
    // Freed pages are returned to the system a little later.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = Usage::read()?;
    let there = parked(&engine).await?;
    running::stop(&engine, running).await?;
    let each = after.resident.saturating_sub(before.resident) as f64 / count as f64 / 1024.0;
    Ok(Measurement::of(each)
        .with("before_mib", before.resident as f64 / 1_048_576.0)
        .with("parking_s", parking.as_secs_f64())
        .observed("parked", there))
}

/// Measures the seconds from the moment at which all timers are due until all orchestrations have
/// ended.
pub(crate) async fn all_at_once(request: &Request) -> Result<Measurement> {
    let count = request.row.count;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, kept(request)).await?;
    let running = running::start(&engine);
    let wake = when_parked(count);
    park(&engine, count, wake).await?;
    until(wake).await;
    let started = now();
    completed(&engine, count).await?;
    let elapsed = started.elapsed();
    running::stop(&engine, running).await?;
    Ok(Measurement::of(elapsed.as_secs_f64()).observed("completed", count as u64))
}

/// Measures the seconds from the opening of a file until all orchestrations on it have ended. A
/// killed process left them there, with timers that are all due.
pub(crate) async fn takeover(request: &Request) -> Result<Measurement> {
    let count = request.row.count;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let path = directory.path().join("onward.db");
    let wake = when_parked(count);
    let job = Job::Park { count, wake };
    let mut helper = Helper { path: path.clone(), durability: request.durability, payload_bytes: 0, job }.spawn()?;
    wait_until_ready(&mut helper)?;
    helper.kill()?;
    helper.wait()?;
    until(wake).await;

    let started = now();
    let store: Arc<dyn Store> = Arc::new(open_file(&path, request.durability).await?);
    let opened = started.elapsed();
    let engine = engine(&store, count).await?;
    let running = running::start(&engine);
    completed(&engine, count).await?;
    let elapsed = started.elapsed();
    running::stop(&engine, running).await?;
    Ok(Measurement::of(elapsed.as_secs_f64())
        .with("open_ms", opened.as_secs_f64() * 1e3)
        .observed("completed", count as u64))
}

/// Parks orchestrations and keeps running, in the helper.
pub(crate) async fn leave(
    path: &Path,
    durability: DurabilityLevel,
    count: usize,
    wake: i64,
) -> Result<(Engine, running::Running)> {
    let store: Arc<dyn Store> = Arc::new(open_file(path, durability).await?);
    let engine = engine(&store, count).await?;
    let running = running::start(&engine);
    park(&engine, count, wake).await?;
    Ok((engine, running))
}
