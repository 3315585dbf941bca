//! An engine that runs during the row.

use onward::StoreReads;
use std::time::Duration;

use anyhow::Result;
use onward::Engine;
use tokio::task::JoinHandle;

/// The interval of the check whether any task is left, after the timed part.
const POLL: Duration = Duration::from_millis(10);

pub(crate) type Running = JoinHandle<onward::Result<()>>;

pub(crate) fn start(engine: &Engine) -> Running {
    let engine = engine.clone();
    tokio::spawn(async move { engine.run().await })
}

/// Waits until no task is due or running, then stops the engine.
pub(crate) async fn finish(engine: &Engine, running: Running) -> Result<()> {
    drained(engine).await?;
    stop(engine, running).await
}

/// Waits until no task is due or running.
pub(crate) async fn drained(engine: &Engine) -> Result<()> {
    while engine.store().queues().await?.iter().any(|queue| queue.waiting + queue.running > 0) {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

pub(crate) async fn stop(engine: &Engine, running: Running) -> Result<()> {
    engine.stop();
    Ok(running.await??)
}
