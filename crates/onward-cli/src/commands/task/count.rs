//! `onward task count`

use onward_store::StoreReads;
use serde_json::json;

use super::filter::FilterArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Counts tasks.
pub(crate) async fn run(options: &GlobalOptions, arguments: FilterArguments) -> anyhow::Result<ExitCode> {
    let filter = arguments.filter()?;
    let store = store_file::open_to_read(options).await?;
    let tasks = store.count(filter).await?;
    if options.json {
        print_json(&json!({ "tasks": tasks }))?;
    } else {
        print_line(tasks)?;
    }
    Ok(ExitCode::Done)
}
