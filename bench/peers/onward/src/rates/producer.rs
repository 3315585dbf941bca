//! The producer, in this process or in another process of this program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bench_protocol::{Arrival, Order, Request, Row, Submitted, arrivals, queue_name};
use onward::{Engine, Store};
use tokio::runtime::{Handle, Runtime};

use crate::open::{engine, open_file};
use crate::round_trips::PlaceOrder;

/// The variable that makes the program a producer, and names its file.
const VARIABLE: &str = "ONWARD_BENCH_PRODUCER";

/// Does the producer's work if this process was started as one. Its output is the list of submitted
/// tasks.
pub(crate) fn asked_for() -> Result<bool> {
    let Some(path) = std::env::var_os(VARIABLE) else { return Ok(false) };
    let request = Request::of_this_process("onward")?;
    let runtime = Runtime::new()?;
    let store: Arc<dyn Store> = Arc::new(runtime.block_on(open_file(Path::new(&path), request.durability))?);
    let submitted = runtime.block_on(async { here(&request.row, &engine(&store, 1).await?).await })?;
    submitted.iter().for_each(|each| println!("{each}"));
    Ok(true)
}

/// Submits tasks from this process. The submits of one tick run concurrently with those of earlier
/// ticks that have not returned. A producer that awaited each would not be an open loop.
pub(crate) async fn here(row: &Row, engine: &Engine) -> Result<Vec<Submitted>> {
    let (row, engine, runtime) = (row.clone(), engine.clone(), Handle::current());
    let template = Order::new(0, 0, row.payload_bytes)?;
    let submits = tokio::task::spawn_blocking(move || {
        let mut submits = Vec::with_capacity(row.count);
        arrivals(&row, |arrival| {
            let order = PlaceOrder(template.numbered(arrival.number));
            submits.push(runtime.spawn(submit(engine.clone(), order, arrival)));
        })?;
        anyhow::Ok(submits)
    });
    let mut submitted = Vec::new();
    for submit in submits.await?? {
        submitted.push(submit.await??);
    }
    Ok(submitted)
}

async fn submit(engine: Engine, order: PlaceOrder, arrival: Arrival) -> onward::Result<Submitted> {
    engine.submit_with(order).queue(queue_name(arrival.weight)).await?;
    Ok(Submitted::now(arrival))
}

/// Submits tasks from another process on the same file.
pub(crate) async fn in_other_process(location: &str) -> Result<Vec<Submitted>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(VARIABLE, location).stdout(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    ensure!(output.status.success(), "the producer failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).context("what the producer submitted")?;
    text.lines().map(str::parse).collect()
}
