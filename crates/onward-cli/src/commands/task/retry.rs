//! `onward task retry`

use onward_store::{BulkVerb, Write};
use serde_json::json;

use super::bulk;
use super::selection::TaskSelection;
use crate::apply::{apply_one, for_each};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Makes each of the tasks wait again, or all tasks that a filter selects.
pub(crate) async fn run(options: &GlobalOptions, chosen: TaskSelection) -> anyhow::Result<ExitCode> {
    let Some(tasks) = chosen.tasks()? else { return bulk::run(options, BulkVerb::Retry, chosen.by).await };
    let store = store_file::open_existing(options).await?;
    for_each(tasks, options, async |task| {
        apply_one(&*store, Write::Retry { task }).await?;
        if options.json {
            print_json(&json!({ "id": task, "outcome": "retried" }))?;
        } else {
            print_line(format_args!("task {task} waits again"))?;
        }
        Ok(())
    })
    .await
}
