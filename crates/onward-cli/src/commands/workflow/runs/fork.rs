//! `onward workflow fork`

use clap::Args;
use onward::Engine;
use onward_store::TaskId;
use serde_json::json;

use crate::commands::run::read_value;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward workflow fork`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The number of the run, which has ended or is held
    #[arg(value_name = "RUN")]
    run: TaskId,
    /// A step that runs again, with all behind it; repeat for more steps
    #[arg(long, value_name = "STEP", required = true)]
    from: Vec<String>,
    /// Other input: a JSON object, @FILE with one, or NAME=VALUE for one field; repeat to add
    /// fields. Default: the input of the run
    #[arg(long, short, value_name = "INPUT")]
    input: Vec<String>,
}

const AFTER_HELP: &str = "\
The new run has the template and the environment of RUN, and no key. Steps that completed or were skipped and do not
depend on a STEP keep their results. Steps that are taken over are not undone if the new run fails.
`onward run FILE --from STEP` does the same with an edited file.";

/// Starts a run with the results of another one.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = Engine::builder().store(store_file::open_existing(options).await?).open().await?;
    let Arguments { run, from, input } = arguments;
    let mut start = engine.fork_run(run, from);
    if !input.is_empty() {
        start = start.input(&read_value("--input", &input, None)?);
    }
    let fork = start.await?.id;
    if options.json {
        print_json(&json!({ "id": fork, "fork_of": run }))?;
    } else {
        print_line(format_args!("run {fork} started as a fork of run {run}"))?;
    }
    Ok(ExitCode::Done)
}
