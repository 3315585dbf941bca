//! `onward queue purge`

use clap::Args;
use onward_store::{EndedCounts, Name, Outcome, QueueRecord, Store, TaskState, Write};
use serde_json::json;

use super::show::find;
use crate::apply::{apply_one, unexpected};
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted, print_json, print_line};
use crate::store_file;

/// The tasks that one write removes. The bound keeps a write from blocking other writers for long.
const CHUNK: usize = 1000;

/// Arguments of `onward queue purge`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: Name,
    /// Tasks in this state; may be given several times. Running ones are never removed
    #[arg(long = "state", value_name = "STATE", required = true)]
    states: Vec<TaskState>,
    /// Confirm the removal, which is permanent
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Only print how many tasks would be removed
    #[arg(long)]
    dry_run: bool,
}

/// Removes tasks.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.states.contains(&TaskState::Running) {
        return Err(wrong_usage(
            "--state running: running tasks are never purged; cancel them and purge them as cancelled",
        ));
    }
    if !arguments.yes && !arguments.dry_run {
        return Err(wrong_usage(
            "a purge leaves no trace: add --yes to do it, or --dry-run to see how many tasks it would remove",
        ));
    }
    let store = store_file::open_existing(options).await?;
    let queue = find(&*store, &arguments.queue).await?;
    let there = count(&queue, &arguments.states);
    if arguments.dry_run {
        return print_count(options, "would_remove", "would remove", there);
    }
    let bar = ProgressBar::new(options, Unit::Tasks, Some(there));
    let removed = purge(&*store, &arguments.queue, &arguments.states, &bar).await?;
    bar.clear();
    print_count(options, "removed", "removed", removed)
}

/// Removes the tasks of a queue in these states, chunk by chunk. Returns their number.
pub(crate) async fn purge(
    store: &dyn Store,
    queue: &Name,
    states: &[TaskState],
    bar: &ProgressBar,
) -> anyhow::Result<u64> {
    let mut removed = 0;
    loop {
        let purge = Write::Purge { queue: queue.clone(), states: states.to_vec(), limit: CHUNK };
        match apply_one(store, purge).await? {
            Outcome::Removed { tasks, more } => {
                removed += tasks;
                bar.set_position(removed);
                if !more {
                    return Ok(removed);
                }
            }
            other => return Err(unexpected(other)),
        }
    }
}

fn count(queue: &QueueRecord, states: &[TaskState]) -> u64 {
    let mut ended: EndedCounts = queue.ended;
    let mut counted: Vec<TaskState> = states.to_vec();
    counted.sort_unstable();
    counted.dedup();
    let mut of_state = |state| match state {
        TaskState::Blocked => queue.blocked,
        TaskState::Scheduled => queue.scheduled,
        TaskState::Waiting => queue.waiting,
        TaskState::Running => queue.running,
        state => ended.of(state).map_or(0, |count| *count),
    };
    counted.into_iter().map(&mut of_state).sum()
}

fn print_count(options: &GlobalOptions, field: &str, description: &str, tasks: u64) -> anyhow::Result<ExitCode> {
    if options.json {
        print_json(&json!({ field: tasks }))?;
    } else {
        print_line(format_args!("{description} {}", counted(tasks, "task")))?;
    }
    Ok(ExitCode::Done)
}
