//! The actions of `onward workflow` on runs: cancel, retry, reset, resolve, complete, skip, undo.

use clap::Args;
use onward::Engine;
use onward::workflow::RunAction;
use onward_store::TaskId;
use serde_json::{Value, json};

use crate::commands::run::read_value;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};
use crate::store_file;

/// The options of every action, which the history of the run keeps.
#[derive(Debug, Args)]
pub(crate) struct Author {
    /// The reason, which the history of the run keeps
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The name of the author, which the history of the run keeps
    #[arg(long, value_name = "NAME", env = "USER")]
    actor: Option<String>,
}

/// Arguments of `onward workflow cancel`.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The number of the run
    #[arg(value_name = "RUN")]
    run: TaskId,
    /// Undo what the run did, once it has stopped
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    author: Author,
}

/// Arguments of `onward workflow retry`.
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The number of the run
    #[arg(value_name = "RUN")]
    run: TaskId,
    /// Steps that ended badly or were cancelled; without any, all such steps
    #[arg(value_name = "STEP")]
    steps: Vec<String>,
    #[command(flatten)]
    author: Author,
}

/// Arguments of actions on one step.
#[derive(Debug, Args)]
pub(crate) struct OneStep {
    /// The number of the run
    #[arg(value_name = "RUN")]
    run: TaskId,
    /// The name of the step
    #[arg(value_name = "STEP")]
    step: String,
    #[command(flatten)]
    author: Author,
}

/// Arguments of `onward workflow complete`.
#[derive(Debug, Args)]
pub(crate) struct Complete {
    #[command(flatten)]
    on: OneStep,
    /// The result of the step: JSON, @FILE, or NAME=VALUE for one field; repeat to add fields
    #[arg(long, value_name = "VALUE", required = true, allow_hyphen_values = true)]
    result: Vec<String>,
}

/// Arguments of `onward workflow undo`.
#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// The number of the run
    #[arg(value_name = "RUN")]
    run: TaskId,
    #[command(flatten)]
    author: Author,
}

/// Requests the end of everything that runs, and ends the run after that.
pub(crate) async fn cancel(options: &GlobalOptions, arguments: Cancel) -> anyhow::Result<ExitCode> {
    let Cancel { run, undo, author } = arguments;
    act(options, run, RunAction::Cancel { undo }, "cancel", &author).await
}

/// Runs steps again that ended badly or were cancelled.
pub(crate) async fn retry(options: &GlobalOptions, arguments: Retry) -> anyhow::Result<ExitCode> {
    let Retry { run, steps, author } = arguments;
    act(options, run, RunAction::Retry { steps }, "retry", &author).await
}

/// Runs a step again that ended in any way.
pub(crate) async fn reset(options: &GlobalOptions, arguments: OneStep) -> anyhow::Result<ExitCode> {
    let OneStep { run, step, author } = arguments;
    act(options, run, RunAction::Reset { step }, "reset", &author).await
}

/// Takes a step, or an undo that failed, as mended by hand.
pub(crate) async fn resolve(options: &GlobalOptions, arguments: OneStep) -> anyhow::Result<ExitCode> {
    let OneStep { run, step, author } = arguments;
    act(options, run, RunAction::Resolve { step }, "resolve", &author).await
}

/// Completes a step with a result.
pub(crate) async fn complete(options: &GlobalOptions, arguments: Complete) -> anyhow::Result<ExitCode> {
    let Complete { on: OneStep { run, step, author }, result } = arguments;
    let result: Value = read_value("--result", &result, None)?;
    act(options, run, RunAction::Complete { step, result }, "complete", &author).await
}

/// Skips a step.
pub(crate) async fn skip(options: &GlobalOptions, arguments: OneStep) -> anyhow::Result<ExitCode> {
    let OneStep { run, step, author } = arguments;
    act(options, run, RunAction::Skip { step }, "skip", &author).await
}

/// Undoes a run that has stopped.
pub(crate) async fn undo(options: &GlobalOptions, arguments: Undo) -> anyhow::Result<ExitCode> {
    let Undo { run, author } = arguments;
    act(options, run, RunAction::Undo, "undo", &author).await
}

async fn act(
    options: &GlobalOptions,
    run: TaskId,
    action: RunAction,
    name: &str,
    author: &Author,
) -> anyhow::Result<ExitCode> {
    let engine = Engine::builder().store(store_file::open_existing(options).await?).open().await?;
    let view = engine.run_view(run).await?;
    engine.act_on_run(run, action, author.actor.as_deref(), author.reason.as_deref()).await?;
    if options.json {
        print_json(&json!({ "id": run, "outcome": "sent", "action": name }))?;
    } else {
        print_line(format_args!("`{name}` was sent to run {run} of {}", view.workflow))?;
    }
    if view.is_paused {
        remark(format_args!("run {run} is paused, so it takes effect after `onward workflow resume {run}`"));
    }
    Ok(ExitCode::Done)
}
