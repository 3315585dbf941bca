//! Measures submits with tags, and finding tasks by them.

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Row, key_prefix, microseconds_per, now};
use taskmill::{TaskStore, TaskSubmission};
use tokio::runtime::Runtime;

use crate::read;
use crate::submit::idle_scheduler;

/// Measures submits. As in taskmill's suite, the strings are made in the timed part.
pub(crate) async fn submit(row: &Row) -> Result<Measurement> {
    let scheduler = idle_scheduler(row).await?;
    let prefix = key_prefix(&row.workload);
    let mut latencies = Latencies::with_capacity(row.count);
    let mut inserted = 0;
    let start = now();
    let mut before = start;
    for number in 0..row.count {
        let mut submission = TaskSubmission::new("bench::test").key(format!("{prefix}-{number}"));
        for tag in 0..row.tags {
            submission = submission.tag(format!("key-{tag}"), format!("val-{number}-{tag}"));
        }
        inserted += u64::from(scheduler.submit(&submission).await?.is_inserted());
        let after = now();
        latencies.record(after - before);
        before = after;
    }
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).with_latencies(latencies).observed("inserted", inserted))
}

/// Measures reads. All tasks have the same tag; in the row of tag values it has one of ten values.
pub(crate) fn reads(runtime: &Runtime, row: &Row) -> Result<Measurement> {
    let values = if row.workload == "tag_values" { 10 } else { 1 };
    let store = &runtime.block_on(async {
        let store = TaskStore::open_memory().await?;
        for number in 0..row.count {
            let key = format!("{}-{number}", key_prefix(&row.workload));
            let submission = TaskSubmission::new("bench::test").key(key).tag("bucket", format!("b{}", number % values));
            store.submit(&submission).await?;
        }
        anyhow::Ok(store)
    })?;
    let tags = [("bucket", "b0")];
    match row.workload.as_str() {
        "query_ids_by_tags" => {
            read::reads(runtime, row, "found", || async { Ok(store.task_ids_by_tags(&tags, None).await?.len() as u64) })
        }
        "count_by_tags" => {
            read::reads(runtime, row, "found", || async { Ok(u64::try_from(store.count_by_tags(&tags, None).await?)?) })
        }
        _ => read::reads(runtime, row, "found", || async {
            let values = store.tag_values("bucket").await?;
            let counted: i64 = values.iter().map(|(_, count)| count).sum();
            anyhow::ensure!(usize::try_from(counted)? == row.count, "{counted} of {} tasks were counted", row.count);
            Ok(values.len() as u64)
        }),
    }
}
