//! `onward task wait`

use std::cell::Cell;
use std::time::Duration;

use clap::Args;
use onward_store::{Store, TaskId, TaskRecord, TaskState};

use super::numbers::Tasks;
use crate::apply::{for_each, wait_for_end};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{colored_state, print_json, print_line, task_json};
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward task wait`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    tasks: Tasks,
    /// Give up after this long, with exit code 1; default: wait for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
}

/// Waits for each of the tasks.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_stay(options).await?;
    let Arguments { tasks, timeout } = arguments;
    let tasks = tasks.numbers(&*store).await?;
    wait_for_all_within(options, &*store, &tasks, timeout).await
}

/// Waits for each of the tasks, until the timeout if there is one.
pub(crate) async fn wait_for_all_within(
    options: &GlobalOptions,
    store: &dyn Store,
    tasks: &[TaskId],
    timeout: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let waiting = wait_for_all(options, store, tasks);
    let Some(timeout) = timeout else { return waiting.await };
    match tokio::time::timeout(timeout, waiting).await {
        Ok(ended) => ended,
        Err(_) => Err(anyhow::anyhow!(
            "not all of the tasks ended within {timeout:?} (--timeout); they continue, and onward task wait waits again"
        )),
    }
}

async fn wait_for_all(options: &GlobalOptions, store: &dyn Store, tasks: &[TaskId]) -> anyhow::Result<ExitCode> {
    let completed = Cell::new(true);
    let code = for_each(tasks.to_vec(), options, async |task| {
        let record = wait_for_end(store, task).await?;
        completed.set(completed.get() && record.state == TaskState::Completed);
        show(options, record)
    });
    Ok(code.await?.or_failed(!completed.get()))
}

fn show(options: &GlobalOptions, record: TaskRecord) -> anyhow::Result<()> {
    if options.json {
        print_json(&task_json(record)?)?;
    } else {
        print_line(format_args!("task {} {}", record.id, colored_state(record.state)))?;
    }
    Ok(())
}
