//! The file rows: submits alone, and round trips.

use onward::StoreReads;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Ledger, Measurement, Order, Request, monotonic_nanoseconds, now};
use onward::{Engine, Handle, Name, NewTask, Task, TaskState};
use onward_store::Write;
use serde::{Deserialize, Serialize};

use crate::open::{engine, open_store};
use crate::{backlog, running};

/// More than the log holds before it is copied back.
const LOG_MEBIBYTES: usize = 40;

/// The kind of the tasks in the file rows.
pub(crate) const KIND: &str = "place";

/// A typed task with the payload of the file rows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PlaceOrder(pub(crate) Order);

impl Task for PlaceOrder {
    const KIND: &'static str = KIND;
    type Output = ();
}

/// The tasks that handlers saw.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) ledger: Ledger,
    pub(crate) starts: Mutex<Latencies>,
}

impl Seen {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { ledger: Ledger::new(count), starts: Mutex::default() })
    }
}

/// Registers the handler. It counts the task and, if the task has its submit time, the time since
/// then.
pub(crate) fn register(engine: &Engine, seen: &Arc<Seen>) {
    let seen = seen.clone();
    engine.register(move |PlaceOrder(order): PlaceOrder, _context| {
        if order.submitted > 0 {
            let latency = Duration::from_nanos(monotonic_nanoseconds() - order.submitted);
            seen.starts.lock().unwrap_or_else(PoisonError::into_inner).record(latency);
        }
        seen.ledger.ran(order.number);
        async { Ok(()) }
    });
}

/// Measures submits alone, while no worker runs.
pub(crate) async fn submits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    grow_log(&engine).await?;
    let before = opened.commits();
    let started = now();
    let mut latencies = submitters(request, &engine, &Awaits::Nothing).await?;
    let elapsed = started.elapsed();
    let commits = opened.commit_sizes(&before, row.count);
    let inserted = opened.store.queues().await?.iter().map(|queue| queue.waiting).sum();
    let measurement = Measurement::of(latencies.percentile(0.5))
        .with("per_second", row.count as f64 / elapsed.as_secs_f64())
        .with_latencies(latencies)
        .observed("inserted", inserted);
    Ok(Measurement { commits, ..measurement })
}

/// Grows the write-ahead log to its full size and restarts it, as the ceiling does. A commit that
/// extends a file syncs at twice the cost.
async fn grow_log(engine: &Engine) -> Result<()> {
    let fillers = (0..LOG_MEBIBYTES).map(|_| {
        let mut filler = NewTask::new("filler")?;
        filler.queue = Name::new("filler")?;
        filler.payload = vec![b'x'; 1024 * 1024].into();
        Ok(filler)
    });
    engine.submit_all(fillers.collect::<Result<_>>()?).await?;
    let purge = Write::Purge { queue: Name::new("filler")?, states: vec![TaskState::Waiting], limit: LOG_MEBIBYTES };
    engine.store().apply(vec![purge]).await?;
    // A thread of the store copies the log back, without a notification when it is done.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

/// Tasks that no submitter awaits yet, oldest first.
type Unawaited = Arc<Mutex<VecDeque<Handle<()>>>>;

/// The task that a submitter awaits before its next submit.
#[derive(Debug, Clone)]
enum Awaits {
    Nothing,
    Its,
    Oldest(Unawaited),
}

/// Measures round trips. Each submitter submits a task and awaits it. If the row has waiting tasks,
/// the submitter awaits the oldest unawaited one instead, and its own task takes its position.
pub(crate) async fn round_trips(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    backlog::fill(&opened.store, row).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let seen = Seen::new(row.count);
    register(&engine, &seen);
    let awaits = match row.backlog.waiting {
        0 => Awaits::Its,
        count => Awaits::Oldest(waiting_tasks(&engine, count, row.payload_bytes).await?),
    };
    let running = running::start(&engine);

    let before = opened.commits();
    let started = now();
    let latencies = submitters(request, &engine, &awaits).await?;
    let elapsed = started.elapsed();
    let commits = opened.commit_sizes(&before, row.count);

    running::finish(&engine, running).await?;
    let completed = opened.store.statistics().await?.iter().map(|kind| kind.ended.completed).sum::<u64>();
    let mut measurement = Measurement::of(row.count as f64 / elapsed.as_secs_f64()).with_latencies(latencies);
    measurement.lost = seen.ledger.lost(row.count);
    measurement.duplicated = seen.ledger.duplicated();
    let others = (row.backlog.finished + row.backlog.waiting) as u64;
    Ok(Measurement { commits, ..measurement }.observed("completed", completed.saturating_sub(others)))
}

async fn waiting_tasks(engine: &Engine, count: usize, bytes: usize) -> Result<Unawaited> {
    let mut handles = VecDeque::with_capacity(count);
    for _ in 0..count {
        handles.push_back(engine.submit(PlaceOrder(Order::new(u64::MAX, 0, bytes)?)).await?);
    }
    Ok(Arc::new(Mutex::new(handles)))
}

/// Runs all submitters, and returns the latencies of their submits.
async fn submitters(request: &Request, engine: &Engine, awaits: &Awaits) -> Result<Latencies> {
    let row = &request.row;
    let template = Order::new(0, 0, row.payload_bytes)?;
    let all: Vec<_> = (0..row.submitters)
        .map(|submitter| {
            let numbers = (submitter..row.count).step_by(row.submitters);
            tokio::spawn(submitter_of(numbers, engine.clone(), template.clone(), awaits.clone()))
        })
        .collect();
    let mut latencies = Latencies::with_capacity(row.count);
    for submitter in all {
        latencies.merge(submitter.await??);
    }
    Ok(latencies)
}

async fn submitter_of(
    numbers: impl Iterator<Item = usize>,
    engine: Engine,
    template: Order,
    awaits: Awaits,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for number in numbers {
        let before = now();
        let handle = engine.submit(PlaceOrder(template.numbered(number as u64))).await?;
        latencies.record(before.elapsed());
        match &awaits {
            Awaits::Nothing => {}
            Awaits::Its => handle.wait().await?,
            Awaits::Oldest(unawaited) => exchange(unawaited, handle).context("no task to await")?.wait().await?,
        }
    }
    Ok(latencies)
}

fn exchange(unawaited: &Unawaited, newest: Handle<()>) -> Option<Handle<()>> {
    let mut unawaited = unawaited.lock().unwrap_or_else(PoisonError::into_inner);
    unawaited.push_back(newest);
    unawaited.pop_front()
}
