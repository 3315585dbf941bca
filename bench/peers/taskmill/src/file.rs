//! The rows on a database file, which is what users have. taskmill sets `synchronous = NORMAL`, so
//! this is durability level `normal`.
//!
//! A task counts as done when its handler has run. taskmill's event channel cannot be used for
//! that, because it holds 256 events and drops the rest under load. This condition is weaker than
//! that of the other systems, for which the end must be in the file. After the timed part the
//! program checks that no task was left over.

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Result, ensure};
use bench_protocol::{
    DurabilityLevel, Latencies, Ledger, Measurement, Order, Request, Row, Usage, monotonic_nanoseconds, now, pace,
};
use serde::{Deserialize, Serialize};
use taskmill::{Domain, DomainTaskContext, Scheduler, StoreConfig, TaskError, TaskStore, TypedExecutor, TypedTask};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::tasks::{Bench, polling};

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Place(Order);

impl TypedTask for Place {
    type Domain = Bench;
    const TASK_TYPE: &'static str = "place";

    fn key(&self) -> Option<String> {
        Some(self.0.number.to_string())
    }
}

/// The effect of the handler on a task: it counts the task and notifies its submitter.
struct Done {
    ledger: Ledger,
    submitters: Vec<Notify>,
    starts: Mutex<Latencies>,
}

impl Done {
    fn new(row: &Row) -> Arc<Self> {
        let submitters = (0..row.submitters.max(1)).map(|_| Notify::new()).collect();
        Arc::new(Self { ledger: Ledger::new(row.count), submitters, starts: Mutex::default() })
    }

    fn take_starts(&self) -> Latencies {
        std::mem::take(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Handler(Arc<Done>);

impl TypedExecutor<Place> for Handler {
    async fn execute<'a>(&'a self, Place(order): Place, _: DomainTaskContext<'a, Bench>) -> Result<(), TaskError> {
        if order.submitted > 0 {
            let latency = Duration::from_nanos(monotonic_nanoseconds() - order.submitted);
            self.0.starts.lock().unwrap_or_else(PoisonError::into_inner).record(latency);
        }
        self.0.ledger.ran(order.number);
        self.0.submitters[order.number as usize % self.0.submitters.len()].notify_one();
        Ok(())
    }
}

async fn open(request: &Request, directory: &Path, done: &Arc<Done>) -> Result<Scheduler> {
    ensure!(
        request.durability == DurabilityLevel::Normal,
        "taskmill's files survive a killed process and nothing more"
    );
    let mut config = StoreConfig::default();
    if request.settings != "default" {
        config.retention_policy = None;
    }
    let path = directory.join("taskmill.db");
    let store = TaskStore::open_with_config(&path.display().to_string(), config).await?;
    let domain = Domain::<Bench>::new().task::<Place>(Handler(done.clone()));
    let builder = Scheduler::builder().store(store).domain(domain).max_concurrency(request.row.slots.max(1));
    Ok(polling(builder, &request.settings).build().await?)
}

fn start(scheduler: &Scheduler) -> (CancellationToken, JoinHandle<()>) {
    let stop = CancellationToken::new();
    let (scheduler, stopped) = (scheduler.clone(), stop.clone());
    (stop, tokio::spawn(async move { scheduler.run(stopped).await }))
}

/// Measures submits alone, while no worker runs.
pub(crate) async fn submit(request: &Request) -> Result<Measurement> {
    let (directory, done) = (tempfile::tempdir_in(&request.directory)?, Done::new(&request.row));
    let scheduler = open(request, directory.path(), &done).await?;
    let started = now();
    let mut latencies = submitters(request, &scheduler, None).await?;
    let elapsed = started.elapsed();
    let inserted = u64::try_from(scheduler.store().pending_count().await?)?;
    Ok(Measurement::of(latencies.percentile(0.5))
        .with("per_second", request.row.count as f64 / elapsed.as_secs_f64())
        .with_latencies(latencies)
        .observed("inserted", inserted))
}

/// Measures round trips: each submitter repeatedly submits a task and waits for it.
pub(crate) async fn round_trips(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let (directory, done) = (tempfile::tempdir_in(&request.directory)?, Done::new(row));
    let scheduler = open(request, directory.path(), &done).await?;
    let (stop, running) = start(&scheduler);
    let started = now();
    let latencies = submitters(request, &scheduler, Some(&done)).await?;
    let elapsed = started.elapsed();
    finish(&scheduler, stop, running).await?;
    let mut measurement = Measurement::of(row.count as f64 / elapsed.as_secs_f64()).with_latencies(latencies);
    measurement.lost = done.ledger.lost(row.count);
    measurement.duplicated = done.ledger.duplicated();
    let completed = row.count as u64 - measurement.lost;
    Ok(measurement.observed("completed", completed))
}

/// Runs all submitters and returns the latencies of their submits.
async fn submitters(request: &Request, scheduler: &Scheduler, done: Option<&Arc<Done>>) -> Result<Latencies> {
    let row = &request.row;
    let template = Order::new(0, 0, row.payload_bytes)?;
    let all: Vec<_> = (0..row.submitters)
        .map(|submitter| {
            let (row, scheduler, template, done) = (row.clone(), scheduler.clone(), template.clone(), done.cloned());
            tokio::spawn(async move {
                let mut latencies = Latencies::default();
                for number in (submitter..row.count).step_by(row.submitters) {
                    let before = now();
                    scheduler.domain::<Bench>().submit(Place(template.numbered(number as u64))).await?;
                    latencies.record(before.elapsed());
                    if let Some(done) = &done {
                        done.submitters[submitter].notified().await;
                    }
                }
                anyhow::Ok(latencies)
            })
        })
        .collect();
    let mut latencies = Latencies::default();
    for submitter in all {
        latencies.merge(submitter.await??);
    }
    Ok(latencies)
}

/// Waits until the file has no live task, then stops the scheduler.
async fn finish(scheduler: &Scheduler, stop: CancellationToken, running: JoinHandle<()>) -> Result<()> {
    while scheduler.store().pending_count().await? + scheduler.store().running_count().await? > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    Ok(running.await?)
}

/// Measures the time from submit to handler start at a fixed rate.
pub(crate) async fn latency(request: &Request) -> Result<Measurement> {
    let row = request.row.clone();
    let (directory, done) = (tempfile::tempdir_in(&request.directory)?, Done::new(&row));
    let scheduler = open(request, directory.path(), &done).await?;
    let (stop, running) = start(&scheduler);
    let template = Order::new(0, 0, row.payload_bytes)?;
    let (runtime, submitter) = (tokio::runtime::Handle::current(), scheduler.clone());
    let submits = tokio::task::spawn_blocking(move || {
        let mut submits = Vec::with_capacity(row.count);
        pace(row.count, row.rate, |number| {
            let order = Order { submitted: monotonic_nanoseconds(), ..template.numbered(number) };
            let scheduler = submitter.clone();
            submits
                .push(runtime.spawn(async move { scheduler.domain::<Bench>().submit(Place(order)).await.map(drop) }));
        });
        submits
    });
    for submit in submits.await? {
        submit.await??;
    }
    finish(&scheduler, stop, running).await?;
    let mut starts = done.take_starts();
    let started = starts.count() as u64;
    Ok(Measurement::of(starts.percentile(0.5)).with_latencies(starts).observed("started", started))
}

/// Measures an idle process for `count` seconds.
pub(crate) async fn idle(request: &Request) -> Result<Measurement> {
    let (directory, done) = (tempfile::tempdir_in(&request.directory)?, Done::new(&request.row));
    let scheduler = open(request, directory.path(), &done).await?;
    let (stop, running) = start(&scheduler);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = Usage::read()?;
    tokio::time::sleep(Duration::from_secs(request.row.count as u64)).await;
    let after = Usage::read()?;
    let waiting = u64::try_from(scheduler.store().pending_count().await?)?;
    stop.cancel();
    running.await?;
    let seconds = request.row.count as f64;
    let core = (after.cpu.saturating_sub(before.cpu)).as_secs_f64() / seconds;
    Ok(Measurement::of((after.written - before.written) as f64 / seconds)
        .with("core_percent", core * 100.0)
        .observed("waiting", waiting))
}
