//! `onward queue show`

use onward_store::{Name, PauseRecord, QueueRecord, Refusal, Scope, Store, StoreReads, Timestamp};
use serde_json::Value;

use super::command::Queue;
use super::scope::scope_text;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{duration_text, moment, optional, print_json, print_line};
use crate::store_file;

/// Shows one queue and the pauses that apply to it.
pub(crate) async fn run(options: &GlobalOptions, Queue { queue: name }: Queue) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let queue = find(&*store, &name).await?;
    let pauses = holding(&name, store.pauses().await?);
    if options.json {
        print_json(&json_of(&queue, store.clock().now(), &pauses)?)?;
    } else {
        for (fact, value) in facts(&queue, store.clock().now(), &pauses) {
            print_line(format_args!("{fact:<15} {value}"))?;
        }
    }
    Ok(ExitCode::Done)
}

/// Returns the queue with a name.
pub(super) async fn find(store: &dyn Store, name: &Name) -> anyhow::Result<QueueRecord> {
    let queues = store.queues().await?;
    Ok(queues.into_iter().find(|queue| queue.name == *name).ok_or_else(|| Refusal::QueueNotFound(name.clone()))?)
}

/// Returns the pauses that apply to a whole queue.
fn holding(queue: &Name, mut pauses: Vec<PauseRecord>) -> Vec<PauseRecord> {
    pauses.retain(|pause| match &pause.scope {
        Scope::All => true,
        Scope::Queue(paused) => paused == queue,
        Scope::Kind(_) | Scope::Group(_) => false,
    });
    pauses
}

/// Returns a queue as JSON, in the form that all commands use. Durations are in seconds.
fn json_of(queue: &QueueRecord, now: Timestamp, pauses: &[PauseRecord]) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(queue)?;
    value["latency"] = queue.latency(now).as_secs_f64().into();
    value["affinity_wait"] = queue.affinity_wait.as_secs_f64().into();
    value["pauses"] = serde_json::to_value(holding(&queue.name, pauses.to_vec()))?;
    Ok(value)
}

/// Prints each queue as JSON.
///
/// # Errors
/// Returns an error if stdout cannot be written to.
pub(super) fn print_as_json(queues: &[QueueRecord], now: Timestamp, pauses: &[PauseRecord]) -> anyhow::Result<()> {
    queues.iter().try_for_each(|queue| Ok(print_json(&json_of(queue, now, pauses)?)?))
}

fn facts(queue: &QueueRecord, now: Timestamp, pauses: &[PauseRecord]) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("queue", queue.name.to_string()),
        ("blocked", queue.blocked.to_string()),
        ("scheduled", queue.scheduled.to_string()),
        ("waiting", queue.waiting.to_string()),
        ("running", queue.running.to_string()),
        ("completed", queue.ended.completed.to_string()),
        ("failed", queue.ended.failed.to_string()),
        ("dead", queue.ended.dead.to_string()),
        ("cancelled", queue.ended.cancelled.to_string()),
        ("expired", queue.ended.expired.to_string()),
        ("oldest waiting", optional(queue.oldest_waiting, moment)),
        ("latency", optional(queue.oldest_waiting, |_| duration_text(queue.latency(now)))),
        ("weight", queue.weight.to_string()),
        ("concurrency", optional(queue.concurrency, |limit| limit.to_string())),
        ("affinity wait", duration_text(queue.affinity_wait)),
    ];
    facts.extend(pauses.iter().map(|pause| {
        let until = pause.until.map(|until| format!(" until {}", moment(until))).unwrap_or_default();
        ("paused", format!("{}{until}", scope_text(&pause.scope)))
    }));
    facts
}
