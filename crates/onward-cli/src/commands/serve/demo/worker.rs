//! The worker of the demonstration, and its start and its end.

use std::sync::Arc;
use std::time::Duration;

use onward::{Context, Engine, Failure, Output};
use onward_store::{MemoryStore, Store};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::outcome::{Outcome, decide};
use super::subscription::subscription;
use super::traffic::Traffic;
use super::{catalog, settings};

/// The number of handlers that run at once.
const SLOTS: usize = 16;

/// The number of ended tasks that are kept, so that memory does not grow with time.
const KEPT: u64 = 5_000;

/// A running demonstration.
#[derive(Debug)]
pub(in crate::commands::serve) struct Demo {
    engine: Engine,
    worker: JoinHandle<()>,
    traffic: JoinHandle<()>,
}

impl Demo {
    /// Fills a new store in memory, and starts its worker and its traffic.
    pub(in crate::commands::serve) async fn start() -> anyhow::Result<(Self, Arc<dyn Store>)> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = Engine::builder()
            .store(Arc::clone(&store))
            .concurrency(SLOTS)
            .prefetch(0)
            .keep_ended(KEPT)
            .shutdown_limit(Duration::ZERO)
            .grace(Duration::ZERO)
            .runs_workflows()
            .name("shop worker 1")
            .open()
            .await?;
        engine.handle_any(perform);
        engine.orchestrate(subscription);
        settings::set(&engine).await?;
        let mut traffic = Traffic::new(engine.clone());
        traffic.submit_first().await?;
        let running = engine.clone();
        let worker = tokio::spawn(async move { report("worker", running.run().await.map_err(Into::into)) });
        let traffic = tokio::spawn(async move { report("traffic", traffic.run().await) });
        Ok((Self { engine, worker, traffic }, store))
    }

    /// Stops the traffic and the worker, and waits for the worker.
    pub(in crate::commands::serve) async fn stop(self) {
        self.traffic.abort();
        self.engine.stop();
        // A worker that has panicked has reported that.
        let _ = self.worker.await;
    }
}

fn report(part: &str, ended: anyhow::Result<()>) {
    if let Err(error) = ended {
        crate::output::remark(format_args!("the {part} of the demonstration has ended: {error:#}"));
    }
}

/// Carries out one attempt of any kind.
async fn perform(context: Context) -> Result<Output, Failure> {
    if context.kind().as_str() == catalog::EXTERNAL_KIND {
        return Err(Failure::await_completion());
    }
    let payload: Value = serde_json::from_slice(context.payload()).unwrap_or_default();
    let Outcome { takes, parts, end } = decide(context.kind().as_str(), context.id().0, &payload, context.attempt());
    for part in 1..=parts {
        tokio::time::sleep(takes / u32::from(parts)).await;
        if parts > 1 {
            context.progress_message(f32::from(part) / f32::from(parts), format!("part {part} of {parts}"));
        }
    }
    Output::json(&end?)
}
