//! `onward workflow pause` and `onward workflow resume`

use clap::Args;
use onward::Engine;
use onward_store::{Outcome, TaskId, Write};
use serde_json::json;

use crate::apply::{apply_one, for_each, unexpected};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward workflow pause` and `onward workflow resume`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<TaskId>,
}

/// Pauses runs: no step starts, and what arrives is kept.
pub(crate) async fn pause(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    each(options, arguments, "paused", |task| Write::PauseOrchestration { task }).await
}

/// Resumes paused runs.
pub(crate) async fn resume(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    each(options, arguments, "resumed", |task| Write::ResumeOrchestration { task }).await
}

async fn each(
    options: &GlobalOptions,
    arguments: Arguments,
    done: &str,
    write: fn(TaskId) -> Write,
) -> anyhow::Result<ExitCode> {
    let engine = Engine::builder().store(store_file::open_existing(options).await?).open().await?;
    for_each(arguments.runs, options, async |run| {
        // A number that is not the number of a run is refused here.
        engine.run_view(run).await?;
        match apply_one(&**engine.store(), write(run)).await? {
            Outcome::Done if options.json => print_json(&json!({ "id": run, "outcome": done }))?,
            Outcome::Done => print_line(format_args!("run {run} is {done}"))?,
            other => return Err(unexpected(other)),
        }
        Ok(())
    })
    .await
}
