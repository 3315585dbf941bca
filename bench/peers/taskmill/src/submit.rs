//! Measures submits while no worker runs.

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Row, key_prefix, microseconds_per, now};
use taskmill::{Scheduler, SubmitOutcome, TaskSubmission};

use crate::tasks::{Ending, Handler, scheduler_in_memory};

pub(crate) async fn idle_scheduler(row: &Row) -> Result<Scheduler> {
    let handler = Handler { ending: Ending::Completes, attempts: Default::default() };
    scheduler_in_memory(row, handler, "suite").await
}

pub(crate) async fn one_by_one(row: &Row) -> Result<Measurement> {
    let scheduler = idle_scheduler(row).await?;
    let prefix = key_prefix(&row.workload);
    let mut latencies = Latencies::with_capacity(row.count);
    let mut inserted = 0;
    let start = now();
    let mut before = start;
    for number in 0..row.count {
        let outcome = scheduler.submit(&TaskSubmission::new("bench::test").key(format!("{prefix}-{number}"))).await?;
        inserted += u64::from(outcome.is_inserted());
        let after = now();
        latencies.record(after - before);
        before = after;
    }
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).with_latencies(latencies).observed("inserted", inserted))
}

/// Measures a submit of a batch. As in taskmill's suite, the submissions are made before the timed
/// part.
pub(crate) async fn batch(row: &Row) -> Result<Measurement> {
    let scheduler = idle_scheduler(row).await?;
    let key = |number| format!("{}-{number}", key_prefix(&row.workload));
    let submissions: Vec<_> =
        (0..row.count).map(|number| TaskSubmission::new("bench::test").key(key(number))).collect();
    let start = now();
    let outcome = scheduler.submit_batch(&submissions).await?;
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).observed("inserted", outcome.inserted().len() as u64))
}

pub(crate) async fn same_key(row: &Row) -> Result<Measurement> {
    let scheduler = idle_scheduler(row).await?;
    scheduler.submit(&TaskSubmission::new("bench::test").key("same-key")).await?;
    let mut duplicates = 0;
    let start = now();
    for _ in 0..row.count {
        let outcome = scheduler.submit(&TaskSubmission::new("bench::test").key("same-key")).await?;
        duplicates += u64::from(matches!(outcome, SubmitOutcome::Duplicate));
    }
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).observed("duplicates", duplicates))
}
