//! Measures the resources of an engine that has many tasks for later, or none at all.

use onward::StoreReads;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bench_protocol::{Measurement, Request, Usage};
use onward::task::When;
use onward::{Engine, Store};
use tokio::sync::Semaphore;

use crate::helper::{Helper, Job, leave_behind, wait_until_ready};
use crate::open::{engine, open_file, open_store};
use crate::{backlog, round_trips, running};

const MIB: f64 = 1_048_576.0;

/// Measures the resident memory of a process that works on the first of `count` waiting tasks. It
/// has opened a file with these tasks, or has submitted them itself.
pub(crate) async fn memory(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let path = directory.path().join("onward.db");
    let submits = request.settings == "same process";
    if !submits {
        leave_behind(&path, request.durability, row.payload_bytes, row.count, 0)?;
    }
    let before = Usage::read()?;
    let store: Arc<dyn Store> = Arc::new(open_file(&path, request.durability).await?);
    let builder = Engine::builder().store(store.clone()).concurrency(row.slots).shutdown_limit(Duration::ZERO);
    let engine = builder.open().await?;
    if submits {
        backlog::submit(&engine, row.count, row.payload_bytes, When::Now).await?;
    }
    let started = Arc::new(Semaphore::new(0));
    engine.handle(round_trips::KIND, {
        let started = started.clone();
        move |context| {
            started.add_permits(1);
            async move {
                context.cancelled().cancelled().await;
                Ok(())
            }
        }
    });
    let running = running::start(&engine);
    started.acquire_many(u32::try_from(row.slots)?).await?.forget();
    let resident = Usage::read()?;
    let there = store.queues().await?.iter().map(|queue| queue.waiting + queue.running).sum();
    running::stop(&engine, running).await?;
    Ok(Measurement::of(resident.resident as f64 / MIB)
        .with("before_mib", before.resident as f64 / MIB)
        .with("peak_mib", resident.peak as f64 / MIB)
        .observed("waiting", there))
}

/// Runs an idle engine on a file for `count` seconds, alone or with another one in a second
/// process.
pub(crate) async fn idle(request: &Request) -> Result<Measurement> {
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, request.row.slots).await?;
    let seen = round_trips::Seen::new(0);
    round_trips::register(&engine, &seen);
    let running = running::start(&engine);
    let other = if request.settings == "two processes" { Some(start_idle(request, &opened.location)?) } else { None };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, commits) = (Usage::read()?, opened.commits());
    tokio::time::sleep(Duration::from_secs(request.row.count as u64)).await;
    let after = Usage::read()?;
    let per_thousand = opened.commit_sizes(&commits, 1000).map_or(0.0, |sizes| sizes.commits);
    other.map_or(Ok(()), end)?;
    running::stop(&engine, running).await?;
    let waiting = opened.store.queues().await?.iter().map(|queue| queue.waiting).sum();
    let seconds = request.row.count as f64;
    let core = (after.cpu.saturating_sub(before.cpu)).as_secs_f64() / seconds;
    Ok(Measurement::of((after.written - before.written) as f64 / seconds)
        .with("core_percent", core * 100.0)
        .with("commits", per_thousand)
        .observed("waiting", waiting))
}

/// Starts an idle process on the same file.
fn start_idle(request: &Request, path: &Path) -> Result<Child> {
    let job = Job::Idle { slots: request.row.slots };
    let helper =
        Helper { path: path.to_owned(), durability: request.durability, payload_bytes: request.row.payload_bytes, job };
    let mut child = helper.spawn()?;
    wait_until_ready(&mut child)?;
    Ok(child)
}

fn end(mut child: Child) -> Result<()> {
    drop(child.stdin.take());
    ensure!(child.wait()?.success(), "the other process failed");
    Ok(())
}
