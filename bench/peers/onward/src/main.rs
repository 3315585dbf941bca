//! The benchmark rows on Onward.
//!
//! Some rows need a second process. The program then starts itself as a helper (see `helper`,
//! `rates`).

mod backlog;
mod bytes;
mod cancels;
mod dependencies;
mod dispatch;
mod helper;
mod latency;
mod limited;
mod long;
mod open;
mod orchestrations;
mod parked;
mod rates;
mod read;
mod resident;
mod restart;
mod round_trips;
mod running;
mod server;
mod signals;
mod sockets;
mod submit;
mod tags;
mod workflows;

use std::thread::available_parallelism;

use anyhow::{Result, bail};
use bench_protocol::{Measurement, Request, repeat, run};
use tokio::runtime::{Builder, Runtime};

fn main() -> Result<()> {
    if rates::asked_for()? {
        return Ok(());
    }
    match helper::asked_for()? {
        Some(helper) => helper.run(),
        None => run("onward", work),
    }
}

/// Builds the runtime. In rows of round trips it leaves a processor to the thread of a SQLite
/// store, as docs/guides/operating.md advises, because such rows use the whole machine.
fn runtime(request: &Request) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if matches!(request.row.workload.as_str(), "file_round_trips" | "file_limits") && request.postgres.is_none() {
        builder.worker_threads(available_parallelism()?.get().saturating_sub(1).max(1));
    }
    Ok(builder.enable_all().build()?)
}

fn work(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    if row.workload == "sockets" {
        return bench_sockets::run::<sockets::Ours>(request);
    }
    let runtime = runtime(request)?;
    match row.workload.as_str() {
        "submit" => repeat(row, || runtime.block_on(submit::one_by_one(request))),
        "batch_submit" => repeat(row, || runtime.block_on(submit::batch(request))),
        "dedup_hit" => repeat(row, || runtime.block_on(submit::same_key(request))),
        "submit_with_tags" => repeat(row, || runtime.block_on(tags::submit(request))),
        "query_ids_by_tags" | "count_by_tags" | "tag_values" => tags::reads(&runtime, request),
        "chain_submit" => repeat(row, || runtime.block_on(dependencies::chain(request))),
        "chain_dispatch" | "fan_in_dispatch" | "group_dispatch" | "dispatch" | "concurrency" | "mixed_priority"
        | "permanent_failure" | "dead_letter" | "byte_reporting" => {
            repeat(row, || runtime.block_on(dispatch::to_the_end(request)))
        }
        "byte_snapshot" => repeat(row, || runtime.block_on(bytes::snapshots(request))),
        "peek" => read::peek(&runtime, request),
        "history_query" | "history_by_type" | "history_stats" => read::history(&runtime, request),
        "backoff_delay" => repeat(row, || read::backoff_delay(row)),
        "file_submit" => runtime.block_on(round_trips::submits(request)),
        "file_round_trips" => runtime.block_on(round_trips::round_trips(request)),
        "file_limits" => runtime.block_on(limited::round_trips(request)),
        "file_restart" => runtime.block_on(restart::restart(request)),
        "file_memory" => runtime.block_on(resident::memory(request)),
        "file_latency" => runtime.block_on(latency::latency(request)),
        "drain" => runtime.block_on(server::drain(request)),
        "bulk_round_trips" => runtime.block_on(server::round_trips(request)),
        "bulk_submit" => runtime.block_on(server::submits(request)),
        "each_submit" => runtime.block_on(server::each_submit(request)),
        "wake" => runtime.block_on(server::wake(request)),
        "notify" => runtime.block_on(server::notify(request)),
        "claim_cost" => runtime.block_on(server::claim_cost(request)),
        "nodes" => runtime.block_on(server::nodes(request)),
        "rates" => runtime.block_on(rates::run(request)),
        "fan_out" | "chain" | "noop" | "steps" => runtime.block_on(orchestrations::in_flight(request)),
        "workflow_linear"
        | "workflow_diamond"
        | "workflow_dag"
        | "workflow_tree"
        | "workflow_conditional"
        | "workflow_batch" => runtime.block_on(workflows::in_flight(request)),
        "workflow_items" => runtime.block_on(workflows::items(request)),
        "workflow_turns" => repeat(row, || workflows::turns(request)),
        "workflow_check" => repeat(row, || workflows::check(request)),
        "long" => runtime.block_on(long::last_over_first(request)),
        "cancel" => runtime.block_on(cancels::notified(request)),
        "signal" => runtime.block_on(signals::resumed(request)),
        "parked" => runtime.block_on(parked::memory(request)),
        "parked_all_at_once" => runtime.block_on(parked::all_at_once(request)),
        "parked_takeover" => runtime.block_on(parked::takeover(request)),
        "file_idle" => runtime.block_on(resident::idle(request)),
        other => bail!("onward has no workload `{other}`"),
    }
}
