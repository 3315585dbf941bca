//! The ceiling of the rows on PostgreSQL: the speed of bare PostgreSQL when it takes the same steps
//! as a task engine, set-based, on two connections.
//!
//! It inserts tasks, claims them (`FOR UPDATE SKIP LOCKED`), and moves them to a history, each in a
//! commit of its own. It runs no tasks and replies to no caller. It has no queues, keys, limits,
//! leases or events, which are the purpose of an engine.

mod database;
mod notify;
mod round_trips;
mod submits;
mod wake;
mod workflows;

use anyhow::{Result, bail};
use bench_protocol::{Measurement, Request, run};

fn main() -> Result<()> {
    run("ceiling-postgres", |request| tokio::runtime::Runtime::new()?.block_on(work(request)))
}

async fn work(request: &Request) -> Result<Measurement> {
    match (request.row.workload.as_str(), request.settings.as_str()) {
        ("drain" | "bulk_round_trips", "best batch") => round_trips::best_batch(request).await,
        ("bulk_submit", "same batch") => submits::in_batches(request).await,
        ("each_submit", "one commit each") => submits::one_by_one(request).await,
        ("notify", "one commit") => notify::one_commit(request).await,
        ("wake", "two commits") => wake::two_commits(request).await,
        ("workflow_linear", "one commit each") => workflows::one_commit_each(request).await,
        (workload, settings) => bail!("the ceiling has no workload `{workload}` with settings `{settings}`"),
    }
}
