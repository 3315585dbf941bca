//! Measures submits with tags, and finding tasks by them.

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Request, key_prefix, microseconds_per, now};
use onward::StoreReads;
use onward::TaskFilter;
use onward::store::TagPage;
use onward::task::Tags;
use onward_store::Page;
use tokio::runtime::Runtime;

use crate::open::{engine, open_store};
use crate::read;
use crate::submit::keyed;

/// Measures submits. As in taskmill's suite, the strings are made in the timed part.
pub(crate) async fn submit(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let prefix = key_prefix(&row.workload);
    let mut latencies = Latencies::with_capacity(row.count);
    let mut inserted = 0;
    let start = now();
    let mut before = start;
    for number in 0..row.count {
        let mut task = keyed("bench::test", format!("{prefix}-{number}"))?;
        for tag in 0..row.tags {
            task.tags.set(format!("key-{tag}"), format!("val-{number}-{tag}"));
        }
        inserted += u64::from(engine.submit_task(task).await?.is_new());
        let after = now();
        latencies.record(after - before);
        before = after;
    }
    let value = microseconds_per(start.elapsed(), row.count);
    Ok(Measurement::of(value).with_latencies(latencies).observed("inserted", inserted))
}

/// Measures reads. All tasks have the same tag; in the row of tag values it has one of ten values.
pub(crate) fn reads(runtime: &Runtime, request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = runtime.block_on(open_store(request))?;
    let values = if row.workload == "tag_values" { 10 } else { 1 };
    runtime.block_on(async {
        let engine = engine(&opened.store, 1).await?;
        for number in 0..row.count {
            let mut task = keyed("bench::test", format!("{}-{number}", key_prefix(&row.workload)))?;
            task.tags.set("bucket", format!("b{}", number % values));
            engine.submit_task(task).await?;
        }
        anyhow::Ok(())
    })?;
    let store = &opened.store;
    let tags: Tags = [("bucket", "b0")].into_iter().collect();
    let filter = TaskFilter { tags, ..TaskFilter::default() };
    match row.workload.as_str() {
        "query_ids_by_tags" => read::reads(runtime, row, "found", || async {
            let page = Page { before: None, limit: onward_store::bounds::ID_PAGE };
            Ok(store.task_ids(filter.clone(), page).await?.tasks.len() as u64)
        }),
        "count_by_tags" => read::reads(runtime, row, "found", || async { Ok(store.count(filter.clone()).await?) }),
        _ => read::reads(runtime, row, "found", || async {
            let page = store.tag_values("bucket".to_owned(), TaskFilter::default(), TagPage::default()).await?;
            let counted: u64 = page.values.iter().map(|value| value.tasks).sum();
            anyhow::ensure!(counted == row.count as u64, "{counted} of {} tasks were counted", row.count);
            Ok(page.values.len() as u64)
        }),
    }
}
