//! Measures the processing of a backlog by one or several processes on one server.

use onward::StoreReads;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Child;

use anyhow::{Context as _, Result, bail};
use bench_protocol::{DurabilityLevel, Ledger, Measurement, Request, monotonic_nanoseconds};

use super::bulk::in_batches;
use crate::helper::{Helper, Job, say_ready_and_wait, wait_until_ready};
use crate::open::{engine, open_location, open_store};
use crate::round_trips::{Seen, register};

/// Measures the time from the moment at which all nodes may start to the last completion on any
/// node. Each node has as many slots as the row.
pub(crate) async fn nodes(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    in_batches(&engine(&opened.store, 1).await?, row).await?;
    let job = Job::Node { slots: row.slots, count: row.count };
    let helper =
        Helper { path: opened.location.clone(), durability: request.durability, payload_bytes: row.payload_bytes, job };
    let mut nodes = (0..row.nodes).map(|_| helper.spawn()).collect::<Result<Vec<_>>>()?;
    nodes.iter_mut().try_for_each(wait_until_ready)?;
    let started = monotonic_nanoseconds();
    nodes.iter_mut().for_each(|node| drop(node.stdin.take()));
    let ledger = Ledger::new(row.count);
    let mut ended = started;
    for node in nodes {
        let said = tokio::task::spawn_blocking(move || listen(node)).await??;
        ended = ended.max(said.ended);
        said.ran.into_iter().for_each(|number| ledger.ran(number));
    }
    let completed = opened.store.statistics().await?.iter().map(|kind| kind.ended.completed).sum::<u64>();
    let seconds = (ended - started) as f64 / 1e9;
    let mut measurement = Measurement::of(row.count as f64 / seconds).observed("completed", completed);
    measurement.lost = ledger.lost(row.count);
    measurement.duplicated = ledger.duplicated();
    Ok(measurement)
}

/// The output of a node: the time of its last completion, and the tasks that ran there.
struct Said {
    ended: u64,
    ran: Vec<u64>,
}

fn listen(mut node: Child) -> Result<Said> {
    let output = BufReader::new(node.stdout.take().context("the node has no output")?);
    let mut numbers = Vec::new();
    for line in output.lines() {
        let line = line?;
        if !line.is_empty() {
            numbers.push(line.parse().with_context(|| format!("a node said `{line}`"))?);
        }
    }
    let status = node.wait()?;
    if !status.success() || numbers.is_empty() {
        bail!("a node failed: {status}");
    }
    let ended = numbers.remove(0);
    Ok(Said { ended, ran: numbers })
}

/// Does the whole work of a node in its own process.
pub(crate) async fn run_as_node(path: &Path, durability: DurabilityLevel, slots: usize, count: usize) -> Result<()> {
    let store = open_location(path, durability).await?;
    let engine = engine(&store, slots).await?;
    let seen = Seen::new(count);
    register(&engine, &seen);
    tokio::task::spawn_blocking(say_ready_and_wait).await??;
    engine.drain().await?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(output, "\n{}", monotonic_nanoseconds())?;
    for (number, runs) in seen.ledger.runs().enumerate() {
        (0..runs).try_for_each(|_| writeln!(output, "{number}"))?;
    }
    Ok(output.flush()?)
}
