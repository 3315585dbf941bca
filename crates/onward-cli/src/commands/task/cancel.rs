//! `onward task cancel`

use onward_store::{BulkVerb, Outcome, Write};
use serde_json::json;

use super::bulk;
use super::selection::TaskSelection;
use crate::apply::{apply_one, for_each, unexpected};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Cancels each of the tasks, or all tasks that a filter selects.
pub(crate) async fn run(options: &GlobalOptions, chosen: TaskSelection) -> anyhow::Result<ExitCode> {
    let Some(tasks) = chosen.tasks()? else { return bulk::run(options, BulkVerb::Cancel, chosen.by).await };
    let store = store_file::open_existing(options).await?;
    for_each(tasks, options, async |task| {
        let (outcome, description) = match apply_one(&*store, Write::Cancel { task }).await? {
            Outcome::Cancelled => ("cancelled", "cancelled"),
            Outcome::CancelRequested => ("cancel_requested", "runs and has been asked to stop"),
            other => return Err(unexpected(other)),
        };
        if options.json {
            print_json(&json!({ "id": task, "outcome": outcome }))?;
        } else {
            print_line(format_args!("task {task} {description}"))?;
        }
        Ok(())
    })
    .await
}
