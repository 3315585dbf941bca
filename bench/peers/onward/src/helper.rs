//! The second process of some rows: this program, started by itself.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bench_protocol::{DurabilityLevel, Order, monotonic_nanoseconds, pace};
use onward::Store;
use onward::task::When;
use tokio::runtime::Runtime;

use crate::open::{engine, open_file, open_location};
use crate::round_trips::{self, PlaceOrder};
use crate::{backlog, cancels, parked, running, server};

/// The variable that makes the program a helper, and describes which.
const VARIABLE: &str = "ONWARD_BENCH_HELPER";

/// The job of a helper on a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    /// Submits `waiting` tasks, claims `in_flight` of them, prints `ready`, and holds them until it
    /// is killed or its input ends.
    Hold { waiting: usize, in_flight: usize },
    /// Starts `count` orchestrations that wait for a moment (microseconds since 1970). Prints
    /// `ready` when all wait, and runs until it is killed.
    Park { count: usize, wake: i64 },
    /// Submits tasks at a fixed rate.
    Produce { count: usize, rate: u32 },
    /// Prints `ready`. When its input ends, it works through a backlog of `count` tasks with the
    /// other nodes, and prints when it was done and which tasks ran here.
    Node { slots: usize, count: usize },
    /// Runs an idle engine, and prints `ready`.
    Idle { slots: usize },
    /// Runs the activities of orchestrations that are cancelled, up to `slots` at once. Prints
    /// `ready`, and then when each was asked to stop.
    Wait { slots: usize },
}

/// A helper and the file on which it works.
#[derive(Debug)]
pub(crate) struct Helper {
    pub(crate) path: PathBuf,
    pub(crate) durability: DurabilityLevel,
    pub(crate) payload_bytes: usize,
    pub(crate) job: Job,
}

/// Returns the helper as which this process was started, if any.
pub(crate) fn asked_for() -> Result<Option<Helper>> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
    let words: Vec<&str> = text.splitn(6, ' ').collect();
    let &[job, one, other, durability, bytes, path] = words.as_slice() else { bail!("`{text}` is not a helper") };
    let job = match job {
        "hold" => Job::Hold { waiting: one.parse()?, in_flight: other.parse()? },
        "park" => Job::Park { count: one.parse()?, wake: other.parse()? },
        "produce" => Job::Produce { count: one.parse()?, rate: other.parse()? },
        "node" => Job::Node { slots: one.parse()?, count: other.parse()? },
        "idle" => Job::Idle { slots: one.parse()? },
        "wait" => Job::Wait { slots: one.parse()? },
        _ => bail!("`{job}` is not what a helper does"),
    };
    let durability = if durability == "full" { DurabilityLevel::Full } else { DurabilityLevel::Normal };
    Ok(Some(Helper { path: path.into(), durability, payload_bytes: bytes.parse()?, job }))
}

impl Helper {
    /// Starts a process for the helper.
    pub(crate) fn spawn(&self) -> Result<Child> {
        let job = match self.job {
            Job::Hold { waiting, in_flight } => format!("hold {waiting} {in_flight}"),
            Job::Park { count, wake } => format!("park {count} {wake}"),
            Job::Produce { count, rate } => format!("produce {count} {rate}"),
            Job::Node { slots, count } => format!("node {slots} {count}"),
            Job::Idle { slots } => format!("idle {slots} 0"),
            Job::Wait { slots } => format!("wait {slots} 0"),
        };
        let text = format!("{job} {} {} {}", self.durability, self.payload_bytes, self.path.display());
        let mut command = Command::new(std::env::current_exe()?);
        Ok(command.env(VARIABLE, text).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
    }

    /// Does the job of the helper, in its own process.
    pub(crate) fn run(&self) -> Result<()> {
        let runtime = Runtime::new()?;
        match self.job {
            Job::Hold { waiting, in_flight } => runtime.block_on(self.hold(waiting, in_flight)),
            Job::Park { count, wake } => runtime.block_on(self.park(count, wake)),
            Job::Produce { count, rate } => self.produce(&runtime, count, rate),
            Job::Node { slots, count } => {
                runtime.block_on(server::run_as_node(&self.path, self.durability, slots, count))
            }
            Job::Idle { slots } => runtime.block_on(self.idle(slots)),
            Job::Wait { slots } => runtime.block_on(self.wait(slots)),
        }
    }

    async fn hold(&self, waiting: usize, in_flight: usize) -> Result<()> {
        let store: Arc<dyn Store> = Arc::new(open_file(&self.path, self.durability).await?);
        let engine = engine(&store, 1).await?;
        backlog::submit(&engine, waiting + in_flight, self.payload_bytes, When::Now).await?;
        let held = backlog::claim(&store, in_flight, Duration::from_secs(3600)).await?;
        say_ready_and_wait()?;
        drop(held);
        Ok(())
    }

    async fn park(&self, count: usize, wake: i64) -> Result<()> {
        let parked = parked::leave(&self.path, self.durability, count, wake).await?;
        tokio::task::spawn_blocking(say_ready_and_wait).await??;
        drop(parked);
        Ok(())
    }

    async fn idle(&self, slots: usize) -> Result<()> {
        let store = open_location(&self.path, self.durability).await?;
        let engine = engine(&store, slots).await?;
        round_trips::register(&engine, &round_trips::Seen::new(0));
        let running = running::start(&engine);
        tokio::task::spawn_blocking(say_ready_and_wait).await??;
        running::stop(&engine, running).await
    }

    async fn wait(&self, slots: usize) -> Result<()> {
        let store = open_location(&self.path, self.durability).await?;
        let engine = engine(&store, slots).await?;
        let asked = cancels::wait_in(&engine);
        let running = running::start(&engine);
        tokio::task::spawn_blocking(say_ready_and_wait).await??;
        running::stop(&engine, running).await?;
        cancels::print(&asked);
        Ok(())
    }

    fn produce(&self, runtime: &Runtime, count: usize, rate: u32) -> Result<()> {
        let store: Arc<dyn Store> = Arc::new(runtime.block_on(open_file(&self.path, self.durability))?);
        let engine = runtime.block_on(engine(&store, 1))?;
        let template = Order::new(0, 0, self.payload_bytes)?;
        let mut submits = Vec::with_capacity(count);
        pace(count, rate, |number| {
            let order = Order { submitted: monotonic_nanoseconds(), ..template.numbered(number) };
            let engine = engine.clone();
            submits.push(runtime.spawn(async move { engine.submit(PlaceOrder(order)).await.map(drop) }));
        });
        for submit in submits {
            runtime.block_on(submit)??;
        }
        Ok(())
    }
}

/// Prints `ready` and waits until the input ends or the process is killed.
pub(crate) fn say_ready_and_wait() -> Result<()> {
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Waits until a helper prints `ready`.
pub(crate) fn wait_until_ready(holder: &mut Child) -> Result<()> {
    let mut word = [0; 6];
    holder.stdout.as_mut().context("the helper has no output")?.read_exact(&mut word).context("the helper failed")?;
    Ok(())
}

/// Makes a new file on which a helper did its job and was killed, or ended if it held no tasks.
pub(crate) fn leave_behind(
    path: &Path,
    durability: DurabilityLevel,
    bytes: usize,
    waiting: usize,
    in_flight: usize,
) -> Result<()> {
    let job = Job::Hold { waiting, in_flight };
    let mut holder = Helper { path: path.to_owned(), durability, payload_bytes: bytes, job }.spawn()?;
    wait_until_ready(&mut holder)?;
    if in_flight > 0 {
        holder.kill()?;
    }
    drop(holder.stdin.take());
    holder.wait()?;
    Ok(())
}
