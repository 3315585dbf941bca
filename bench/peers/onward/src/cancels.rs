//! Measures the time from the cancellation of an orchestration until the activity that it awaits is
//! asked to stop.

use onward::StoreReads;
use std::io::Read as _;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench_protocol::{Latencies, Measurement, Producer, Request, monotonic_nanoseconds, pace};
use onward::orchestration::OrchestrationContext;
use onward::{Engine, Failure, Task, TaskId};
use serde::{Deserialize, Serialize};

use crate::helper::{Helper, Job, wait_until_ready};
use crate::open::{Opened, open_store};
use crate::orchestrations::engine;
use crate::running;

/// The interval at which the store is polled for progress.
const POLL: Duration = Duration::from_millis(20);

/// An orchestration that awaits one activity, which never ends by itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Patient {
    number: usize,
}

impl Task for Patient {
    const KIND: &'static str = "patient";
    const ORCHESTRATION: bool = true;
    type Output = ();
}

/// The activity.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Wait {
    number: usize,
}

impl Task for Wait {
    const KIND: &'static str = "wait";
    type Output = ();
}

/// The number of each activity that was asked to stop, and the time on the clock that all processes
/// share.
pub(crate) type Asked = Arc<Mutex<Vec<(usize, u64)>>>;

/// Registers the activity, and returns the list in which it records its stop.
pub(crate) fn wait_in(engine: &Engine) -> Asked {
    let asked = Asked::default();
    let requested = asked.clone();
    engine.register(move |wait: Wait, context| {
        let requested = requested.clone();
        async move {
            context.cancelled().cancelled().await;
            requested.lock().unwrap_or_else(PoisonError::into_inner).push((wait.number, monotonic_nanoseconds()));
            Err(Failure::permanent("was asked to stop"))
        }
    });
    asked
}

/// Prints a line for each activity.
pub(crate) fn print(asked: &Asked) {
    for (number, at) in asked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("{number} {at}");
    }
}

async fn patient(patient: Patient, context: OrchestrationContext) -> Result<(), Failure> {
    Ok(context.activity(Wait { number: patient.number }).await?)
}

/// Cancels orchestrations at a fixed rate. Each awaits an activity that runs in this or in another
/// process.
pub(crate) async fn notified(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    engine.orchestrate(patient);
    let in_other_process = row.producer == Producer::Outside;
    let asked = if in_other_process { Asked::default() } else { wait_in(&engine) };
    let mut other = in_other_process.then(|| wait_in_other_process(request, &opened)).transpose()?;
    let running = running::start(&engine);

    let mut patients = Vec::with_capacity(row.count);
    for number in 0..row.count {
        patients.push(engine.submit(Patient { number }).await?.id());
    }
    until_running(&engine, row.count as u64).await?;
    let cancelled = cancel_all(row.rate, &engine, patients).await?;
    until_running(&engine, 0).await?;
    running::stop(&engine, running).await?;
    if let Some(other) = &mut other {
        *asked.lock().unwrap_or_else(PoisonError::into_inner) = read(other)?;
    }
    let asked = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
    measurement(&cancelled, &asked)
}

fn wait_in_other_process(request: &Request, opened: &Opened) -> Result<Child> {
    let job = Job::Wait { slots: request.row.slots };
    let helper = Helper { path: opened.location.clone(), durability: request.durability, payload_bytes: 0, job };
    let mut child = helper.spawn()?;
    wait_until_ready(&mut child)?;
    Ok(child)
}

async fn until_running(engine: &Engine, count: u64) -> Result<()> {
    while engine.store().queues().await?.iter().map(|queue| queue.running).sum::<u64>() != count {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Cancels the orchestrations and returns the time of each cancellation.
async fn cancel_all(rate: u32, engine: &Engine, patients: Vec<TaskId>) -> Result<Vec<u64>> {
    let (engine, runtime) = (engine.clone(), tokio::runtime::Handle::current());
    let cancels = tokio::task::spawn_blocking(move || {
        let mut cancels = Vec::with_capacity(patients.len());
        pace(patients.len(), rate, |number| {
            let (engine, task) = (engine.clone(), patients[number as usize]);
            let at = monotonic_nanoseconds();
            cancels.push((at, runtime.spawn(async move { engine.cancel(task).await })));
        });
        cancels
    });
    let mut times = Vec::new();
    for (at, cancel) in cancels.await? {
        cancel.await??;
        times.push(at);
    }
    Ok(times)
}

/// Ends the other process and reads what it recorded.
fn read(other: &mut Child) -> Result<Vec<(usize, u64)>> {
    drop(other.stdin.take());
    let mut text = String::new();
    other.stdout.take().context("no output")?.read_to_string(&mut text)?;
    ensure!(other.wait()?.success(), "the other process failed");
    let line = |line: &str| {
        let (number, at) = line.split_once(' ').context("not a number and a time")?;
        Ok((number.parse()?, at.parse()?))
    };
    text.lines().filter(|text| !text.is_empty()).map(line).collect()
}

fn measurement(cancelled: &[u64], asked: &[(usize, u64)]) -> Result<Measurement> {
    let mut latencies = Latencies::with_capacity(asked.len());
    for (number, at) in asked {
        let cancelled = cancelled.get(*number).context("an activity that was not cancelled")?;
        latencies.record(Duration::from_nanos(at.saturating_sub(*cancelled)));
    }
    let measurement = Measurement::of(latencies.percentile(0.99)).observed("asked", asked.len() as u64);
    Ok(measurement.with_latencies(latencies))
}
