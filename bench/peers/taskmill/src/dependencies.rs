//! Tasks that depend on each other, submitted one by one as in taskmill's suite.

use anyhow::{Context as _, Result};
use bench_protocol::{Measurement, Row, key_prefix, microseconds_per, now};
use taskmill::{Scheduler, TaskSubmission};

use crate::submit::idle_scheduler;

/// Returns whether the tasks of a workload depend on each other.
pub(crate) fn are_in(workload: &str) -> bool {
    matches!(workload, "chain_submit" | "chain_dispatch" | "fan_in_dispatch")
}

/// Submits a chain while no worker runs.
pub(crate) async fn chain(row: &Row) -> Result<Measurement> {
    let scheduler = idle_scheduler(row).await?;
    let start = now();
    let inserted = submit(&scheduler, row).await?;
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).observed("inserted", inserted))
}

/// Submits a chain, or tasks of which the last depends on all others. Returns the number of new
/// tasks.
pub(crate) async fn submit(scheduler: &Scheduler, row: &Row) -> Result<u64> {
    let (prefix, fan_in) = (key_prefix(&row.workload), row.workload == "fan_in_dispatch");
    let (mut before, mut inserted): (Vec<i64>, u64) = (Vec::new(), 0);
    for number in 0..row.count {
        let submission = TaskSubmission::new("bench::test").key(format!("{prefix}-{number}"));
        let submission = match fan_in {
            true if number + 1 < row.count => submission,
            true => submission.depends_on_all(std::mem::take(&mut before)),
            false => std::mem::take(&mut before).into_iter().fold(submission, TaskSubmission::depends_on),
        };
        let outcome = scheduler.submit(&submission).await?;
        before.push(outcome.id().context("a task was not taken")?);
        inserted += u64::from(outcome.is_inserted());
    }
    Ok(inserted)
}
