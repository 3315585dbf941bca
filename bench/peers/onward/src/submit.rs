//! Measures submits while no worker runs.

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Request, key_prefix, microseconds_per, now};
use onward::task::UniqueKey;
use onward::{NewTask, Submitted};

use crate::open::{engine, open_store};

/// Returns a task with a key and without a payload.
pub(crate) fn keyed(kind: &str, key: String) -> Result<NewTask> {
    let mut task = NewTask::new(kind)?;
    task.unique = Some(UniqueKey { key, on_duplicate: Default::default(), keep_for: Default::default() });
    Ok(task)
}

pub(crate) async fn one_by_one(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let prefix = key_prefix(&row.workload);
    let mut latencies = Latencies::with_capacity(row.count);
    let mut inserted = 0;
    let start = now();
    let mut before = start;
    for number in 0..row.count {
        let submitted = engine.submit_task(keyed("bench::test", format!("{prefix}-{number}"))?).await?;
        inserted += u64::from(submitted.is_new());
        let after = now();
        latencies.record(after - before);
        before = after;
    }
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).with_latencies(latencies).observed("inserted", inserted))
}

/// Measures a submit of a batch. As in taskmill's suite, the tasks are made before the timed part.
pub(crate) async fn batch(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let prefix = key_prefix(&row.workload);
    let tasks = (0..row.count).map(|number| keyed("bench::test", format!("{prefix}-{number}")));
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let start = now();
    let submitted = engine.submit_all(tasks).await?;
    let value = microseconds_per(start.elapsed(), row.count);
    let inserted = submitted.iter().filter(|submitted| submitted.is_new()).count() as u64;
    Ok(Measurement::of(value).observed("inserted", inserted))
}

pub(crate) async fn same_key(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let task = || keyed("bench::test", "same-key".to_owned());
    engine.submit_task(task()?).await?;
    let mut duplicates = 0;
    let start = now();
    for _ in 0..row.count {
        let submitted = engine.submit_task(task()?).await?;
        duplicates += u64::from(matches!(submitted, Submitted::Duplicate { .. }));
    }
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).observed("duplicates", duplicates))
}
