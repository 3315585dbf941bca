//! Runs one rate test.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_protocol::{Measurement, Mode, Producer, Request, Row, Starts, Submitted, now, queue_name};
use onward::queues::{QueueMode, SetQueue};
use onward::{Engine, Name, Store};

use crate::open::open_store;
use crate::rates::{backlog, producer};
use crate::round_trips::PlaceOrder;
use crate::running;

/// The time after the last submit within which all tasks must start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The interval of the check whether all tasks have started, after the last submit.
const POLL: Duration = Duration::from_millis(5);

pub(crate) async fn run(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine_of(row, &opened.store).await?;
    backlog::fill(&engine, row).await?;
    let starts = Arc::new(Starts::new(row.count));
    register(&engine, &starts);
    let running = running::start(&engine);
    let before = opened.commits();
    let submitted = match row.producer {
        Producer::Inside => producer::here(row, &engine).await?,
        Producer::Outside => producer::in_other_process(&opened.store.info().location).await?,
    };
    wait_for(&starts, &submitted).await;
    let commits = opened.commit_sizes(&before, row.count);
    running::stop(&engine, running).await?;
    Ok(Measurement { commits, ..starts.measurement(row, &submitted)? })
}

async fn engine_of(row: &Row, store: &Arc<dyn Store>) -> Result<Engine> {
    let mode = match row.mode.with_context(|| format!("row {}: which mode?", row.name))? {
        Mode::Strict => QueueMode::Strict,
        Mode::Lenient => QueueMode::Lenient,
        Mode::Interleaved => QueueMode::Interleaved,
    };
    let engine = Engine::builder().store(store.clone()).concurrency(row.slots.max(1)).queue_mode(mode).open().await?;
    for weight in row.weights()? {
        engine.set_queue(SetQueue::new(Name::new(queue_name(weight))?).weight(weight)).await?;
    }
    Ok(engine)
}

/// Registers a handler that only records its start.
fn register(engine: &Engine, starts: &Arc<Starts>) {
    let starts = Arc::clone(starts);
    engine.register(move |PlaceOrder(order): PlaceOrder, _context| {
        starts.start(order.number);
        async { Ok(()) }
    });
    backlog::register(engine);
}

async fn wait_for(starts: &Starts, submitted: &[Submitted]) {
    let begun = now();
    while starts.started() < submitted.len() as u64 && begun.elapsed() < START_TIMEOUT {
        tokio::time::sleep(POLL).await;
    }
}
