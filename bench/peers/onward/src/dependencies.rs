//! Tasks that depend on each other, submitted one by one.

use anyhow::Result;
use bench_protocol::{Measurement, Request, Row, key_prefix, microseconds_per, now};
use onward::task::Dependencies;
use onward::{Engine, TaskId};

use crate::dispatch::KIND;
use crate::open::{engine, open_store};
use crate::submit::keyed;

/// Returns whether the tasks of a workload depend on each other.
pub(crate) fn are_in(workload: &str) -> bool {
    matches!(workload, "chain_submit" | "chain_dispatch" | "fan_in_dispatch")
}

/// Submits a chain while no worker runs.
pub(crate) async fn chain(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let start = now();
    let inserted = submit(&engine, row).await?;
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).observed("inserted", inserted))
}

/// Submits a chain, or tasks of which the last depends on all others. Returns the number of new
/// tasks.
pub(crate) async fn submit(engine: &Engine, row: &Row) -> Result<u64> {
    let (prefix, fan_in) = (key_prefix(&row.workload), row.workload == "fan_in_dispatch");
    let (mut before, mut inserted): (Vec<TaskId>, u64) = (Vec::new(), 0);
    for number in 0..row.count {
        let mut task = keyed(KIND, format!("{prefix}-{number}"))?;
        if !fan_in || number + 1 == row.count {
            task.depends_on = Dependencies::on(std::mem::take(&mut before));
        }
        let submitted = engine.submit_task(task).await?;
        before.push(submitted.id());
        inserted += u64::from(submitted.is_new());
    }
    Ok(inserted)
}
