//! The engine of one worker.

use std::sync::Arc;
use std::time::Duration;

use onward::{Engine, HandlerOptions, Name};
use onward_protocol::worker::{Hello, KindOptions};
use onward_protocol::{Code, Error};
use tokio::task::JoinHandle;

use super::event::{Event, Events};
use super::kept_turns::KeptTurns;
use super::turns::WorkerCode;
use super::{foreign_attempts, handler, new_task};
use crate::gateway::bounds::{HISTORY_BYTES, HISTORY_EVENTS};
use crate::gateway::options::Gateway;
use crate::gateway::session::{Input, STICKY};

/// The engine of a worker, and its run.
pub(super) struct WorkerEngine {
    pub(super) engine: Engine,
    run: JoinHandle<()>,
}

/// Starts the engine of a worker, which claims nothing before it has credit.
pub(super) async fn start(
    gateway: &Gateway,
    session: &str,
    hello: &Hello,
    events: &Events,
) -> Result<WorkerEngine, Error> {
    let options = &gateway.options;
    let worker = hello.name.as_deref().filter(|name| !name.is_empty()).map(|name| format!(": {name}"));
    // Other gateways find the session of a worker that resumes it by its digest.
    let name = format!("{}{}{}", options.name, worker.unwrap_or_default(), foreign_attempts::suffix(session));
    let mut builder = Engine::builder()
        .store(gateway.store.clone())
        .on_credit()
        // The credit bounds the tasks of the worker, so the bound of the engine is the highest
        // possible.
        .concurrency(onward::bounds::CONCURRENCY)
        .lease(options.lease)
        .grace(options.grace)
        // The session ends attempts; the engine waits for it.
        .shutdown_limit(options.grace)
        .history_bytes(HISTORY_BYTES)
        .history_events(HISTORY_EVENTS)
        .name(name);
    if !options.queues.is_empty() {
        builder = builder.queues(options.queues.iter().cloned());
    }
    let engine = builder.open().await.map_err(|error| Error::new(Code::BadField, error.to_string()))?;
    let is_sticky = hello.features.iter().flatten().any(|feature| feature == STICKY);
    let kept = is_sticky.then(KeptTurns::default);
    for (kind, options) in &hello.kinds {
        check_kind(kind)?;
        let events = events.clone();
        if options.orchestration == Some(true) {
            let most_bytes = gateway.store.info().payload_limit;
            engine.orchestrate_remotely(kind, Arc::new(WorkerCode { events, most_bytes, kept: kept.clone() }));
            continue;
        }
        engine.handle_with(kind, handler_options(options), move |context| handler::run(context, events.clone()));
    }
    let (running, gone) = (engine.clone(), events.clone());
    let run = tokio::spawn(async move {
        if let Err(error) = running.run().await {
            tracing::error!(%error, "the engine of a worker has ended");
            // The session may be over already.
            let _ = gone.send(Event::Input(Input::Gone(format!("its engine has ended: {error}"))));
        }
    });
    Ok(WorkerEngine { engine, run })
}

/// Checks the name of a kind. The engine would report an error in it only when it runs.
fn check_kind(kind: &str) -> Result<(), Error> {
    if kind.contains('*') {
        return Err(Error::new(Code::BadField, format!("the kind `{kind}` is a pattern; name each kind")));
    }
    let checked = Name::new(kind).and_then(|name| name.check_own("kind"));
    checked.map_err(|error| Error::new(Code::BadField, error.to_string()))
}

fn handler_options(kind: &KindOptions) -> HandlerOptions {
    let mut options = HandlerOptions::new();
    if let Some(retry) = &kind.retry {
        options = options.retry(new_task::retry_policy(retry));
    }
    if let Some(timeout) = kind.timeout_ms {
        options = options.timeout(Duration::from_millis(timeout));
    }
    if let Some(heartbeat) = kind.heartbeat_ms {
        options = options.heartbeat_timeout(Duration::from_millis(heartbeat));
    }
    options
}

impl WorkerEngine {
    /// Stops the engine, and waits until every end is written and the session is closed.
    pub(super) async fn stop(self) {
        self.engine.stop();
        // A panic of the run has been logged by the runtime's hook; there is nothing left to stop.
        let _ = self.run.await;
    }
}
