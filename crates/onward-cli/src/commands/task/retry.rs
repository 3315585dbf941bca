//! `onward task retry`

use onward_store::Write;
use serde_json::json;

use super::command::Tasks;
use crate::apply::apply_one;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Makes each of the tasks wait again.
pub(crate) async fn run(options: &GlobalOptions, tasks: Tasks) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    for task in tasks.tasks {
        apply_one(&*store, Write::Retry { task }).await?;
        if options.json {
            print_json(&json!({ "id": task, "outcome": "retried" }))?;
        } else {
            print_line(format_args!("task {task} waits again"))?;
        }
    }
    Ok(ExitCode::Done)
}
