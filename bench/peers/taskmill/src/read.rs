//! Reads of waiting and ended tasks, and the computation of delays.

use std::hint::black_box;

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Row, key_prefix, microseconds_per, now, repeat};
use taskmill::{IoBudget, TaskStore, TaskSubmission};
use tokio::runtime::Runtime;

use crate::tasks::strategy;

/// The number of reads in one repetition.
const READS: usize = 200;

/// The kinds of taskmill's suite, in turn. The queries ask for the first.
const KINDS: [&str; 5] = ["media::thumbnail", "media::transcode", "billing::charge", "billing::refund", "email::send"];

pub(crate) fn peek(runtime: &Runtime, row: &Row) -> Result<Measurement> {
    let store = runtime.block_on(async {
        let store = TaskStore::open_memory().await?;
        for number in 0..row.count {
            store.submit(&TaskSubmission::new("test").key(format!("{}-{number}", key_prefix(&row.workload)))).await?;
        }
        anyhow::ensure!(store.pending_count().await? == i64::try_from(row.count)?, "not every task waits");
        Ok(store)
    })?;
    reads(runtime, row, "found", || async { Ok(u64::from(store.peek_next(None).await?.is_some())) })
}

pub(crate) fn history(runtime: &Runtime, row: &Row) -> Result<Measurement> {
    let store = &runtime.block_on(store_with_history(row))?;
    match row.workload.as_str() {
        "history_query" => reads(runtime, row, "found", || async { Ok(store.history(50, 0).await?.len() as u64) }),
        "history_by_type" => {
            reads(runtime, row, "found", || async { Ok(store.history_by_type(KINDS[0], 100).await?.len() as u64) })
        }
        _ => reads(runtime, row, "completed", || async {
            Ok(u64::try_from(store.history_stats(KINDS[0]).await?.count)?)
        }),
    }
}

async fn store_with_history(row: &Row) -> Result<TaskStore> {
    let store = TaskStore::open_memory().await?;
    for number in 0..row.count {
        let key = format!("{}-{number}", key_prefix(&row.workload));
        store.submit(&TaskSubmission::new(KINDS[number % KINDS.len()]).key(key)).await?;
        let task = store.pop_next(None).await?;
        let task = task.ok_or_else(|| anyhow::anyhow!("a task just submitted could not be claimed"))?;
        store.complete(task.id, &IoBudget::default()).await?;
    }
    Ok(store)
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
    let Some(name) = row.backoff else { anyhow::bail!("row {} names no back-off", row.name) };
    let strategy = strategy(name, false);
    let start = now();
    for _ in 0..row.count {
        for retry in 0..20_i32 {
            black_box(strategy.delay_for(black_box(retry)));
        }
    }
    let value = microseconds_per(start.elapsed(), row.count) * 1e3;
    Ok(Measurement::of(value).observed("computed", row.count as u64))
}
