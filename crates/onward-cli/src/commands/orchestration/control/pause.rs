//! `onward orchestration pause` and `onward orchestration resume`

use onward_store::{BulkVerb, Outcome, Write};
use serde_json::json;

use crate::apply::{apply_one, for_each, unexpected};
use crate::commands::orchestration::selection::check_is_orchestration;
use crate::commands::task::{TaskSelection, run_bulk};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Pauses each of the orchestrations, or all that a filter selects.
pub(crate) async fn pause(options: &GlobalOptions, chosen: TaskSelection) -> anyhow::Result<ExitCode> {
    let Some(tasks) = chosen.tasks()? else { return run_bulk(options, BulkVerb::Pause, chosen.by).await };
    let store = store_file::open_existing(options).await?;
    for_each(tasks, options, async |task| {
        check_is_orchestration(&*store, task).await?;
        match apply_one(&*store, Write::PauseOrchestration { task }).await? {
            Outcome::Done => print_done(options, task, "paused")?,
            other => return Err(unexpected(other)),
        }
        Ok(())
    })
    .await
}

/// Resumes each of the orchestrations, or all that a filter selects.
pub(crate) async fn resume(options: &GlobalOptions, chosen: TaskSelection) -> anyhow::Result<ExitCode> {
    let Some(tasks) = chosen.tasks()? else { return run_bulk(options, BulkVerb::Resume, chosen.by).await };
    let store = store_file::open_existing(options).await?;
    for_each(tasks, options, async |task| {
        check_is_orchestration(&*store, task).await?;
        match apply_one(&*store, Write::ResumeOrchestration { task }).await? {
            Outcome::Done => print_done(options, task, "resumed")?,
            other => return Err(unexpected(other)),
        }
        Ok(())
    })
    .await
}

fn print_done(options: &GlobalOptions, task: onward_store::TaskId, done: &str) -> anyhow::Result<()> {
    if options.json {
        print_json(&json!({ "id": task, "outcome": done }))?;
    } else {
        print_line(format_args!("orchestration {task} is {done}"))?;
    }
    Ok(())
}
