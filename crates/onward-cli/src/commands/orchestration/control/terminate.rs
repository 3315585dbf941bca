//! `onward orchestration terminate`

use clap::Args;
use onward_store::{Outcome, TaskRecord, Write};
use serde_json::json;

use crate::apply::{apply_one, unexpected};
use crate::commands::orchestration::selection::Orchestrations;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward orchestration terminate`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    orchestrations: Orchestrations,
    /// The reason, which is kept as its error
    #[arg(long, value_name = "TEXT", default_value = "terminated by the operator")]
    reason: String,
}

/// Ends each of the orchestrations without running its code.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let Arguments { orchestrations, reason } = arguments;
    orchestrations
        .for_each(options, &*store, async |TaskRecord { id: task, .. }| {
            match apply_one(&*store, Write::Terminate { task, reason: reason.clone() }).await? {
                Outcome::Cancelled => {}
                other => return Err(unexpected(other)),
            }
            if options.json {
                print_json(&json!({ "id": task, "outcome": "terminated" }))?;
            } else {
                print_line(format_args!("orchestration {task} is terminated"))?;
            }
            Ok(())
        })
        .await
}
