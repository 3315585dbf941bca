//! The benchmark rows on taskmill 0.7.1, used as its own benchmark suite uses it.

mod bytes;
mod dependencies;
mod dispatch;
mod file;
mod read;
mod submit;
mod tags;
mod tasks;

use anyhow::{Result, bail};
use bench_protocol::{Measurement, Request, repeat, run};
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    run("taskmill", work)
}

fn work(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let runtime = Runtime::new()?;
    match row.workload.as_str() {
        "submit" => repeat(row, || runtime.block_on(submit::one_by_one(row))),
        "batch_submit" => repeat(row, || runtime.block_on(submit::batch(row))),
        "dedup_hit" => repeat(row, || runtime.block_on(submit::same_key(row))),
        "submit_with_tags" => repeat(row, || runtime.block_on(tags::submit(row))),
        "query_ids_by_tags" | "count_by_tags" | "tag_values" => tags::reads(&runtime, row),
        "chain_submit" => repeat(row, || runtime.block_on(dependencies::chain(row))),
        "chain_dispatch" | "fan_in_dispatch" | "group_dispatch" | "dispatch" | "concurrency" | "mixed_priority"
        | "permanent_failure" | "dead_letter" | "byte_reporting" => {
            repeat(row, || runtime.block_on(dispatch::to_the_end(request)))
        }
        "byte_snapshot" => repeat(row, || runtime.block_on(bytes::snapshots(request))),
        "peek" => read::peek(&runtime, row),
        "history_query" | "history_by_type" | "history_stats" => read::history(&runtime, row),
        "backoff_delay" => repeat(row, || read::backoff_delay(row)),
        "file_submit" => runtime.block_on(file::submit(request)),
        "file_round_trips" => runtime.block_on(file::round_trips(request)),
        "file_latency" => runtime.block_on(file::latency(request)),
        "file_idle" => runtime.block_on(file::idle(request)),
        other => bail!("taskmill has no workload `{other}`"),
    }
}
