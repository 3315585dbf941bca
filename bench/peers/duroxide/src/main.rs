//! The rows of orchestrations on duroxide, with its SQLite provider.
//!
//! Settings: `default` is its `RuntimeOptions` except for the slots, with its own
//! `wait_for_orchestration`. `tuned` polls for work every millisecond and for the status every two
//! milliseconds. `tuned waiting` polls for work every millisecond and uses
//! `wait_for_orchestration`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use bench_protocol::{DurabilityLevel, Ends, Measurement, Numbers, Request, now, run};
use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use tempfile::TempDir;

/// The interval at which `tuned` polls for work.
const LOOK: Duration = Duration::from_millis(1);
/// The interval at which `tuned` polls for the end.
const ASK: Duration = Duration::from_millis(2);
/// The time limit of an orchestration, as in duroxide's own stress tests.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    run("duroxide", |request| tokio::runtime::Runtime::new()?.block_on(in_flight(request)))
}

async fn open(request: &Request) -> Result<(Arc<dyn Provider>, Option<TempDir>)> {
    match request.durability {
        DurabilityLevel::Memory => Ok((Arc::new(SqliteProvider::new_in_memory().await?), None)),
        DurabilityLevel::Normal => {
            let directory = tempfile::tempdir_in(&request.directory)?;
            let path = directory.path().join("duroxide.db");
            std::fs::File::create(&path)?;
            let provider = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await?;
            Ok((Arc::new(provider), Some(directory)))
        }
        DurabilityLevel::Full => bail!("duroxide's SQLite provider has no durability level full"),
    }
}

async fn start(request: &Request, provider: Arc<dyn Provider>) -> Result<Arc<Runtime>> {
    let row = &request.row;
    let activity = Duration::from_millis(row.activity_ms);
    let activities = ActivityRegistry::builder()
        .register("part", move |_context: ActivityContext, part: String| async move {
            if !activity.is_zero() {
                tokio::time::sleep(activity).await;
            }
            Ok(part)
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("fan_out", fan_out).register("chain", chain).build();
    let mut options = RuntimeOptions {
        orchestration_concurrency: row.turns,
        worker_concurrency: row.slots,
        ..RuntimeOptions::default()
    };
    if request.settings.starts_with("tuned") {
        options.dispatcher_min_poll_interval = LOOK;
    }
    Ok(Runtime::start_with_options(provider, activities, orchestrations, options).await)
}

async fn fan_out(context: OrchestrationContext, parts: String) -> Result<String, String> {
    let parts: usize = parts.parse().map_err(|error| format!("{error}"))?;
    let all = (0..parts).map(|part| context.schedule_activity("part", part.to_string())).collect();
    let done = context.join(all).await;
    let right = done.iter().enumerate().filter(|(part, done)| done.as_ref() == Ok(&part.to_string())).count();
    Ok(right.to_string())
}

async fn chain(context: OrchestrationContext, parts: String) -> Result<String, String> {
    let parts: usize = parts.parse().map_err(|error| format!("{error}"))?;
    for part in 0..parts {
        context.schedule_activity("part", part.to_string()).await?;
    }
    Ok(parts.to_string())
}

async fn in_flight(request: &Request) -> Result<Measurement> {
    let (row, numbers) = (&request.row, Numbers::new(request.row.count));
    let (provider, _directory) = open(request).await?;
    let runtime = start(request, provider.clone()).await?;
    let started = now();
    let starters: Vec<_> = (0..row.submitters)
        .map(|_| {
            let (client, request) = (Client::new(provider.clone()), request.clone());
            let one = move |number| good(client.clone(), request.clone(), number);
            tokio::spawn(Ends::of_starter(numbers.clone(), one))
        })
        .collect();
    let mut all = Ends::default();
    for starter in starters {
        all.merge(starter.await?);
    }
    let elapsed = started.elapsed();
    runtime.shutdown(None).await;
    all.measurement(row, elapsed)
}

/// Returns whether an orchestration ended with the expected result.
async fn good(client: Client, request: Request, number: usize) -> bool {
    let row = &request.row;
    let name = if row.workload == "fan_out" { "fan_out" } else { "chain" };
    let instance = format!("{name}-{number}");
    let started = client.start_orchestration(&instance, name, row.steps.to_string()).await;
    let done = match started {
        Ok(()) => wait(&client, &instance, &request.settings).await,
        Err(_) => None,
    };
    done.is_some_and(|done| done == row.steps.to_string())
}

/// Returns the result of an orchestration, or `None` if it did not complete.
async fn wait(client: &Client, instance: &str, settings: &str) -> Option<String> {
    if settings != "tuned" {
        return match client.wait_for_orchestration(instance, LIMIT).await {
            Ok(OrchestrationStatus::Completed { output, .. }) => Some(output),
            _ => None,
        };
    }
    let started = now();
    while started.elapsed() < LIMIT {
        match client.get_orchestration_status(instance).await {
            Ok(OrchestrationStatus::Completed { output, .. }) => return Some(output),
            Ok(OrchestrationStatus::Failed { .. }) | Err(_) => return None,
            Ok(_) => tokio::time::sleep(ASK).await,
        }
    }
    None
}
