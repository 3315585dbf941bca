//! Submits tasks and runs them to their end, timed from the first submit to the last observed end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_protocol::{BackoffName, Measurement, Request, Row, group_of, key_prefix, microseconds_per, now};
use onward::limits::{LimitScope, SetLimit};
use onward::{Backoff, Engine, Failure, HandlerOptions, Name, Priority, RetryPolicy};

use crate::open::{engine, open_store};
use crate::submit::keyed;
use crate::{bytes, dependencies};

pub(crate) const KIND: &str = "bench::test";

/// Five levels in turn: taskmill's constants, reversed because its 0 is the most urgent.
const PRIORITIES: [Priority; 5] = [Priority(0), Priority(63), Priority(127), Priority(191), Priority(255)];

/// Measures a run to the end. The engine counts an end when it is durable, and the run ends when no
/// task is left, which is how the ends are observed.
pub(crate) async fn to_the_end(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let attempts = Arc::new(AtomicU64::new(0));
    register(&engine, row, &attempts);

    if row.groups > 0 {
        let limit = SetLimit::new(LimitScope::Groups("grp-".to_owned()));
        engine.set_limit(limit.concurrency(bench_protocol::GROUP_LIMIT)).await?;
    }
    let start = now();
    submit_all(&engine, row).await?;
    let summary = engine.run_until_idle().await?;
    let elapsed = start.elapsed();

    let left = row.count as u64 - summary.ended().min(row.count as u64);
    let mut measurement = Measurement::of(microseconds_per(elapsed, row.count))
        .observed("completed", summary.completed)
        .observed("failed", summary.failed)
        .observed("dead", summary.dead)
        .observed("attempts", attempts.load(Ordering::Relaxed));
    measurement.lost = left;
    measurement.duplicated = summary.ended().saturating_sub(row.count as u64);
    Ok(measurement)
}

fn register(engine: &Engine, row: &Row, attempts: &Arc<AtomicU64>) {
    let (workload, attempts) = (row.workload.clone(), attempts.clone());
    let options = match row.backoff {
        Some(name) => HandlerOptions::new().retry(RetryPolicy { attempts: 4, backoff: backoff(name, true) }),
        None => HandlerOptions::new(),
    };
    engine.handle_with(KIND, options, move |context| {
        attempts.fetch_add(1, Ordering::Relaxed);
        if workload == "byte_reporting" {
            bytes::report(&context);
        }
        let outcome = match workload.as_str() {
            "permanent_failure" => Err(Failure::permanent("bench: permanent failure")),
            "dead_letter" => Err(Failure::retryable("bench: transient failure")),
            _ => Ok(()),
        };
        async move { outcome }
    });
}

async fn submit_all(engine: &Engine, row: &Row) -> Result<()> {
    if dependencies::are_in(&row.workload) {
        return dependencies::submit(engine, row).await.map(drop);
    }
    let prefix = key_prefix(&row.workload);
    for number in 0..row.count {
        let mut task = keyed(KIND, format!("{prefix}-{number}"))?;
        task.group = group_of(row, number).map(Name::new).transpose()?;
        if row.workload == "mixed_priority" {
            task.priority = *PRIORITIES.get(number % PRIORITIES.len()).context("no priority")?;
        }
        engine.submit_task(task).await?;
    }
    Ok(())
}

/// Returns a back-off of taskmill's suite. It has taskmill's delays for the computation, and none
/// (`immediate`) for running.
pub(crate) fn backoff(name: BackoffName, immediate: bool) -> Backoff {
    let time = |milliseconds| Duration::from_millis(if immediate { 0 } else { milliseconds });
    match name {
        BackoffName::Constant => Backoff::Constant { delay: time(100) },
        BackoffName::Linear => Backoff::Linear { initial: time(100), increment: time(50), maximum: time(30_000) },
        BackoffName::Exponential => Backoff::Exponential { initial: time(100), factor: 2.0, maximum: time(60_000) },
        BackoffName::ExponentialJitter => {
            Backoff::ExponentialJitter { initial: time(100), factor: 2.0, maximum: time(60_000) }
        }
    }
}
