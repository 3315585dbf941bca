//! `onward orchestration cancel`

use onward_store::{Outcome, TaskRecord, Write};
use serde_json::json;

use crate::apply::{apply_one, unexpected};
use crate::commands::orchestration::selection::Orchestrations;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Asks each of the orchestrations to stop.
pub(crate) async fn run(options: &GlobalOptions, named: Orchestrations) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    named
        .for_each(options, &*store, async |TaskRecord { id: task, .. }| {
            let (outcome, description) = match apply_one(&*store, Write::Cancel { task }).await? {
                Outcome::Cancelled => ("cancelled", "is cancelled; it had not started"),
                Outcome::CancelRequested => {
                    ("cancel_requested", "is asked to stop; its next turn receives the request")
                }
                other => return Err(unexpected(other)),
            };
            if options.json {
                print_json(&json!({ "id": task, "outcome": outcome }))?;
            } else {
                print_line(format_args!("orchestration {task} {description}"))?;
            }
            Ok(())
        })
        .await
}
