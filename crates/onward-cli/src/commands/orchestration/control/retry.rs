//! `onward orchestration retry`

use onward_store::{TaskRecord, Write};
use serde_json::json;

use crate::apply::apply_one;
use crate::commands::orchestration::selection::Orchestrations;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Lets each of the orchestrations continue with its existing history.
pub(crate) async fn run(options: &GlobalOptions, named: Orchestrations) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    named
        .for_each(options, &*store, async |TaskRecord { id: task, .. }| {
            apply_one(&*store, Write::Retry { task }).await?;
            if options.json {
                print_json(&json!({ "id": task, "outcome": "retried" }))?;
            } else {
                print_line(format_args!("orchestration {task} resumes where its history ends"))?;
            }
            Ok(())
        })
        .await
}
