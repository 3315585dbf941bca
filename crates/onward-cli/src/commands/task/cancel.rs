//! `onward task cancel`

use onward_store::{Outcome, Write};
use serde_json::json;

use super::command::Tasks;
use crate::apply::{apply_one, unexpected};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Cancels each of the tasks.
pub(crate) async fn run(options: &GlobalOptions, tasks: Tasks) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    for task in tasks.tasks {
        let (outcome, said) = match apply_one(&*store, Write::Cancel { task }).await? {
            Outcome::Cancelled => ("cancelled", "cancelled"),
            Outcome::CancelRequested => ("cancel_requested", "runs and has been asked to stop"),
            other => return Err(unexpected(other)),
        };
        if options.json {
            print_json(&json!({ "id": task, "outcome": outcome }))?;
        } else {
            print_line(format_args!("task {task} {said}"))?;
        }
    }
    Ok(ExitCode::Done)
}
