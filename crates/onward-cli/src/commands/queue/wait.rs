//! `onward queue wait`

use std::time::Duration;

use clap::Args;
use onward_store::{Name, QueueRecord, Refusal, Store, StoreReads};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{counted, print_json, print_line};
use crate::store_file;
use crate::values::parse_positive_duration;

/// The shortest time between two reads of the queues, which change with every task.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `onward queue wait`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Queue names; default: every queue
    #[arg(value_name = "QUEUE")]
    queues: Vec<Name>,
    /// Give up after this long, with exit code 1; default: wait for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
}

/// Waits until the queues have no live tasks.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_stay(options).await?;
    let waiting = until_empty(&*store, &arguments.queues);
    let empty = match arguments.timeout {
        None => waiting.await?,
        Some(timeout) => match tokio::time::timeout(timeout, waiting).await {
            Ok(empty) => empty?,
            Err(_) => return Err(left(&*store, &arguments.queues, timeout).await?),
        },
    };
    for queue in empty {
        if options.json {
            print_json(&json!({ "queue": queue.name, "ended": queue.ended }))?;
        } else {
            print_line(format_args!("queue {} is empty", queue.name))?;
        }
    }
    Ok(ExitCode::Done)
}

/// Returns the queues once all of them are empty at the same time.
async fn until_empty(store: &dyn Store, names: &[Name]) -> anyhow::Result<Vec<QueueRecord>> {
    // Subscribed before the first read, so that a change right after it is not missed.
    let mut changes = store.changes();
    loop {
        let queues = chosen(store, names).await?;
        if queues.iter().all(|queue| live(queue) == 0) {
            return Ok(queues);
        }
        tokio::time::sleep(LOOK_EVERY).await;
        changes.changed().await.ok_or_else(onward_store::Error::closed)?;
    }
}

async fn chosen(store: &dyn Store, names: &[Name]) -> anyhow::Result<Vec<QueueRecord>> {
    let mut queues = store.queues().await?;
    if let Some(unknown) = names.iter().find(|name| !queues.iter().any(|queue| queue.name == **name)) {
        return Err(Refusal::QueueNotFound(unknown.clone()).into());
    }
    queues.retain(|queue| names.is_empty() || names.contains(&queue.name));
    Ok(queues)
}

/// Returns the number of live tasks.
fn live(queue: &QueueRecord) -> u64 {
    queue.blocked + queue.scheduled + queue.waiting + queue.running
}

async fn left(store: &dyn Store, names: &[Name], timeout: Duration) -> anyhow::Result<anyhow::Error> {
    let queues = chosen(store, names).await?;
    let full = queues.iter().filter(|queue| live(queue) > 0);
    let full: Vec<_> = full.map(|queue| format!("{} in {}", counted(live(queue), "task"), queue.name)).collect();
    Ok(anyhow::anyhow!("not empty after {timeout:?}: {}", full.join(", ")))
}
