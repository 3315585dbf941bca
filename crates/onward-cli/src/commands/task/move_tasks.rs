//! `onward task move`

use clap::Args;
use onward_store::{BulkVerb, Name, Outcome, Write};
use serde_json::json;

use super::bulk;
use super::selection::TaskSelection;
use crate::apply::{apply_one, for_each, unexpected};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::parse_queue;

/// Arguments of `onward task move`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    chosen: TaskSelection,
    /// The target queue; it is created if it is missing
    #[arg(long, value_name = "QUEUE", value_parser = parse_queue)]
    to: Name,
}

/// Moves each of the tasks, or all tasks that a filter selects.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { chosen, to: queue } = arguments;
    let Some(tasks) = chosen.tasks()? else { return bulk::run(options, BulkVerb::Move(queue), chosen.by).await };
    let store = store_file::open_existing(options).await?;
    for_each(tasks, options, async |task| {
        let (outcome, description) = match apply_one(&*store, Write::Move { task, queue: queue.clone() }).await? {
            Outcome::Moved => ("moved", "is in"),
            Outcome::MoveRequested => ("move_requested", "runs; a further attempt will be in"),
            other => return Err(unexpected(other)),
        };
        if options.json {
            print_json(&json!({ "id": task, "outcome": outcome }))?;
        } else {
            print_line(format_args!("task {task} {description} the queue `{queue}`"))?;
        }
        Ok(())
    })
    .await
}
