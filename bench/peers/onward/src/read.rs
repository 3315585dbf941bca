//! Reads of waiting and ended tasks, and the computation of delays.

use onward::StoreReads;
use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Measurement, Request, Row, key_prefix, microseconds_per, now, repeat};
use onward::{Name, Store, TaskState};
use onward_store::{Claim, Page, SessionId, TaskFilter};
use tokio::runtime::Runtime;

use crate::dispatch::backoff;
use crate::open::{engine, open_store};
use crate::submit::keyed;

/// The number of reads in one repetition.
const READS: usize = 200;

/// The kinds of taskmill's suite, in turn. The queries ask for the first.
const KINDS: [&str; 5] = ["media::thumbnail", "media::transcode", "billing::charge", "billing::refund", "email::send"];

pub(crate) fn peek(runtime: &Runtime, request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = runtime.block_on(open_store(request))?;
    runtime.block_on(async {
        let engine = engine(&opened.store, 1).await?;
        for number in 0..row.count {
            engine.submit_task(keyed("test", format!("{}-{number}", key_prefix(&row.workload)))?).await?;
        }
        let waiting: u64 = opened.store.queues().await?.iter().map(|queue| queue.waiting).sum();
        anyhow::ensure!(waiting == row.count as u64, "{waiting} of {} tasks wait", row.count);
        Ok(())
    })?;
    let claim = Claim::any(SessionId(0), 1);
    reads(runtime, row, "found", || async { Ok(u64::from(opened.store.peek(claim.clone()).await?.is_some())) })
}

pub(crate) fn history(runtime: &Runtime, request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = runtime.block_on(open_store(request))?;
    runtime.block_on(fill_history(&opened.store, row))?;
    let store = &opened.store;
    let kind = Name::new(KINDS[0])?;
    let filter = TaskFilter {
        states: TaskState::ALL.into_iter().filter(|state| state.is_ended()).collect(),
        with_payload: true,
        ..Default::default()
    };
    match row.workload.as_str() {
        "history_query" => reads(runtime, row, "found", || page(store, &filter, 50)),
        "history_by_type" => {
            let filter = TaskFilter { kind: Some(kind), ..filter };
            reads(runtime, row, "found", || page(store, &filter, 100))
        }
        _ => reads(runtime, row, "completed", || async {
            let statistics = store.statistics().await?;
            let found = statistics.iter().find(|statistics| statistics.kind == kind);
            Ok(found.context("no statistics of the kind")?.ended.completed)
        }),
    }
}

async fn page(store: &Arc<dyn Store>, filter: &TaskFilter, limit: usize) -> Result<u64> {
    Ok(store.tasks(filter.clone(), Page { before: None, limit }).await?.tasks.len() as u64)
}

async fn fill_history(store: &Arc<dyn Store>, row: &Row) -> Result<()> {
    let engine = engine(store, 8).await?;
    engine.handle_any(|_context| async { Ok(()) });
    for number in 0..row.count {
        let key = format!("{}-{number}", key_prefix(&row.workload));
        engine.submit_task(keyed(KINDS[number % KINDS.len()], key)?).await?;
    }
    let summary = engine.run_until_idle().await?;
    anyhow::ensure!(summary.completed == row.count as u64, "{} of {} tasks completed", summary.completed, row.count);
    Ok(())
}

/// Measures repetitions of [`READS`] reads on the runtime, each timed.
pub(crate) fn reads<F>(runtime: &Runtime, row: &Row, name: &str, read: impl Fn() -> F) -> Result<Measurement>
where
    F: Future<Output = Result<u64>>,
{
    let once = async || {
        let mut latencies = Latencies::with_capacity(READS);
        let (mut last, start) = (0, now());
        let mut before = start;
        for _ in 0..READS {
            last = read().await?;
            let after = now();
            latencies.record(after - before);
            before = after;
        }
        let value = microseconds_per(start.elapsed(), READS);
        Ok(Measurement::of(value).with_latencies(latencies).observed(name, last))
    };
    repeat(row, || runtime.block_on(once()))
}

pub(crate) fn backoff_delay(row: &Row) -> Result<Measurement> {
    let backoff = backoff(row.backoff.context("the row names no back-off")?, false);
    let start = now();
    for round in 0..row.count as u64 {
        // The engine draws a random number for each failure; a multiplication stands in for it.
        for failures in 1..=20_u32 {
            let random = (round + u64::from(failures)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            black_box(backoff.delay(black_box(failures), black_box(random)));
        }
    }
    let value = microseconds_per(start.elapsed(), row.count) * 1e3;
    Ok(Measurement::of(value).observed("computed", row.count as u64))
}
