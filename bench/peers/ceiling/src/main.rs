//! The ceiling: the speed of bare SQLite when it takes the same steps as a task engine, in one
//! thread, with the best layout known.
//!
//! In the rows of sockets it is the speed of a bare stream with the same bytes.
//!
//! The ceiling of SQLite accepts a task (a row), claims it (one blob row for all tasks that are
//! claimed together), and completes it (moves the row to history, set-based). It uses the same
//! payload, the same durability level and commits of a given size. It has no callers, handlers,
//! keys, queues, events or leases, which are the purpose of an engine.

mod cycle;
mod database;
mod orchestrations;
mod rates;
mod round_trips;
mod sockets;
mod submit;
mod workflows;

use anyhow::{Result, bail};
use bench_protocol::{Measurement, Request, run};

fn main() -> Result<()> {
    run("ceiling", work)
}

fn work(request: &Request) -> Result<Measurement> {
    match (request.row.workload.as_str(), request.settings.as_str()) {
        ("file_submit", _) => submit::submits(request),
        ("file_round_trips", "same commits") => round_trips::same_commits(request),
        ("file_round_trips", "same commits, best rhythm") => round_trips::best_rhythm(request),
        ("file_round_trips", "best batch") => round_trips::best_batch(request),
        ("fan_out", "semaphore and sleep") => orchestrations::semaphore_and_sleep(request),
        ("steps", "same commits") => orchestrations::steps(request),
        ("signal", "two commits") => orchestrations::two_commits(request),
        ("sockets", "64 in a write") => sockets::stream(request),
        ("sockets", "one in a write") => sockets::round_trip(request),
        ("rates", "two commits") => rates::two_commits(request),
        (workload, "same commits") if workload.starts_with("workflow_") => workflows::same_commits(request),
        (workload, settings) => bail!("the ceiling has no workload `{workload}` with settings `{settings}`"),
    }
}
